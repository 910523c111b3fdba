/// \file
/// Swin transformers: timm's SwinTransformer, SwinTransformerV2 and SwinTransformerV2Cr.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "vitrail/models/base/image_model.h"
#include "vitrail/models/swin/swin_blocks.h"
#include "vitrail/models/vit/vit.h"
#include "vitrail/nn/attention/pool.h"
#include "vitrail/nn/images/patch_embed.h"
#include "vitrail/nn/images/windows.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"

namespace vitrail::models {

/// timm's arguments under timm's names. An argument that may differ between the stages has a value for each stage.
struct SwinConfig {
  enum class Version { v1, v2, v2_cr };
  /// How windows lie on grids that they do not divide:
  /// - timm: nn::fit_windows(); a grid is filled up to whole windows after it is rolled
  /// - transformers: square windows; a grid is filled up to whole windows before it is rolled, and an image to whole
  ///   patches. V1's windows are not shifted on a grid that is one window high or wide, and a smaller grid has no
  ///   answer. V2's windows and shift are those of the height of img_size, on images of every size, and its mask counts
  ///   twice.
  enum class WindowFit { timm, transformers };

  Version version = Version::v1;
  nn::Size2 img_size = {224, 224};
  nn::Size2 patch_size = {4, 4};
  std::int64_t in_chans = 3;
  std::int64_t num_classes = 1000;  ///< 0: no head, the pooled features come out
  nn::Pool global_pool = nn::Pool::avg;
  std::int64_t embed_dim = 96;  ///< width of the first stage; each stage has twice the width of the one before
  std::vector<std::int64_t> depths = {2, 2, 6, 2};
  std::vector<std::int64_t> num_heads = {3, 6, 12, 24};
  std::vector<std::int64_t> head_dim = {0, 0, 0, 0};  ///< 0: width / num_heads
  std::vector<nn::Size2> window_size = {{7, 7}, {7, 7}, {7, 7}, {7, 7}};
  WindowFit window_fit = WindowFit::timm;
  bool always_partition = false;  ///< keep window size and shift on a grid that is no larger than a window
  bool strict_img_size = true;    ///< take only images of img_size (the opposite of dynamic_img_size)
  std::vector<double> mlp_ratio = {4, 4, 4, 4};
  bool qkv_bias = true;
  double drop_rate = 0;         ///< before the head
  double proj_drop_rate = 0;    ///< of the blocks' outputs and hidden units
  double attn_drop_rate = 0;    ///< of the attention probabilities
  double drop_path_rate = 0.1;  ///< of the last block; it grows linearly from 0 at the first
  ops::Activation act_layer = ops::Activation::gelu;
  VitConfig::WeightInit weight_init = VitConfig::WeightInit::timm;  ///< V2-CR: `timm` is timm's init_weights_swin

  std::vector<nn::Size2> pretrained_window_sizes =
      {};                                   ///< V2: windows of the pre-training, by stage; {0, 0}: window_size
  std::optional<double> init_values = 0.0;  ///< V2-CR: initial weights of the norms; none: 1
  std::int64_t extra_norm_period = 0;       ///< V2-CR: a norm behind every n-th block of a stage; 0: none
  bool extra_norm_stage = false;            ///< V2-CR: a norm behind every stage; the last has one in any case
};

/// Swin Transformer: Hierarchical Vision Transformer using Shifted Windows (Liu et al. 2021). The model maps x
/// [B, C, H, W] to logits by
///
/// ```text
/// x = norm(patches)                               [B, H / p, W / p, D]
/// x = block(merge 2 × 2 tokens(x)), a stage's     [B, H / (2ˢ p), W / (2ˢ p), 2ˢ D]
/// logits = head(pool(norm(x)))                    [B, num_classes]
/// ```
///
/// Swin Transformer V2 (Liu et al. 2022) has other blocks (swin_blocks.h); the final norm of V2-CR is in its last
/// block. The recorder gets the features of every stage in timm's layout, ``[B, H', W', C']`` (V2-CR: [B, C', H', W']),
/// and the attention maps of every block.
class SwinTransformer {
 public:
  /// Throws Error if the arguments contradict each other.
  SwinTransformer(const nn::Scope& scope, const SwinConfig& config);

  Tensor forward_features(const Tensor& x, nn::Pass& pass) const;  ///< [B, H', W', C']; V2-CR: [B, C', H', W']
  Tensor forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits = false) const;
  Tensor forward(const Tensor& x, nn::Pass& pass) const { return forward_head(forward_features(x, pass), pass); }

  std::int64_t num_classes() const { return config_.num_classes; }
  std::int64_t num_features() const { return width(config_.depths.size() - 1); }
  std::int64_t depth() const;
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const;
  std::int64_t flops(std::int64_t height, std::int64_t width) const;
  std::int64_t layer_of(const std::string& parameter) const;
  bool no_weight_decay(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const;
  Tensor adapt(const std::string& parameter, const Tensor& value, const Shape& wanted, const nn::Size2& source) const;
  bool takes_any_size() const { return !config_.strict_img_size; }
  const SwinConfig& config() const { return config_; }

 private:
  using AnyBlock = std::variant<SwinBlock, SwinV2Block, SwinV2CrBlock>;
  struct Stage {
    std::optional<nn::PatchMerging> downsample;
    std::vector<AnyBlock> blocks;
  };

  bool is(SwinConfig::Version version) const { return config_.version == version; }
  std::int64_t width(std::size_t stage) const { return config_.embed_dim << stage; }
  bool fits_as_transformers() const { return config_.window_fit == SwinConfig::WindowFit::transformers; }
  nn::Size2 patch_grid(std::int64_t height, std::int64_t width) const;
  ops::Windows own_windows(std::size_t stage, bool shifted, const nn::Size2& grid) const;
  ops::Windows windows_on(const ops::Windows& own, const nn::Size2& grid) const;
  SwinBlockConfig block_config(std::size_t stage, std::int64_t index, const nn::Size2& grid) const;
  AnyBlock make_block(const nn::Scope& scope, const SwinBlockConfig& config) const;
  Stage make_stage(const nn::Scope& scope, std::size_t stage, const nn::Size2& grid) const;
  Tensor patches(const Tensor& x, nn::Pass& pass) const;
  Tensor run_stage(const Stage& stage, Tensor x, nn::Pass& pass) const;

  nn::Scope scope_;
  SwinConfig config_;
  std::optional<nn::PatchEmbed> patch_embed_;
  std::optional<nn::Norm> patch_norm_;
  std::vector<Stage> stages_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
