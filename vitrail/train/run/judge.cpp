#include "vitrail/train/run/judge.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vitrail/tensor/error.h"

namespace vitrail::train {

Judge::Judge(std::vector<FigureKind> kinds, const std::string& wanted) : kinds_(std::move(kinds)) {
  if (kinds_.empty()) {
    metric_ = loss_figure();
    metric_.label = "training loss";
    return;
  }
  const FigureKind* found = find_figure(kinds_, wanted.empty() ? kinds_.front().name : wanted);
  if (found == nullptr) {
    fail("--eval-metric must be one of {}, not '{}'", figure_names(kinds_), wanted);
  }
  metric_ = *found;
}

std::string Judge::text(const Figures& figures, bool average) const {
  std::vector<std::string> parts;
  for (const Figure& one : figures) {
    const FigureKind* kind = find_figure(kinds_, one.name);
    std::string part = kind == nullptr ? fmt::format("{} {}", one.name, one.value)
                                       : fmt::format("{} {}", kind->label, figure_text(*kind, one.value));
    parts.insert(one.name == "loss" ? parts.begin() : parts.end(), std::move(part));
  }
  return fmt::format("{} {}", average ? "average's" : "evaluation", fmt::join(parts, ", "));
}

std::string Judge::kept(double value, std::int64_t epoch, bool latest) const {
  return latest ? "no figure tells which network is best, and the latest one is kept"
                : fmt::format("best {} {} in epoch {}", metric_.label, figure_text(metric_, value), epoch);
}

}  // namespace vitrail::train
