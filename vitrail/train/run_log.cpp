#include "vitrail/train/run_log.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "vitrail/io/chart.h"
#include "vitrail/io/file.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

constexpr std::size_t curve_points = 500;

// A number as JSON has it; the shortest text that reads back to the same bits.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::string system_reason() { return std::generic_category().message(errno); }

// The losses of many steps as few points: means over spans of steps, so that the curve shows what a person would see.
io::Series loss_curve(const std::vector<StepRecord>& steps, double steps_per_epoch, std::size_t points) {
  io::Series series;
  const std::size_t span = std::max<std::size_t>(1, (steps.size() + points - 1) / points);
  for (std::size_t begin = 0; begin < steps.size(); begin += span) {
    const std::size_t end = std::min(begin + span, steps.size());
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
      sum += steps[i].loss;
    }
    series.x.push_back(static_cast<double>(steps[end - 1].step) / steps_per_epoch);
    series.y.push_back(sum / static_cast<double>(end - begin));
  }
  return series;
}

io::Series evaluation_curve(const std::vector<EvaluationRecord>& all, bool ema, double EvaluationRecord::*value) {
  io::Series series;
  series.points = true;
  for (const EvaluationRecord& record : all) {
    if (record.ema == ema) {
      series.x.push_back(static_cast<double>(record.epoch));
      series.y.push_back(record.*value);
    }
  }
  return series;
}

void add_named(std::vector<io::Series>& list, io::Series series, std::string name, int color, bool faint = false) {
  if (!series.x.empty()) {
    series.name = std::move(name);
    series.color = color;
    series.faint = faint;
    list.push_back(std::move(series));
  }
}

}  // namespace

std::string to_json(const StepRecord& record) {
  std::string line =
      fmt::format(R"({{"step": {}, "epoch": {}, "loss": {}, "lr": {}, "images_per_second": {})", record.step,
                  record.epoch, number(record.loss), number(record.lr), number(record.images_per_second));
  if (record.grad_norm) {
    line += fmt::format(R"(, "grad_norm": {})", number(*record.grad_norm));
  }
  return line + "}";
}

std::string to_json(const EvaluationRecord& record) {
  return fmt::format(R"({{"step": {}, "epoch": {}, "top1": {}, "top5": {}, "loss": {}, "ema": {}}})", record.step,
                     record.epoch, number(record.top1), number(record.top5), number(record.loss), record.ema);
}

History read_history(const std::filesystem::path& metrics) {
  History history;
  const std::string text = io::read_text(metrics);
  std::int64_t line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    ++line_number;
    try {
      const nlohmann::json line = nlohmann::json::parse(text.substr(begin, end - begin));
      const auto number_at = [&](const char* key) {
        return line.at(key).is_null() ? std::nan("") : line.at(key).get<double>();
      };
      if (line.contains("top1")) {
        history.evaluations.push_back({line.at("step").get<std::int64_t>(), line.at("epoch").get<std::int64_t>(),
                                       number_at("top1"), number_at("top5"), number_at("loss"),
                                       line.value("ema", false)});
      } else {
        StepRecord record{line.at("step").get<std::int64_t>(),
                          line.at("epoch").get<std::int64_t>(),
                          number_at("loss"),
                          number_at("lr"),
                          number_at("images_per_second"),
                          {}};
        if (line.contains("grad_norm")) {
          record.grad_norm = number_at("grad_norm");
        }
        history.steps.push_back(record);
      }
    } catch (const nlohmann::json::exception&) {
      fail("{}: line {} is not a record of a run", metrics.string(), line_number);
    }
    begin = end + 1;
  }
  return history;
}

