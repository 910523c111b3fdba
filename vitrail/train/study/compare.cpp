#include "vitrail/train/study/compare.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/charts/chart.h"
#include "vitrail/io/json.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/toml.h"
#include "vitrail/models/kind.h"
#include "vitrail/models/model.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/median.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/study/evaluate.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// The curve of the `metric` of one run over x(evaluation).
template <class X>
io::Series metric_curve(const RunSummary& run, const FigureKind& metric, X x) {
  check(find_figure(run.records.figures, metric.name) != nullptr, "the run '{}' has no figure '{}'", run.name,
        metric.name);
  io::Series series{.name = run.name, .x = {}, .y = {}, .points = true};
  for (const EvaluationRecord& record : run.evaluations) {
    series.x.push_back(x(record));
    series.y.push_back(figure(record.figures, metric.name));
  }
  return series;
}

// The value of `name` in config.toml, whichever table has it; null if there is none.
nlohmann::json config_value(const nlohmann::json& config, const std::string& name) {
  for (const nlohmann::json& table : config) {
    if (table.is_object() && table.contains(name)) {
      return table[name];
    }
  }
  return nullptr;
}

std::int64_t whole_number_or(const nlohmann::json& value, std::int64_t fallback) {
  return value.is_number_integer() ? value.get<std::int64_t>() : fallback;
}

// A fact as a number; 0 if there is none of that name.
template <class T>
T number_in(const std::map<std::string, std::string>& facts, const std::string& name) {
  T value = 0;
  if (const auto it = facts.find(name); it != facts.end()) {
    std::from_chars(it->second.data(), it->second.data() + it->second.size(), value);
  }
  return value;
}

// Sets architecture, parameters and multiply-accumulates, which not all tasks on texts write down. Earlier versions did
// not either of images, whose model can be loaded instead.
void describe_network(RunSummary& run, const fs::path& folder) {
  const auto facts = read_facts(folder / "config.toml");
  const auto architecture = facts.find("architecture");
  const auto text_model = facts.find("model");
  const auto name = text_model != facts.end() ? text_model : architecture;
  if (facts.contains("flops") && architecture != facts.end()) {
    run.architecture = name->second;
    run.parameters = number_in<std::int64_t>(facts, "parameters");
    run.flops = number_in<std::int64_t>(facts, "flops");
    return;
  }
  const fs::path last = folder / "last";
  if (text_model != facts.end() || !models::has_image_model(models::kind_of(last.string()))) {
    run.architecture = name->second;
    run.parameters = number_in<std::int64_t>(facts, "parameters");
    return;
  }
  const models::Model model = models::load_model(last);
  run.architecture = model.architecture;
  run.parameters = model.net->parameters.count();
  run.flops = model.net->flops(model.pretrained.height, model.pretrained.width);
}

// The options of a config.toml but those in which runs that repeat each other differ.
std::string settings_in(nlohmann::json config) {
  config.erase("facts");
  for (nlohmann::json& table : config) {
    for (const char* key : {"seed", "experiment", "output", "resume"}) {
      if (table.is_object()) {
        table.erase(key);
      }
    }
  }
  return config.dump();
}

// Other data to evaluate on, or else the part, or the share, of those that are learned.
std::string judged_on(const nlohmann::json& config) {
  const auto text = [&](const char* key) {
    const nlohmann::json value = config_value(config, key);
    return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
  };
  const auto joined = [&](std::initializer_list<const char*> keys, std::string_view joint) {
    std::vector<std::string> values;
    std::ranges::transform(keys, std::back_inserter(values), text);
    std::erase(values, "");
    return fmt::format("{}", fmt::join(values, joint));
  };
  const std::string other = joined({"val_dir", "val_data", "val_src", "val_tgt"}, " and ");
  const std::string held = text(held_out_fact);  // of what is learned
  const std::string part = !held.empty()   ? "a share of " + held
                           : other.empty() ? joined({"val_split", "val_share"}, ", ")
                                           : text("val_split");
  return fmt::format("{}{}{}", other.empty() ? joined({"data_dir", "data", "src", "tgt"}, " and ") : other,
                     part.empty() ? "" : ", ", part);
}

// The options of a run, with the arguments of its model among them.
nlohmann::json options_of(const RunSummary& run) {
  nlohmann::json all = nlohmann::json::object();
  const nlohmann::json config = nlohmann::json::parse(run.settings);
  for (const nlohmann::json& table : config) {
    if (table.is_object()) {
      all.update(table);
    }
  }
  if (all.contains("model_kwargs") && all["model_kwargs"].is_string()) {
    const std::string kwargs = all["model_kwargs"].get<std::string>();
    all.erase("model_kwargs");
    all.update(nlohmann::json::parse(kwargs));
  }
  return all;
}

