/// \file
/// `vitrail attention --text`: which word looks at which.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vitrail/tensor/dtype.h"

namespace vitrail::cli {

/// What draw_text_attention() is told.
struct TextAttentionFlags {
  std::string model;      ///< folder of a text model with its tokenizer, or a run
  std::string text;       ///< what it reads
  bool truncate = false;  ///< whether a text that is too long for the model is cut
  std::string output;     ///< folder for the drawings
  std::string raw;        ///< file for the probabilities; empty: none
  std::optional<std::int64_t> layer;
  std::optional<std::int64_t> head;
  DType dtype = DType::f32;
};

/// Draws all attentions of a text model that reads a text; of a translator also those of its translation.
void draw_text_attention(const TextAttentionFlags& flags);

}  // namespace vitrail::cli
