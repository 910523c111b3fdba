/// \file
/// The curves of a run as an SVG file.
#pragma once

#include <string>

#include "vitrail/train/run/records.h"

namespace vitrail::train {

/// The training loss and the figures of evaluations over epochs of `steps_per_epoch` updates, as SVG, with a chart for
/// each FigureKind::chart.
std::string curves_svg(const History& history, const RecordKind& kind, double steps_per_epoch);

}  // namespace vitrail::train