std::string curves_svg(const History& history, double steps_per_epoch) {
  io::LineChart loss;
  loss.title = "Loss";
  loss.x_label = "epoch";
  loss.y_label = "cross-entropy";
  add_named(loss.series, loss_curve(history.steps, steps_per_epoch, curve_points), "training", 0, true);
  if (history.steps.size() > curve_points / 4) {
    add_named(loss.series, loss_curve(history.steps, steps_per_epoch, curve_points / 12), "", 0);
  }
  io::LineChart accuracy;
  accuracy.title = "Accuracy";
  accuracy.x_label = "epoch";
  accuracy.y_label = "% of the pictures";
  accuracy.y_min = 0;
  accuracy.y_max = 100;
  for (const bool ema : {false, true}) {
    const std::string suffix = ema ? " (average)" : "";
    add_named(loss.series, evaluation_curve(history.evaluations, ema, &EvaluationRecord::loss), "evaluation" + suffix,
              ema ? 2 : 1);
    add_named(accuracy.series, evaluation_curve(history.evaluations, ema, &EvaluationRecord::top1), "top-1" + suffix,
              ema ? 2 : 0);
    add_named(accuracy.series, evaluation_curve(history.evaluations, ema, &EvaluationRecord::top5), "top-5" + suffix,
              ema ? 3 : 1);
  }
  return io::line_charts_svg(history.evaluations.empty() ? std::vector{loss} : std::vector{loss, accuracy});
}

RunLog::RunLog(std::filesystem::path folder, std::int64_t keep) : folder_(std::move(folder)) {
  const std::filesystem::path path = folder_ / "metrics.jsonl";
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  check(descriptor_ >= 0, "cannot write '{}': {}", path.string(), system_reason());
  try {
    check(::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK,
          "another process is training in '{}': wait for it or stop it", folder_.string());
    const std::int64_t size = ::lseek(descriptor_, 0, SEEK_END);
    check(size >= keep, "'{}' is shorter ({} bytes) than when the checkpoint was saved ({} bytes)", path.string(), size,
          keep);
    check(::ftruncate(descriptor_, keep) == 0 && ::lseek(descriptor_, keep, SEEK_SET) == keep, "cannot write '{}': {}",
          path.string(), system_reason());
    length_ = keep;
    history_ = read_history(path);
    events_.emplace(folder_, history_.steps.empty() ? 0 : history_.steps.back().step);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

RunLog::~RunLog() { ::close(descriptor_); }

void RunLog::append(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(descriptor_, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      const std::string reason = system_reason();
      // A half line would be no JSON.
      [[maybe_unused]] const int cut = ::ftruncate(descriptor_, length_);
      fail("cannot write '{}': {}", (folder_ / "metrics.jsonl").string(), reason);
    }
    done += static_cast<std::size_t>(written);
  }
  length_ += static_cast<std::int64_t>(text.size());
}

void RunLog::add(const StepRecord& record) {
  append(to_json(record));
  events_->scalar("train/loss", record.step, record.loss);
  events_->scalar("train/lr", record.step, record.lr);
  events_->scalar("train/images_per_second", record.step, record.images_per_second);
  if (record.grad_norm) {
    events_->scalar("train/grad_norm", record.step, *record.grad_norm);
  }
  history_.steps.push_back(record);
}

void RunLog::add(const EvaluationRecord& record) {
  append(to_json(record));
  const std::string group = record.ema ? "evaluation_ema/" : "evaluation/";
  events_->scalar(group + "loss", record.step, record.loss);
  events_->scalar(group + "top1", record.step, record.top1);
  events_->scalar(group + "top5", record.step, record.top5);
  history_.evaluations.push_back(record);
}

std::int64_t RunLog::commit(double steps_per_epoch) {
  check(::fsync(descriptor_) == 0 || errno == EINVAL, "cannot write '{}': {}", (folder_ / "metrics.jsonl").string(),
        system_reason());
  events_->flush();
  if (!history_.steps.empty()) {
    io::write_atomically(folder_ / "curves.svg", curves_svg(history_, steps_per_epoch));
  }
  return length_;
}

}  // namespace vitrail::train