// The first of `names` among options; empty if there is none.
std::string first_option(const nlohmann::json& options, const std::vector<std::string>& names) {
  const auto found = std::ranges::find_if(names, [&](const std::string& name) { return options.contains(name); });
  return found == names.end() ? "" : *found;
}

FigureKind metric_named(const RunSummary& run, const std::string& name) {
  const FigureKind* kind = find_figure(run.records.figures, name);
  if (kind == nullptr) {
    fail("the run '{}' has no figure '{}', only {}", run.name, name, figure_names(run.records.figures));
  }
  return *kind;
}

// Sets the rate at the median step, and the time of all steps up to the last evaluation if each took as long as the
// median one.
void measure_pace(RunSummary& run, const std::vector<StepRecord>& steps, std::int64_t units_a_step) {
  std::vector<double> rates;
  std::vector<double> seconds;
  for (const StepRecord& step : steps) {
    rates.push_back(step.rate);
    seconds.push_back(static_cast<double>(step.units > 0 ? step.units : units_a_step) / step.rate);
  }
  run.rate = median(std::move(rates));
  run.seconds = static_cast<double>(run.last.step) * median(std::move(seconds));
}

}  // namespace

RunSummary read_run(const fs::path& folder, const std::string& metric) {
  const fs::path metrics = folder / "metrics.jsonl";
  check(fs::exists(metrics), "'{}' is not a run folder: it has no metrics.jsonl", folder.string());
  RunSummary run;
  run.name = run_name(folder);
  History history = read_history(metrics);
  run.evaluations = std::move(history.evaluations);
  const bool average = std::ranges::any_of(run.evaluations, &EvaluationRecord::ema);
  std::erase_if(run.evaluations, [&](const EvaluationRecord& record) { return record.ema != average; });
  run.records = read_record_kind(folder / "config.toml").value_or(RecordKind{"images", accuracy_figures(), "loss"});
  check(!run.records.figures.empty(), "the run '{}' is one without evaluation: there are no figures to compare",
        run.name);
  check(!run.evaluations.empty() && !history.steps.empty(), "'{}' has no evaluation to compare yet", folder.string());
  const nlohmann::json config = io::read_toml(folder / "config.toml");
  const nlohmann::json chosen_by = config_value(config, "eval_metric");
  const std::string chosen = chosen_by.is_string() ? chosen_by.get<std::string>() : "";
  run.metric = metric_named(run, !metric.empty()   ? metric
                                 : !chosen.empty() ? chosen
                                                   : run.records.figures.front().name);
  run.last = run.evaluations.back();
  const bool latest = metric.empty() && read_facts(folder / "config.toml")["keeps"] == "latest";
  run.best = latest ? run.last : run.evaluations.front();
  for (const EvaluationRecord& record : run.evaluations) {
    if (!latest &&
        is_better(run.metric, figure(record.figures, run.metric.name), figure(run.best.figures, run.metric.name))) {
      run.best = record;
    }
  }
  measure_pace(run, history.steps,
               whole_number_or(config_value(config, "batch_size"), 64) *
                   whole_number_or(config_value(config, "grad_accum_steps"), 1));
  describe_network(run, folder);
  run.features_precomputed = read_facts(folder / "config.toml").contains("features_precomputed");
  run.settings = settings_in(config);
  run.learning_rate = number_in<double>(read_facts(folder / "config.toml"), "learning_rate");
  run.seed = config_value(config, "seed").dump();
  run.judged_on = judged_on(config);
  return run;
}

std::vector<std::vector<RunSummary>> grouped_by_settings(const std::vector<RunSummary>& runs) {
  std::vector<std::vector<RunSummary>> groups;
  for (const RunSummary& run : runs) {
    const auto same = std::ranges::find(groups, run.settings, [](const auto& group) { return group.front().settings; });
    (same != groups.end() ? *same : groups.emplace_back()).push_back(run);
  }
  return groups;
}

Spread spread_of(const std::vector<double>& values) {
  check(!values.empty(), "the mean of no values");
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) {
    squares += (value - mean) * (value - mean);
  }
  return {mean, values.size() == 1 ? 0 : std::sqrt(squares / (count - 1))};
}

std::string shared_name(const std::vector<RunSummary>& runs) {
  std::string name = runs.front().name;
  for (const RunSummary& run : runs) {
    name.resize(static_cast<std::size_t>(std::ranges::mismatch(name, run.name).in1 - name.begin()));
  }
  name.resize(name.find_last_not_of("-_.") + 1);
  return name.empty() ? runs.front().name : name;
}

