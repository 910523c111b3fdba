#include "vitrail/train/figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace vitrail::train {

double figure(const Figures& figures, std::string_view name) {
  const auto it = std::ranges::find(figures, name, &Figure::name);
  return it == figures.end() ? std::numeric_limits<double>::quiet_NaN() : it->value;
}

const FigureKind* find_figure(const std::vector<FigureKind>& kinds, std::string_view name) {
  const auto it = std::ranges::find(kinds, name, &FigureKind::name);
  return it == kinds.end() ? nullptr : &*it;
}

std::string figure_names(const std::vector<FigureKind>& kinds) {
  std::string names;
  for (const FigureKind& kind : kinds) {
    names += (names.empty() ? "" : ", ") + kind.name;
  }
  return names;
}

std::string figure_text(const FigureKind& kind, double value) {
  if (std::isnan(value)) {  // a mean of nothing
    return "–";
  }
  return fmt::format("{:.{}f}{}{}", value, kind.decimals, kind.unit.empty() ? "" : " ", kind.unit);
}

bool is_better(const FigureKind& kind, double a, double b) {
  return !std::isnan(a) && (std::isnan(b) || (kind.higher_is_better ? a > b : a < b));
}

FigureKind accuracy_figure(std::string name, std::string label, std::string axis) {
  return {.name = std::move(name),
          .label = std::move(label),
          .unit = "%",
          .decimals = 2,
          .higher_is_better = true,
          .chart = "Accuracy",
          .axis = std::move(axis),
          .axis_max = 100};
}

FigureKind loss_figure(std::string axis) {
  return {.name = "loss", .label = "loss", .unit = "", .axis = std::move(axis)};
}

}  // namespace vitrail::train
