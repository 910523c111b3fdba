#include "vitrail/train/run/records.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

// A number as JSON: the shortest text that reads back to the same bits, or null if it is not finite.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

// Whether a member of a record of an evaluation is a figure: all but the record's own members.
bool is_figure(const std::string& key) { return key != "step" && key != "epoch" && key != "ema"; }

// Adds the record of one line: of an update if it has a learning rate, else of an evaluation.
void read_line(const nlohmann::ordered_json& line, History& history) {
  const auto value_of = [](const nlohmann::ordered_json& value) {
    return value.is_null() ? std::nan("") : value.get<double>();
  };
  const auto count_at = [&](const std::string& key) {
    check(line.at(key).is_number_integer(), "'{}' is no whole number", key);
    return line.at(key).get<std::int64_t>();
  };
  const std::int64_t step = count_at("step");
  const std::int64_t epoch = count_at("epoch");
  if (!line.contains("lr")) {
    EvaluationRecord record{step, epoch, {}, line.value("ema", false)};
    for (const auto& [key, value] : line.items()) {
      if (is_figure(key)) {
        record.figures.push_back({key, value_of(value)});
      }
    }
    history.evaluations.push_back(std::move(record));
    return;
  }
  StepRecord record{step, epoch, value_of(line.at("loss")), value_of(line.at("lr")), 0, 0, {}};
  for (const auto& [key, value] : line.items()) {
    if (key.ends_with(rate_ending)) {
      record.rate = value_of(value);
      const std::string units = key.substr(0, key.size() - rate_ending.size());
      record.units = line.contains(units) ? count_at(units) : 0;
    }
  }
  if (line.contains("grad_norm")) {
    record.grad_norm = value_of(line.at("grad_norm"));
  }
  history.steps.push_back(record);
}

}  // namespace

double mean_loss(const History& history, std::int64_t epoch) {
  double sum = 0;
  std::int64_t units = 0;
  for (auto step = history.steps.rbegin(); step != history.steps.rend() && step->epoch == epoch; ++step) {
    sum += step->loss * static_cast<double>(step->units);
    units += step->units;
  }
  return units == 0 ? std::nan("") : sum / static_cast<double>(units);
}

StepRecord recent_mean(const History& history) {
  const std::vector<StepRecord>& steps = history.steps;
  StepRecord mean = steps.back();
  const std::size_t count = std::min<std::size_t>(steps.size(), 20);
  double seconds_a_unit = 0;
  mean.loss = 0;
  for (std::size_t i = steps.size() - count; i < steps.size(); ++i) {
    mean.loss += steps[i].loss / static_cast<double>(count);
    seconds_a_unit += 1 / steps[i].rate / static_cast<double>(count);
  }
  mean.rate = 1 / seconds_a_unit;
  return mean;
}

std::string to_json(const StepRecord& record, const std::string& units) {
  std::string line =
      fmt::format(R"({{"step": {}, "epoch": {}, "loss": {}, "lr": {}, "{}": {}, "{}{}": {})", record.step, record.epoch,
                  number(record.loss), number(record.lr), units, record.units, units, rate_ending, number(record.rate));
  if (record.grad_norm) {
    line += fmt::format(R"(, "grad_norm": {})", number(*record.grad_norm));
  }
  if (!record.rank_seconds.empty()) {
    line += fmt::format(R"(, "rank_seconds": [{:.4f}])", fmt::join(record.rank_seconds, ", "));
  }
  return line + "}";
}

std::string to_json(const EvaluationRecord& record) {
  std::string line = fmt::format(R"({{"step": {}, "epoch": {})", record.step, record.epoch);
  for (const Figure& figure : record.figures) {
    line += fmt::format(R"(, "{}": {})", figure.name, number(figure.value));
  }
  return line + fmt::format(R"(, "ema": {}}})", record.ema);
}

History read_history(const std::filesystem::path& metrics) {
  History history;
  const std::string text = io::read_text(metrics);
  std::int64_t line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    ++line_number;
    try {
      read_line(nlohmann::ordered_json::parse(text.substr(begin, end - begin)), history);
    } catch (const nlohmann::json::exception&) {
      if (end == text.size()) {  // what a run wrote when it was killed
        break;
      }
      fail("{}: line {} is not a record of a run", metrics.string(), line_number);
    } catch (const Error& error) {
      fail("{}: line {} is not a record of a run: {}", metrics.string(), line_number, error.what());
    }
    begin = end + 1;
  }
  return history;
}

}  // namespace vitrail::train
