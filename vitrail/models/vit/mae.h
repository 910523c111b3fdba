/// \file
/// Masked autoencoders: Vision Transformers that learn from images without labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/vit/vit.h"

namespace vitrail::models {

/// The "model_type" of transformers' ViTMAEForPreTraining.
inline constexpr const char* mae_type = "vit_mae";

/// The arguments of a masked autoencoder.
struct MaeConfig {
  VitConfig encoder;                   ///< plain (not_plain()); only its sizes, activation and norms are used
  std::int64_t decoder_dim = 512;      ///< transformers' decoder_hidden_size
  std::int64_t decoder_depth = 8;      ///< decoder_num_hidden_layers
  std::int64_t decoder_heads = 16;     ///< decoder_num_attention_heads
  std::int64_t decoder_hidden = 2048;  ///< decoder_intermediate_size, of its Mlp
  double mask_ratio = 0.75;            ///< fraction of the patches that the encoder does not see
  bool norm_pix_loss = false;          ///< the targets are patches normalized by their own mean and deviation
};

/// Which patches of a batch are visible. Indices are flat: patch n of image b is row b N + n of all patches.
struct Masking {
  std::int64_t batch = 0;
  std::int64_t patches = 0;  ///< N
  std::int64_t visible = 0;  ///< K = ⌊N (1 - mask_ratio)⌋ of them are visible
  Tensor kept;               ///< [B, K] i64: rows of the visible patches, in the order in which the encoder takes them
  Tensor hidden;             ///< [B, N - K] i64: rows of the others

  /// [B, N] i64: the row of each patch among the tokens that the decoder gets before it restores the order, which are
  /// [class, visible, mask …] of one image after the other.
  Tensor restore;
};

/// Masked Autoencoders Are Scalable Vision Learners (He et al. 2022), transformers' ViTMAEForPreTraining. A random part
/// of the patches of x [B, C, H, W] is hidden; the encoder sees only the others,
///
/// ```text
/// latent = norm(blocks([class; patches visible + positions]))              [B, 1 + K, D]
/// ```
///
/// and a light decoder puts one learned token into the places of the hidden patches and predicts their pixels:
///
/// ```text
/// y = decoder_norm(decoder_blocks([decoder_embed(latent); mask tokens] in order + decoder positions))
/// loss = mean over hidden patches of (decoder_pred(y) - pixels)²
/// ```
///
/// The positions are fixed sine-cosine ones. The parameters have the names of the reference code
/// (https://github.com/facebookresearch/mae, models_mae.py), which are timm's for the encoder; checkpoints have the
/// names of transformers (huggingface_names.cpp).
///
/// As an ImageModel it is its encoder without a classifier and gives the features of the class token, computed from all
/// patches. The recorder gets the features and attention maps of the encoder's blocks, for the tokens that they see,
/// and those of the decoder's.
class MaskedAutoencoder {
 public:
  /// Throws Error if the arguments contradict each other, or if the encoder is not a plain one.
  MaskedAutoencoder(const nn::Scope& scope, const MaeConfig& config);

  /// The masking that keeps the patches with the smallest `noise` visible. `noise` is [B, N] f32; throws Error if it
  /// has another shape.
  Masking masking(const Tensor& noise) const;
  /// The masking by uniform noise from the random stream.
  Masking random_masking(std::int64_t batch, RandomStream& random) const;

