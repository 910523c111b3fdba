#include "vitrail/train/run/curves.h"

#include <algorithm>
#include <utility>

#include "vitrail/io/charts/chart.h"

namespace vitrail::train {
namespace {

constexpr std::size_t curve_points = 500;

// The losses of many steps as few points, each the mean over a span of steps, so that the curve is readable.
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

io::Series evaluation_curve(const std::vector<EvaluationRecord>& all, bool ema, const std::string& name) {
  io::Series series;
  series.points = true;
  for (const EvaluationRecord& record : all) {
    if (record.ema == ema) {
      series.x.push_back(static_cast<double>(record.epoch));
      series.y.push_back(figure(record.figures, name));
    }
  }
  return series;
}

void add_named(std::vector<io::Series>& list, io::Series series, std::string name, std::size_t color,
               bool faint = false) {
  if (!series.x.empty()) {
    series.name = std::move(name);
    series.color = static_cast<int>(color);
    series.faint = faint;
    list.push_back(std::move(series));
  }
}

io::LineChart loss_chart(const History& history, const RecordKind& kind, double steps_per_epoch) {
  io::LineChart chart;
  chart.title = "Loss";
  chart.y_label = kind.loss_axis;
  add_named(chart.series, loss_curve(history.steps, steps_per_epoch, curve_points), "training", 0, true);
  if (history.steps.size() > curve_points / 4) {
    add_named(chart.series, loss_curve(history.steps, steps_per_epoch, curve_points / 12), "", 0);
  }
  return chart;
}

// Adds the curves of the figures that belong to this chart; those of the moving average come after the others.
void add_figures(io::LineChart& chart, const History& history, const std::vector<FigureKind>& kinds) {
  std::vector<const FigureKind*> here;
  for (const FigureKind& kind : kinds) {
    if (kind.chart == chart.title) {
      here.push_back(&kind);
      chart.y_max = kind.axis_max;
      chart.y_min = kind.axis_max ? std::optional(0.0) : std::nullopt;
    }
  }
  const std::size_t first = chart.series.empty() ? 0 : 1;  // the training loss has the first colour
  for (const bool ema : {false, true}) {
    for (std::size_t i = 0; i < here.size(); ++i) {
      // The loss of evaluations is labelled by its origin, as it is drawn beside the training loss.
      const std::string label = here[i]->name == "loss" ? "evaluation" : here[i]->label;
      add_named(chart.series, evaluation_curve(history.evaluations, ema, here[i]->name),
                label + (ema ? " (average)" : ""), first + i + (ema ? here.size() : 0));
    }
  }
}

}  // namespace

std::string curves_svg(const History& history, const RecordKind& kind, double steps_per_epoch) {
  std::vector<io::LineChart> charts = {loss_chart(history, kind, steps_per_epoch)};
  if (!history.evaluations.empty()) {
    for (const FigureKind& figure : kind.figures) {
      if (std::ranges::find(charts, figure.chart, &io::LineChart::title) == charts.end()) {
        io::LineChart& chart = charts.emplace_back();
        chart.title = figure.chart;
        chart.y_label = figure.axis;
      }
    }
    for (io::LineChart& chart : charts) {
      add_figures(chart, history, kind.figures);
    }
  }
  for (io::LineChart& chart : charts) {
    chart.x_label = "epoch";
  }
  return io::line_charts_svg(charts);
}

}  // namespace vitrail::train
