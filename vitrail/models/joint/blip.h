/// \file
/// BLIP that answers questions (Li et al. 2022): a picture's tokens, a question that looks at them, and a decoder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/models/joint/blip_decoder.h"
#include "vitrail/models/joint/blip_text.h"
#include "vitrail/models/text/language_body.h"
#include "vitrail/models/text/text_network.h"
#include "vitrail/models/vit/vit.h"
#include "vitrail/nn/network.h"
#include "vitrail/nn/pass.h"

namespace vitrail::models {

/// The sizes of a Blip, or of a BlipCaptioner.
struct BlipConfig {
  VitConfig vision = {};
  BlipTextConfig text = {};
  std::int64_t bos_token_id = 30522;  ///< with which the decoder begins, [DEC]
  std::int64_t sep_token_id = 102;    ///< which ends what it writes
  std::int64_t pad_token_id = 0;
};

/// transformers' BlipForQuestionAnswering:
///
/// ```text
/// image = vision(x)                               [B, 1 + patches, D], the class token first
/// question = text_encoder(ids, image)             every token of a question sees all others, and the image
/// logits = head(text_decoder(answer, question))   the decoder looks at the question's states, not at the image
/// ```
///
/// Parameters: `vision_model` with timm's names inside, `text_encoder`, and `text_decoder` (BlipDecoder). Checkpoints
/// have transformers' names (blip_folder.h).
class Blip final : public nn::Network {
 public:
  explicit Blip(const BlipConfig& config, const nn::StoreOptions& store = {});

  /// What the decoder looks at: states [B, M, D], of which the first lengths [B] are real (undefined: all).
  struct Context {
    Tensor states;
    Tensor lengths = {};
  };
  /// The tokens [B, 1 + patches, D] of images x [B, C, H, W], normalized.
  Tensor image_states(const Tensor& x, nn::Pass& pass) const;
  /// The states of questions about such images, one each, with the lengths of the questions. transformers 5.23 shows
  /// the decoder also the states of padding, in forward() as in generate(), so that an answer depends on what else is
  /// in the batch; to get the same, drop the lengths.
  /// With `rows` [B] i64, question b is about the image rows[b].
  Context question_states(const Texts& questions, const Tensor& image_states, nn::Pass& pass,
                          const Tensor& rows = {}) const;
  /// The context of images x and of a question about each.
  Context context(const Tensor& x, const Texts& questions, nn::Pass& pass) const;
  /// The logits [B, N, V] f32 of the token that follows each of answers [B, N].
  Tensor logits(const Texts& texts, const Context& context, nn::Pass& pass) const;

  const VisionTransformer& vision() const { return *vision_; }
  const BlipText& question() const { return *question_; }
  const BlipDecoder& decoder() const { return *decoder_; }
  const BlipConfig& config() const { return config_; }

  std::int64_t depth() const override;
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& /*parameter*/) const override { return false; }
  bool is_head(const std::string& parameter) const override;

 private:
  BlipConfig config_;
  std::optional<VisionTransformer> vision_;
  std::optional<BlipText> question_;
  std::optional<BlipDecoder> decoder_;
};

/// A Blip with a context, as one that continues texts about it: begin() has a text for each of the B contexts.
class BlipWriting final : public LanguageBody {
 public:
  /// The model must outlive this object.
  BlipWriting(const Blip& model, Blip::Context context, DType dtype)
      : model_(model), context_(std::move(context)), dtype_(dtype) {}

  std::unique_ptr<TextState> begin(std::optional<DType> cache = std::nullopt) const override;
  Tensor forward(const Tensor& ids, nn::Pass& pass, TextState* state) const override;
  Tensor forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const override;
  std::int64_t vocab_size() const override { return model_.config().text.vocab_size; }
  std::int64_t max_positions() const override { return model_.config().text.max_positions; }
  std::size_t state_bytes(std::int64_t tokens, DType dtype) const override;

 private:
  const Blip& model_;
  Blip::Context context_;
  DType dtype_;
};

}  // namespace vitrail::models
