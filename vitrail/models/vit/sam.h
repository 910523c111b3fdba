/// \file
/// The image encoder of Segment Anything: timm's VisionTransformerSAM.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/nn/attention/block.h"
#include "vitrail/nn/attention/pool.h"
#include "vitrail/nn/images/conv.h"
#include "vitrail/nn/images/multiscale.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/ops/images/windows.h"

namespace vitrail::models {

/// timm's arguments under timm's names.
struct SamConfig {
  nn::Size2 img_size = {1024, 1024};
  nn::Size2 patch_size = {16, 16};
  std::int64_t in_chans = 3;
  std::int64_t num_classes = 768;  ///< 0: no head, the pooled features come out
  nn::Pool global_pool = nn::Pool::avg;
  std::int64_t embed_dim = 768;
  std::int64_t depth = 12;
  std::int64_t num_heads = 12;
  double mlp_ratio = 4;
  bool qkv_bias = true;
  std::optional<float> init_values = std::nullopt;  ///< initial LayerScale; unset: none
  bool use_abs_pos = true;                          ///< `pos_embed`
  bool use_rel_pos = false;                         ///< tables of relative positions in every block
  std::int64_t window_size = 14;                    ///< 0: no windows
  std::vector<std::int64_t> global_attn_indexes;    ///< the blocks whose attention has no windows
  std::int64_t neck_chans = 256;                    ///< channels of the neck; 0: a norm is in its place
  nn::NormConfig norm = {.eps = 1e-5F};
  ops::Activation act_layer = ops::Activation::gelu;
  double drop_rate = 0;  ///< before the head
  double pos_drop_rate = 0;
  double proj_drop_rate = 0;
  double drop_path_rate = 0;
};

/// A block of it, x [B, H, W, D] → [B, H, W, D], whose attention stays in windows (ViTDet: Li et al. 2022) or is
/// global:
///
/// ```text
/// x = x + drop_path(ls1(attn(norm1(x)))),   x = x + drop_path(ls2(mlp(norm2(x))))
/// ```
struct SamBlock {
  SamBlock(const nn::Scope& scope, const SamConfig& config, std::int64_t index);
  Tensor operator()(const Tensor& x, nn::Pass& pass) const;
  std::int64_t flops(const nn::Size2& grid) const;

  std::int64_t window;  ///< 0: global
  nn::Norm norm1;
  nn::PoolingAttention attn;  ///< which pools nothing here
  std::optional<nn::LayerScale> ls1;
  nn::Norm norm2;
  nn::Mlp mlp;
  std::optional<nn::LayerScale> ls2;
  nn::DropPath drop_path;

 private:
  ops::Windows windows() const { return {.size = {window, window}}; }
};

/// Segment Anything's image encoder (Kirillov et al. 2023): a plain Vision Transformer without a class token, most of
/// whose blocks attend within windows, with decomposed relative positions (MViTv2: Li et al. 2022), and a neck of two
/// convolutions. It maps x [B, C, H, W] to a map [B, neck_chans, H / 16, W / 16], and that to its pooled features or
/// logits [B, num_classes]. Images may have any size of whole patches: absolute positions are resampled as timm's, the
/// tables of global attention are resized linearly.
class SamVit {
 public:
  /// Throws Error if the arguments contradict each other.
  SamVit(const nn::Scope& scope, const SamConfig& config);

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;  ///< [B, neck_chans, rows, columns]
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const { return forward_head(forward_features(x, pass), pass); }

  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const { return config_.neck_chans > 0 ? config_.neck_chans : config_.embed_dim; }
  std::int64_t depth() const { return config_.depth; }
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const;
  std::int64_t flops(std::int64_t height, std::int64_t width) const;
  std::int64_t layer_of(const std::string& parameter) const;
  bool no_weight_decay(const std::string& parameter) const { return parameter == "pos_embed"; }
  bool is_head(const std::string& parameter) const { return parameter.starts_with("head."); }
  Tensor adapt(const std::string& parameter, const Tensor& value, const Shape& wanted, const nn::Size2& source) const;
  bool takes_any_size() const { return true; }

 private:
  nn::Size2 grid(std::int64_t height, std::int64_t width) const;
  Tensor embed(const Tensor& x, nn::Pass& pass) const;
  Tensor neck(const Tensor& x) const;

  nn::Scope scope_;
  SamConfig config_;
  std::optional<nn::PatchEmbed> patch_embed_;
  Tensor pos_embed_;  ///< [1, rows, columns, D]
  std::vector<SamBlock> blocks_;
  std::optional<nn::Conv2d> reduce_;  ///< the neck: 1 × 1,
  std::optional<nn::Norm> norm_;      ///< a norm, which stands alone where there is no neck,
  std::optional<nn::Conv2d> mix_;     ///< 3 × 3,
  std::optional<nn::Norm> last_norm_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
