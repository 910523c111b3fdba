/// \file
/// The decoder of BLIP (Li et al. 2022), which writes answers and captions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "vitrail/models/joint/blip_text.h"
#include "vitrail/models/text/language_body.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/pass.h"

namespace vitrail::models {

/// A BlipText of which no token sees a later one, and BERT's head,
///
/// ```text
/// logits = E norm(gelu(W x + b)) + c,   E the embedding of the tokens
/// ```
///
/// Parameters: `bert.…` and `cls.predictions.{transform.dense,transform.LayerNorm,bias}`.
class BlipDecoder {
 public:
  BlipDecoder(const nn::Scope& scope, const BlipTextConfig& config);

  /// The logits [B, N, V] f32 of the token that follows each of texts [B, N], beside such sources. No token sees a
  /// later one, so that padding behind a text changes nothing.
  Tensor logits(const Texts& texts, const BlipText::Sources& sources, nn::Pass& pass) const;
  /// The logits [B, V] f32 of the token after the last of ids [B, N], which continue those of a CrossDecoderState.
  /// Throws Error if the state is another model's.
  Tensor forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const;

  const BlipText& text() const { return *text_; }
  /// About how much memory a state holds of a text of so many tokens beside `context` of them.
  std::size_t state_bytes(std::int64_t context, std::int64_t tokens, DType dtype) const;
  /// Multiply-accumulates of a token, of which the attention to what it looks at are few.
  std::int64_t flops() const;

 private:
  Tensor head(const Tensor& states) const;

  std::optional<BlipText> text_;
  std::optional<nn::Linear> transform_;
  std::optional<nn::Norm> transform_norm_;
  Tensor bias_;
};

}  // namespace vitrail::models
