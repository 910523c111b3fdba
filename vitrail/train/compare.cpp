#include "vitrail/train/compare.h"

#include <algorithm>
#include <utility>

#include "vitrail/io/chart.h"
#include "vitrail/models/model.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/options.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The curve of one run over `x` of its evaluations.
template <class X>
io::Series top1_curve(const RunSummary& run, X x) {
  io::Series series{.name = run.name, .x = {}, .y = {}, .points = true};
  for (const EvaluationRecord& record : run.evaluations) {
    series.x.push_back(x(record));
    series.y.push_back(record.top1);
  }
  return series;
}

}  // namespace

RunSummary read_run(const fs::path& folder) {
  const fs::path metrics = folder / "metrics.jsonl";
  check(fs::exists(metrics), "'{}' is not a run folder: it has no metrics.jsonl", folder.string());
  RunSummary run;
  const fs::path whole = fs::absolute(folder).lexically_normal();
  run.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();  // "runs/a/" has none
  History history = read_history(metrics);
  run.evaluations = std::move(history.evaluations);
  std::erase_if(run.evaluations, [](const EvaluationRecord& record) { return record.ema; });
  check(!run.evaluations.empty() && !history.steps.empty(), "'{}' has no evaluation to compare yet", folder.string());
  run.last = run.evaluations.back();
  run.best = *std::ranges::max_element(run.evaluations, {}, &EvaluationRecord::top1);
  std::vector<double> rates;
  for (const StepRecord& step : history.steps) {
    rates.push_back(step.images_per_second);
  }
  run.images_per_second = median(std::move(rates));
  const TrainOptions options = options_from_toml(folder / "config.toml");
  run.seconds =
      static_cast<double>(run.last.step * options.batch_size * options.grad_accum_steps) / run.images_per_second;
  const models::Model model = models::load_model(folder / "last");
  run.architecture = model.architecture;
  run.parameters = model.net->parameters.count();
  run.flops = model.net->flops(model.pretrained.height, model.pretrained.width);
  return run;
}

std::string comparison_svg(const std::vector<RunSummary>& runs) {
  io::LineChart over_time;
  over_time.title = "Accuracy over time";
  over_time.x_label = "minutes of training";
  over_time.y_label = "top-1, %";
  io::LineChart over_epochs = over_time;
  over_epochs.title = "Accuracy over epochs";
  over_epochs.x_label = "epoch";
  for (const RunSummary& run : runs) {
    const double minutes_a_step = run.seconds / 60 / static_cast<double>(run.last.step);
    over_time.series.push_back(top1_curve(
        run, [&](const EvaluationRecord& record) { return static_cast<double>(record.step) * minutes_a_step; }));
    over_epochs.series.push_back(
        top1_curve(run, [](const EvaluationRecord& record) { return static_cast<double>(record.epoch); }));
  }
  return io::line_charts_svg({over_time, over_epochs});
}

}  // namespace vitrail::train
