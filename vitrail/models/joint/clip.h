/// \file
/// Two towers that put images and texts into one space (CLIP: Radford et al. 2021; SigLIP: Zhai et al. 2023).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vitrail/models/text/encoder.h"
#include "vitrail/models/text/token_ids.h"
#include "vitrail/models/vit/vit.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/network.h"
#include "vitrail/nn/pass.h"

namespace vitrail::models {

/// The sizes and parts of a ClipModel.
struct ClipConfig {
  /// Which of transformers' classes determines the parts, their names and initial values.
  enum class Kind { clip, siglip };

  Kind kind = Kind::clip;
  VitConfig vision = {};
  EncoderConfig text = {};
  std::int64_t projection_dim = 512;  ///< of SigLIP, whose vision tower has no projection, that tower's width
  /// The token whose state is that of a text: the first of its kind. Unset: the token with the largest id, as where
  /// transformers' config says 2.
  std::optional<std::int64_t> eos_token_id = 49407;
  /// With what SigLIP's texts are filled up to max_positions, where the tokenizer does not say it.
  std::int64_t pad_token_id = 1;
  float logit_scale_init = 2.6592F;  ///< ln(1 / 0.07)
  /// What logit_bias starts as; unset: there is none. transformers' CLIPModel has none; SigLIP's loss learns one.
  std::optional<float> logit_bias = std::nullopt;
  float init_factor = 1;     ///< initializer_factor
  float vision_std = 0.02F;  ///< initializer_range of the vision tower's embeddings
};

/// Learning Transferable Visual Models From Natural Language Supervision (Radford et al. 2021), transformers'
/// CLIPModel: a Vision Transformer, whose class token is the image's state, and a causal transformer, whose end token
/// is the text's; each is projected, without a bias, and divided by its length,
///
/// ```text
/// image_embeds = unit(W_v vision(x)₀),   text_embeds = unit(W_t text(ids)_end),
/// logits_per_image = e^logit_scale · image_embeds · text_embedsᵀ (+ logit_bias)
/// ```
///
/// SiglipModel (Zhai et al. 2023) is the same but for the states: an image's is that of its attention pooling, without
/// a projection; in a text, which has max_positions tokens with its padding, each token sees all, and the state is that
/// of the last one, projected with a bias.
///
/// Parameters: those of the towers below `vision_model` and `text_model`, in whose blocks they have timm's names;
/// `visual_projection`, `text_projection`, `logit_scale` [], of SigLIP `text_model.head`, `logit_scale` [1] and
/// `logit_bias` [1]; checkpoints have transformers' names (clip_folder.h). They start as transformers' do.
class ClipModel final : public nn::Network {
 public:
  /// Throws Error if the arguments contradict each other.
  explicit ClipModel(const ClipConfig& config, const nn::StoreOptions& store = {});

  /// The vectors [B, projection_dim] f32 of length 1 of images x [B, C, H, W], normalized.
  Tensor image_embeds(const Tensor& x, nn::Pass& pass) const;
  /// Those of texts, [S, projection_dim]. Throws Error, naming it, for a text without an end token. Those
  /// of SigLIP have max_positions() tokens, the padding included.
  Tensor text_embeds(const Texts& texts, nn::Pass& pass) const;
  /// The logits [images, texts] f32 of such vectors.
  Tensor logits_per_image(const Tensor& image_embeds, const Tensor& text_embeds) const;

  /// How likely the texts are: of all of an image's logits their softmax, or, where there is a logit_bias, the sigmoid
  /// of each, since the loss has asked of each pair by itself whether it belongs together.
  Tensor probabilities(const Tensor& logits_per_image) const;

  const VisionTransformer& vision() const { return *vision_; }
  const Encoder& text() const { return *text_; }
  const ClipConfig& config() const { return config_; }
  const Tensor& logit_scale() const { return logit_scale_; }
  const Tensor& logit_bias() const { return logit_bias_; }  ///< undefined if there is none
  /// The longest text, with the tokens at its ends.
  std::int64_t max_positions() const { return config_.text.max_positions; }
  bool is_siglip() const { return config_.kind == ClipConfig::Kind::siglip; }

  /// The blocks of the deeper tower; the last blocks of the other one count as its last ones.
  std::int64_t depth() const override;
  std::int64_t layer_of(const std::string& parameter) const override;
  /// As in open_clip, all matrices decay, embeddings too.
  bool no_weight_decay(const std::string& /*parameter*/) const override { return false; }
  bool is_head(const std::string& parameter) const override;

 private:
  ClipConfig config_;
  std::optional<VisionTransformer> vision_;
  std::optional<Encoder> text_;
  std::optional<nn::Linear> visual_projection_;
  std::optional<nn::Linear> text_projection_;
  Tensor logit_scale_;
  Tensor logit_bias_;
};

}  // namespace vitrail::models
