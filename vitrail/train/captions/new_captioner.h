/// \file
/// The captioner that a training begins with.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/models/joint/captioner.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/train/captions/caption.h"

namespace vitrail::train {

/// The --decoder that is none of the recurrent cells.
inline constexpr const char* transformer_decoder = "gpt2";

/// A captioner with the tokenizer of its texts.
struct MadeCaptioner {
  std::unique_ptr<models::Captioner> model;
  text::Tokenizer tokenizer;
};
/// That of a checkpoint or of the folder that options.model names, or the image model that it names with a new decoder,
/// whose tokenizer may be one that is learned from `captions`, those of each image. Throws Error if the options do not
/// fit what is there.
MadeCaptioner make_captioner(const CaptionTaskOptions& options, const std::filesystem::path& checkpoint,
                             const std::vector<std::vector<std::string>>& captions);

}  // namespace vitrail::train
