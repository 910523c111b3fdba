/// \file
/// Named figures: the numbers that an evaluation yields, whatever the task.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::train {

/// Describes a figure before it has a value: its names, and how it is printed, compared and drawn.
struct FigureKind {
  std::string name;       ///< in metrics.jsonl, TensorBoard and --eval-metric: "top1"
  std::string label;      ///< for people: "top-1"
  std::string unit = "";  ///< printed behind the value: "%"; empty: no unit
  int decimals = 4;       ///< how many are printed
  bool higher_is_better = false;
  std::string chart = "Loss";           ///< title of the chart of curves.svg that shows the figure
  std::string axis = "loss";            ///< label of that chart's vertical axis
  std::optional<double> axis_max = {};  ///< the largest value on that axis, which then begins at 0
};

struct Figure {
  std::string name;
  double value = 0;
};
/// The figures of one evaluation, in the order in which they are recorded.
using Figures = std::vector<Figure>;

/// The value of the figure `name`; NaN if there is none of that name.
double figure(const Figures& figures, std::string_view name);
const FigureKind* find_figure(const std::vector<FigureKind>& kinds, std::string_view name);  ///< null if there is none

/// The names of the figures for a message: "top1, top5, loss".
std::string figure_names(const std::vector<FigureKind>& kinds);
/// The value with the decimals and the unit of its kind: "12.34 %", "0.1234".
std::string figure_text(const FigureKind& kind, double value);
/// Whether the value `a` of a figure is better than `b`. NaN is worse than anything.
bool is_better(const FigureKind& kind, double a, double b);

/// The kind of a share of what is right, in per cent; the axis says of what: "% of the words".
FigureKind accuracy_figure(std::string name, std::string label, std::string axis);
/// The kind of the loss that training minimizes. Curves show the loss of evaluations beside that of training.
FigureKind loss_figure(std::string axis = "loss");

}  // namespace vitrail::train
