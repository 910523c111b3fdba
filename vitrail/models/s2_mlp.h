// S²-MLP (Yu et al. 2021, arXiv 2106.07477): patches talk to their neighbours by shifted channels alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/model.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/norm.h"

namespace vitrail::models {

// The paper's sizes under timm's names: c is embed_dim, N is depth, r is mlp_ratio.
struct S2MlpConfig {
  std::int64_t num_classes = 1000;  // 0: no head, the pooled features come out
  nn::Size2 img_size = {224, 224};  // that the model is meant for; it takes others too
  std::int64_t in_chans = 3;
  nn::Size2 patch_size = {16, 16};
  std::int64_t embed_dim = 384;
  std::int64_t depth = 36;
  double mlp_ratio = 4;
  // Norm what goes into the branches of a block instead of what comes out of them, as the successor S²-MLPv2 and
  // other people's code do.
  bool pre_norm = false;
  double drop_rate = 0;       // before the head
  double proj_drop_rate = 0;  // in the hidden units and the outputs of a block's maps
  double drop_path_rate = 0;  // of the last block; it grows linearly from 0 at the first
};

// The spatial shift of x [B, h, w, c] (eq. 5 to 8): of the four quarters of the channels the first comes from the left,
// the second from the right, the third from above, the fourth from below, each one place away; at the border, where
// nothing comes from, a place keeps its own.
Tensor spatial_shift(const Tensor& x);

// x [B, h, w, c] → [B, h, w, c]:
//   x = x + drop_path(norm1(fc2(spatial_shift(gelu(fc1(x))))))
//   x = x + drop_path(norm2(mlp(x)))
struct SpatialShiftBlock {
  SpatialShiftBlock(const nn::Scope& scope, const S2MlpConfig& config, std::int64_t index);
  Tensor operator()(Tensor x, nn::Pass& pass) const;
  std::int64_t flops(std::int64_t tokens) const;

  bool pre_norm;
  nn::LayerNorm norm1;
  nn::Linear fc1;
  nn::Linear fc2;
  nn::LayerNorm norm2;
  nn::Mlp mlp;
  nn::Dropout drop;
  nn::DropPath drop_path;
};

// x [B, C, H, W] →
//
//   e = norm(W₀ patch + b₀)                    (eq. 4)
//   x = block(x), depth times
//   logits = head(mean over the patches(x))    [B, num_classes]
//
// for pictures of any size that are made of whole patches.
class S2Mlp : public ImageModel {
 public:
  // Error if the arguments contradict each other.
  explicit S2Mlp(const S2MlpConfig& config, const nn::StoreOptions& store = {});

  Tensor forward(const Tensor& x, nn::Pass& pass) const override;

  std::int64_t num_classes() const override { return config_.num_classes; }
  std::int64_t num_features() const override { return config_.embed_dim; }
  std::int64_t depth() const override { return config_.depth; }
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const override;
  std::int64_t flops(std::int64_t height, std::int64_t width) const override;
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& /*parameter*/) const override { return false; }
  bool is_classifier(const std::string& parameter) const override { return parameter.starts_with("head."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const nn::Size2& source) const override;
  bool takes_any_size() const override { return true; }
  const S2MlpConfig& config() const { return config_; }

 private:
  S2MlpConfig config_;
  std::optional<nn::PatchEmbed> patch_embed_;
  std::optional<nn::LayerNorm> norm_;
  std::vector<SpatialShiftBlock> blocks_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
