/// \file
/// What `vitrail predict` and `vitrail eval` do with a model that captions images.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/cli/flags.h"
#include "vitrail/models/joint/captioner.h"
#include "vitrail/train/captions/captions.h"

namespace vitrail::cli {

/// Loads it, with the flags' way of preparing images. Throws UsageError for flags that it does not take.
std::unique_ptr<models::Captioner> open_captioner(const ModelFlags& flags);

/// What `vitrail caption` and `vitrail predict` are asked for about captions.
struct CaptionFlags {
  ModelFlags model;
  ComputeFlags compute;
  std::vector<std::string> images;
  std::optional<std::int64_t> num_beams, num_return_sequences, max_new_tokens, no_repeat_ngram_size;
  std::optional<double> length_penalty;
  std::string early_stopping;
  std::optional<std::uint64_t> seed;
  std::int64_t batch_size = 64;
  bool skip_broken = false;
  std::string format = "text";
  bool attention = false;
  std::optional<std::int64_t> layer, head;
  std::string output;
};
/// How captions are written: as the model's folder says, with what the flags change.
train::CaptionOptions caption_options_of(const CaptionFlags& flags, const models::Captioner& model, DType dtype);
/// Prints what the model says about images, and draws where it looked.
void caption_images(const CaptionFlags& flags);

/// Prints how good the captions of a data set are that a search with so many beams finds, and else is as the model's
/// folder says, and the loss.
void evaluate_captioner(const ModelFlags& model, const ComputeFlags& compute, const DataFlags& data,
                        std::int64_t num_beams, bool json);

}  // namespace vitrail::cli