double option_of(const RunSummary& run, const std::vector<std::string>& options) {
  const nlohmann::json all = options_of(run);
  const std::string name = first_option(all, options);
  if (name.empty() && std::ranges::find(options, "lr") != options.end() && run.learning_rate > 0) {
    return run.learning_rate;  // the usual one
  }
  if (name.empty()) {
    std::vector<std::string> known;
    for (const auto& [key, value] : all.items()) {
      known.push_back(key);
    }
    fail("the config.toml of the run '{}' sets no {}{}", run.name, io::quoted_list(options),
         io::did_you_mean(options.front(), known));
  }
  const nlohmann::json& value = all[name].is_array() && all[name].size() == 1 ? all[name].front() : all[name];
  check(value.is_number(), "'{}' of the run '{}' is {}, and no number", name, run.name, value.dump());
  return value.get<double>();
}

namespace {

// Runs that are alike but for one option, and the other options that they share.
struct Curve {
  std::string name;
  std::vector<RunSummary> runs;
  nlohmann::json rest;
};

// Adds to the names of curves that are equal the options in which they differ: "conv (sagan_stages [1])".
void tell_apart(std::vector<Curve>& curves) {
  std::map<std::string, std::vector<Curve*>> same;
  for (Curve& curve : curves) {
    same[curve.name].push_back(&curve);
  }
  for (const auto& [name, all] : same) {
    std::set<std::string> differing;
    for (const Curve* curve : all) {
      for (const auto& [key, value] : curve->rest.items()) {
        if (std::ranges::any_of(all, [&, &option = key](const Curve* other) {
              return !other->rest.contains(option) || other->rest[option] != curve->rest[option];
            })) {
          differing.insert(key);
        }
      }
    }
    for (Curve* curve : all) {
      std::vector<std::string> words;
      words.reserve(differing.size());
      for (const std::string& option : differing) {
        words.push_back(curve->rest.contains(option) ? fmt::format("{} {}", option, curve->rest[option].dump())
                                                     : "no " + option);
      }
      curve->name += words.empty() ? "" : fmt::format(" ({})", fmt::join(words, ", "));
    }
  }
}

std::vector<Curve> curves_of(const std::vector<RunSummary>& runs, const std::vector<std::string>& options) {
  std::vector<Curve> curves;
  for (const RunSummary& run : runs) {
    nlohmann::json rest = options_of(run);
    rest.erase(first_option(rest, options));
    const auto same = std::ranges::find(curves, rest, &Curve::rest);
    (same != curves.end() ? *same : curves.emplace_back(Curve{"", {}, std::move(rest)})).runs.push_back(run);
  }
  for (Curve& curve : curves) {
    curve.name = shared_name(curve.runs);
  }
  tell_apart(curves);
  return curves;
}

}  // namespace

std::string by_option_svg(const std::vector<RunSummary>& runs, const std::vector<std::string>& options) {
  const FigureKind& metric = runs.front().metric;
  const std::string over = fmt::format("{}", fmt::join(options, ", "));
  io::LineChart chart;
  chart.title = fmt::format("{} by {}", metric.chart, over);
  chart.x_label = over;
  chart.y_label = metric.label + (metric.unit.empty() ? "" : ", " + metric.unit);
  for (const Curve& curve : curves_of(runs, options)) {
    std::map<double, std::vector<double>> values;
    for (const RunSummary& run : curve.runs) {
      check(find_figure(run.records.figures, metric.name) != nullptr, "the run '{}' has no figure '{}'", run.name,
            metric.name);
      values[option_of(run, options)].push_back(figure(run.best.figures, metric.name));
    }
    io::Series& series = chart.series.emplace_back();
    series.name = curve.name;
    series.points = true;
    for (const auto& [x, all] : values) {
      series.x.push_back(x);
      series.y.push_back(spread_of(all).mean);
    }
  }
  return io::line_charts_svg({chart});
}

std::string comparison_svg(const std::vector<RunSummary>& runs) {
  const FigureKind& metric = runs.front().metric;
  io::LineChart over_time;
  over_time.title = metric.chart + " over time";
  over_time.x_label = "minutes of training";
  over_time.y_label = metric.label + (metric.unit.empty() ? "" : ", " + metric.unit);
  io::LineChart over_epochs = over_time;
  over_epochs.title = metric.chart + " over epochs";
  over_epochs.x_label = "epoch";
  for (const RunSummary& run : runs) {
    const double minutes_a_step = run.seconds / 60 / static_cast<double>(run.last.step);
    over_time.series.push_back(metric_curve(run, metric, [&](const EvaluationRecord& record) {
      return static_cast<double>(record.step) * minutes_a_step;
    }));
    over_epochs.series.push_back(
        metric_curve(run, metric, [](const EvaluationRecord& record) { return static_cast<double>(record.epoch); }));
  }
  return io::line_charts_svg({over_time, over_epochs});
}

}  // namespace vitrail::train
