// Masked autoencoders: a Vision Transformer that learns from pictures without labels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "vitrail/models/vit.h"

namespace vitrail::models {

struct MaeConfig {
  VitConfig encoder;                   // a plain one, without classes (not_plain() in huggingface.h)
  std::int64_t decoder_dim = 512;      // transformers' decoder_hidden_size
  std::int64_t decoder_depth = 8;      // decoder_num_hidden_layers
  std::int64_t decoder_heads = 16;     // decoder_num_attention_heads
  std::int64_t decoder_hidden = 2048;  // decoder_intermediate_size, of its Mlp
  double mask_ratio = 0.75;            // share of the patches that the encoder does not see
  bool norm_pix_loss = false;          // compare with each patch normalized by its own mean and deviation
};

// Which patches of a batch are seen. Flat: patch n of picture b is row b N + n of all patches.
struct Masking {
  std::int64_t batch = 0;
  std::int64_t patches = 0;  // N
  std::int64_t visible = 0;  // K of them, ⌊N (1 - mask_ratio)⌋
  Tensor kept;               // [B, K] i64: rows of the visible patches, in the order in which the encoder takes them
  Tensor hidden;             // [B, N - K] i64: rows of the others
  // [B, N] i64: where each patch is in the decoder's tokens before they are put in order, [class, visible, mask …] of
  // one picture after the other.
  Tensor restore;
};

// Masked Autoencoders Are Scalable Vision Learners (He et al. 2022), transformers' ViTMAEForPreTraining. Of the patches
// of x [B, C, H, W] a random part is hidden; the encoder sees the others alone,
//
//   latent = norm(blocks([class; patches visible + positions]))              [B, 1 + K, D]
//
// and a light decoder fills the places of the hidden ones with one learned token and predicts their pixels:
//
//   y = decoder_norm(decoder_blocks([decoder_embed(latent); mask tokens] in order + decoder positions))
//   loss = mean over hidden patches of (decoder_pred(y) - pixels)²
//
// Positions are fixed sine-cosine ones. Parameters have the names of the reference code
// (https://github.com/facebookresearch/mae, models_mae.py), which for the encoder are timm's; its checkpoints have
// transformers' (huggingface_names.cpp).
//
// As an ImageModel it is its encoder without a classifier: the class token's features of all patches. The recorder gets
// the features and maps of the encoder's blocks, of the tokens that they see, and, counted on, of the decoder's.
class MaskedAutoencoder : public ImageModel {
 public:
  // Error if the arguments contradict each other, or the encoder is not a plain one.
  explicit MaskedAutoencoder(const MaeConfig& config, const nn::StoreOptions& store = {});

  // The patches with the smallest `noise` [B, N] stay visible.
  Masking masking(const Tensor& noise) const;
  // The same with uniform noise from the stream.
  Masking random_masking(std::int64_t batch, RandomStream& random) const;

  // [B, 1 + K, D] in the pass's dtype.
  Tensor encode(const Tensor& x, const Masking& masking, nn::Pass& pass) const;
  // Tokens before decoder_norm, [B, 1 + N, decoder_dim].
  Tensor decode(const Tensor& latent, const Masking& masking, nn::Pass& pass) const;
  // The predicted pixels of all patches, [B, N, p₀ p₁ C] f32 (row, column, channel; normalized by patch if
  // norm_pix_loss), transformers' `logits`.
  Tensor predict(const Tensor& x, const Masking& masking, nn::Pass& pass) const;
  // What pre-training minimizes: a scalar f32.
  Tensor loss(const Tensor& x, const Masking& masking, nn::Pass& pass) const;
  // predict() as a picture [B, C, H, W] in x's normalization, with the visible patches as they are.
  Tensor reconstruct(const Tensor& x, const Masking& masking, nn::Pass& pass) const;
  // x with its hidden patches in the colour `fill` (normalized).
  Tensor masked(const Tensor& x, const Masking& masking, float fill = 0) const;

  Tensor forward(const Tensor& x, nn::Pass& pass) const override;
  std::int64_t num_classes() const override { return 0; }
  std::int64_t num_features() const override { return config_.encoder.embed_dim; }
  std::int64_t depth() const override { return config_.encoder.depth; }
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const override;
  // Of forward(): the encoder on all patches.
  std::int64_t flops(std::int64_t height, std::int64_t width) const override;
  // Of loss(): the encoder on the visible patches, and the decoder.
  std::int64_t pretraining_flops() const;
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& /*parameter*/) const override { return false; }  // as the reference has it
  bool is_classifier(const std::string& /*parameter*/) const override { return false; }
  bool takes_any_size() const override { return false; }
  const MaeConfig& config() const { return config_; }

 private:
  nn::Size2 grid() const;
  std::int64_t patches() const { return grid()[0] * grid()[1]; }
  std::int64_t patch_pixels() const;  // numbers in a patch
  Tensor cut(const Tensor& x) const;
  Tensor run(const std::vector<nn::Block>& blocks, Tensor x, nn::Pass& pass) const;
  Tensor target(const Tensor& patches) const;
  Tensor pixels(const Tensor& patches) const;
  Tensor assemble(const Tensor& patches) const;

  MaeConfig config_;
  Tensor cls_token_;          // [1, 1, D]
  Tensor pos_embed_;          // [1, 1 + N, D], fixed
  Tensor mask_token_;         // [1, 1, decoder_dim]
  Tensor decoder_pos_embed_;  // [1, 1 + N, decoder_dim], fixed
  std::optional<nn::PatchEmbed> patch_embed_;
  std::vector<nn::Block> blocks_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> decoder_embed_;
  std::vector<nn::Block> decoder_blocks_;
  std::optional<nn::Norm> decoder_norm_;
  std::optional<nn::Linear> decoder_pred_;
};

// The masked autoencoder in a model, or null.
const MaskedAutoencoder* masked_autoencoder(const Model& model);
inline bool is_masked_autoencoder(const Model& model) { return masked_autoencoder(model) != nullptr; }

// What a new one has beside its encoder.
struct MaeOptions {
  std::optional<double> mask_ratio = {};
  std::optional<bool> norm_pix_loss = {};
  std::optional<std::int64_t> decoder_dim = {};
  std::optional<std::int64_t> decoder_depth = {};
  std::optional<std::int64_t> decoder_heads = {};
};
// A new masked autoencoder around the Vision Transformer `architecture` (timm's name), made from `options` but for
// its classes; or, if `name_or_folder` is the folder of one, that, as transformers' save_pretrained() or save_model()
// wrote it. Of a folder only the mask ratio and the loss can be changed.
Model open_masked_autoencoder(const std::string& name_or_folder, const CreateOptions& create = {},
                              const MaeOptions& options = {});

// config.json's part about the decoder and the loss, by transformers' keys.
nlohmann::ordered_json mae_json(const MaeConfig& config);

}  // namespace vitrail::models
