/// \file
/// Images that a run does not learn, to evaluate on, where its data have no part for that.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/held_out.h"
#include "vitrail/train/image_options.h"

namespace vitrail::train {

/// Calls `open`, which opens a part of --data-dir to evaluate on, and returns 0; or returns the share of the training
/// images that is held out in its place: --val-share, or a tenth if nothing was asked for, there is no such part, and
/// `all_for_training` says that the data have none for anything else. Throws Error as with_other_ways() does.
double open_part_or_hold_out(const ImageTaskOptions& options, const std::function<bool()>& all_for_training,
                             const std::function<void()>& open);
/// Draws the images that are held out, a `share` of each class; the same whatever --seed says, so that runs can be
/// compared. Throws Error if none is left to learn from.
data::HeldOut draw_held_out(const ImageTaskOptions& options, double share, std::span<const std::int64_t> classes);
/// The same of `images` that have no classes.
data::HeldOut draw_held_out(const ImageTaskOptions& options, double share, std::int64_t images);
/// What config.toml states about images that were held out: nothing for a share of 0.
std::vector<std::pair<std::string, std::string>> held_out_facts(const ImageTaskOptions& options, double share);

}  // namespace vitrail::train