  /// Encodes the class token and the visible patches of x [B, C, H, W]: [B, 1 + K, D] in the pass's dtype.
  Tensor encode(const Tensor& x, const Masking& masking, nn::Pass& pass) const;
  /// Decodes the encoder's output [B, 1 + K, D] to the tokens that decoder_norm gets, [B, 1 + N, decoder_dim].
  Tensor decode(const Tensor& latent, const Masking& masking, nn::Pass& pass) const;
  /// The predicted pixels of all patches, transformers' `logits`: [B, N, p₀ p₁ C] f32 in the order row, column,
  /// channel, and normalized for each patch if norm_pix_loss is set.
  Tensor predict(const Tensor& x, const Masking& masking, nn::Pass& pass) const;
  /// The loss that pre-training minimizes: a scalar f32.
  Tensor loss(const Tensor& x, const Masking& masking, nn::Pass& pass) const;
  /// The prediction as images [B, C, H, W] in x's normalization; visible patches are those of x.
  Tensor reconstruct(const Tensor& x, const Masking& masking, nn::Pass& pass) const;
  /// Returns x with the hidden patches filled with the value `fill` (in x's normalization).
  Tensor masked(const Tensor& x, const Masking& masking, float fill = 0) const;

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const { return encoder_->forward_features(x, pass); }
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const {
    return encoder_->forward_head(features, pass, pre_logits);
  }
  Tensor forward(const Tensor& x, nn::Pass& pass) const { return encoder_->forward(x, pass); }

  std::int64_t num_classes() const { return 0; }
  std::int64_t num_features() const { return encoder_->num_features(); }
  std::int64_t depth() const { return encoder_->depth(); }
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const {
    return encoder_->token_layout(height, width);
  }
  /// The FLOPs of forward(): the encoder on all patches.
  std::int64_t flops(std::int64_t height, std::int64_t width) const { return encoder_->flops(height, width); }
  /// The FLOPs of loss(): the encoder on the visible patches, and the decoder.
  std::int64_t pretraining_flops() const;
  /// The layers are those of the encoder. There is no no_weight_decay(): as in the reference, all parameters decay
  /// except norms and biases.
  std::int64_t layer_of(const std::string& parameter) const { return encoder_->layer_of(parameter); }
  bool is_head(const std::string& /*parameter*/) const { return false; }
  bool takes_any_size() const { return false; }
  const MaeConfig& config() const { return config_; }

 private:
  nn::Size2 grid() const;
  std::int64_t patches() const { return grid()[0] * grid()[1]; }
  std::int64_t patch_pixels() const;  ///< how many numbers a patch has: p₀ p₁ C
  Tensor cut(const Tensor& x) const;
  Tensor target(const Tensor& patches) const;
  Tensor pixels(const Tensor& patches) const;
  Tensor assemble(const Tensor& patches) const;

  nn::Scope scope_;
  MaeConfig config_;
  std::optional<VisionTransformer> encoder_;
  Tensor mask_token_;         ///< [1, 1, decoder_dim]
  Tensor decoder_pos_embed_;  ///< [1, 1 + N, decoder_dim], fixed
  std::optional<nn::Linear> decoder_embed_;
  std::vector<nn::Block> decoder_blocks_;
  std::optional<nn::Norm> decoder_norm_;
  std::optional<nn::Linear> decoder_pred_;
};

/// The masked autoencoder in a model, or null if the model is none.
const MaskedAutoencoder* masked_autoencoder(const Model& model);
inline bool is_masked_autoencoder(const Model& model) { return masked_autoencoder(model) != nullptr; }

/// The options of a masked autoencoder besides those of its encoder; unset: MaeConfig's.
struct MaeOptions {
  std::optional<double> mask_ratio = {};
  std::optional<bool> norm_pix_loss = {};
  std::optional<std::int64_t> decoder_dim = {};
  std::optional<std::int64_t> decoder_depth = {};
  std::optional<std::int64_t> decoder_heads = {};
};
/// Creates a masked autoencoder around the Vision Transformer `name_or_folder` (a name of timm's) with the options
/// `create`, except for its classes; or, if `name_or_folder` is the folder of a masked autoencoder, loads it. Such a
/// folder is written by transformers' save_pretrained() or by save_model(); only its mask ratio and its loss can be
/// changed. Throws Error if there is no such model.
Model open_masked_autoencoder(const std::string& name_or_folder, const CreateOptions& create = {},
                              const MaeOptions& options = {});

}  // namespace vitrail::models
