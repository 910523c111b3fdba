/// \file
/// What `vitrail predict` and `vitrail eval` do with a model that captions images.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/cli/flags.h"
#include "vitrail/models/recurrent/captioner.h"

namespace vitrail::cli {

/// Whether the flags name the folder of such a model.
bool is_captioner(const ModelFlags& flags);
/// Loads it, with the flags' way of preparing images. Throws UsageError for flags that it does not take.
std::unique_ptr<models::Captioner> open_captioner(const ModelFlags& flags);

/// What `vitrail predict` is asked for about captions.
struct PredictCaptionsFlags {
  std::vector<std::string> images;
  std::int64_t batch_size = 64;
  bool skip_broken = false;
  std::string format = "text";
};
/// Prints what the model says about images.
void predict_captions(const ModelFlags& model, const ComputeFlags& compute, const PredictCaptionsFlags& flags);

/// Prints how many captions of a data set are right, and the loss.
void evaluate_captioner(const ModelFlags& model, const ComputeFlags& compute, const DataFlags& data, bool json);

}  // namespace vitrail::cli
