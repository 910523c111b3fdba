/// \file
/// The figure by which a run chooses its best network, and its figures as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/train/figures.h"

namespace vitrail::train {

/// Holds the kinds of the figures of a task, and which of them is the metric. Without any figures, the metric is the
/// training loss.
class Judge {
 public:
  /// `wanted` is the name of the metric; empty for the first of `kinds`. Throws Error, naming --eval-metric, if there
  /// is no figure of that name.
  Judge(std::vector<FigureKind> kinds, const std::string& wanted);

  bool evaluates() const { return !kinds_.empty(); }
  const FigureKind& metric() const { return metric_; }
  const std::vector<FigureKind>& kinds() const { return kinds_; }
  /// The figures as text: "evaluation loss 0.1234, top-1 12.34 %"; of the moving average, "average's loss …". The loss
  /// comes first, since it follows the loss of the training.
  std::string text(const Figures& figures, bool average) const;
  /// Which network is kept as the best: "best top-1 12.34 % in epoch 3", or the latest where no figure tells.
  std::string kept(double value, std::int64_t epoch, bool latest) const;

 private:
  std::vector<FigureKind> kinds_;
  FigureKind metric_;
};

}  // namespace vitrail::train
