/// \file
/// Images that a run does not learn, to evaluate on, where its data have no part for that.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/held_out.h"
#include "vitrail/train/image_options.h"

namespace vitrail::train {

/// How a task opens what it evaluates on.
struct EvaluationSources {
  std::function<void()> open_dir;   ///< --val-dir
  std::function<void()> open_part;  ///< --val-split of --data-dir
  std::function<bool()>
      is_all_for_training;  ///< whether --data-dir has no part of what the task reads but for training
};
/// Opens --val-dir or the part --val-split, and returns 0; or returns the share of the training images that is held out
/// in their place: --val-share, or a tenth if nothing was asked for and the data have nothing but for training. A run
/// that goes on holds out what it has held out before. Throws Error if --val-dir would have such a run learn that, and
/// otherwise as with_other_ways() does.
double open_evaluation(const ImageTaskOptions& options, const EvaluationSources& sources);

/// Draws the images that are held out, a `share` of each class (none given: they have none); the same whatever --seed
/// says, so that runs can be compared. Throws Error if --val-share leaves none to learn from or to evaluate on.
data::HeldOut draw_held_out(const ImageTaskOptions& options, double share, const data::Dataset& images,
                            std::span<const std::int64_t> classes = {});
/// What config.toml states about the share that a run holds out, and, if that were `any` images, of what; nothing for a
/// share of 0.
std::vector<std::pair<std::string, std::string>> held_out_facts(const ImageTaskOptions& options, double share,
                                                                bool any);

}  // namespace vitrail::train
