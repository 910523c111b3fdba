/// \file
/// What `vitrail predict` and `vitrail eval` do with a model of sets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/cli/flags.h"

namespace vitrail::cli {

/// What `vitrail predict` is asked for about sets.
struct PredictSetsFlags {
  std::vector<std::string> sources;  ///< .jsonl files, "sets:…", or sets themselves: "[0.3, 0.1]", "[[0.3, 0.1], …]"
  std::int64_t batch_size = 64;
  std::string format = "text";
};
/// Prints what the model says of sets: a line for each, or for each element that is said.
void predict_sets(const ModelFlags& model, const ComputeFlags& compute, const PredictSetsFlags& flags);

/// Prints how good the model is on the sets of a data set; with `output`, writes a folder with eval.json and sets.svg.
void evaluate_sets(const ModelFlags& model, const ComputeFlags& compute, const DataFlags& data,
                   const std::string& output, bool json);

}  // namespace vitrail::cli
