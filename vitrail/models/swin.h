// Swin transformers: timm's SwinTransformer, SwinTransformerV2 and SwinTransformerV2Cr.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "vitrail/models/model.h"
#include "vitrail/models/swin_blocks.h"
#include "vitrail/models/vit.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/patch_embed.h"
#include "vitrail/nn/pool.h"
#include "vitrail/nn/windows.h"

namespace vitrail::models {

// timm's arguments under timm's names. What may differ between the stages has a value for each of them.
struct SwinConfig {
  enum class Version { v1, v2, v2_cr };

  Version version = Version::v1;
  nn::Size2 img_size = {224, 224};
  nn::Size2 patch_size = {4, 4};
  std::int64_t in_chans = 3;
  std::int64_t num_classes = 1000;  // 0: no head, the pooled features come out
  nn::Pool global_pool = nn::Pool::avg;
  std::int64_t embed_dim = 96;  // of the first stage; each further one has twice as much
  std::vector<std::int64_t> depths = {2, 2, 6, 2};
  std::vector<std::int64_t> num_heads = {3, 6, 12, 24};
  std::vector<std::int64_t> head_dim = {0, 0, 0, 0};  // 0: width / num_heads
  std::vector<nn::Size2> window_size = {{7, 7}, {7, 7}, {7, 7}, {7, 7}};
  bool always_partition = false;  // windows stay as large and shifted on a grid that is no larger than they are
  bool strict_img_size = true;    // take pictures of img_size alone (dynamic_img_size is the opposite)
  std::vector<double> mlp_ratio = {4, 4, 4, 4};
  bool qkv_bias = true;
  double drop_rate = 0;         // before the head
  double proj_drop_rate = 0;    // in the blocks' outputs and hidden units
  double attn_drop_rate = 0;    // of attention's probabilities
  double drop_path_rate = 0.1;  // of the last block; it grows linearly from 0 at the first
  ops::Activation act_layer = ops::Activation::gelu;
  VitConfig::Start weight_init = VitConfig::Start::timm;  // V2-CR: `timm` stands for its own init_weights_swin

  std::vector<nn::Size2> pretrained_window_sizes =
      {};                                   // V2: of the first training, for each stage; {0, 0}: window_size
  std::optional<double> init_values = 0.0;  // V2-CR: of the norms' weights; none: 1
  std::int64_t extra_norm_period = 0;       // V2-CR: a norm behind every so many blocks of a stage
  bool extra_norm_stage = false;            // V2-CR: a norm behind every stage (there is one behind the last)
};

// Swin Transformer: Hierarchical Vision Transformer using Shifted Windows (Liu et al. 2021). x [B, C, H, W] →
//
//   x = norm(patches)                               [B, H / p, W / p, D]
//   x = block(merge 2 × 2 tokens(x)), a stage's     [B, H / (2ˢ p), W / (2ˢ p), 2ˢ D]
//   logits = head(pool(norm(x)))                    [B, num_classes]
//
// and Swin Transformer V2 (Liu et al. 2022), whose blocks differ (swin_blocks.h); V2-CR has its final norm in the last
// block. The recorder gets the features of every stage as timm has them, [B, H', W', C'] (V2-CR: [B, C', H', W']), and
// the attention maps of every block.
class SwinTransformer : public ImageModel {
 public:
  // Error if the arguments contradict each other.
  explicit SwinTransformer(const SwinConfig& config, const nn::StoreOptions& store = {});

  Tensor forward(const Tensor& x, nn::Pass& pass) const override;

  std::int64_t num_classes() const override { return config_.num_classes; }
  std::int64_t num_features() const override { return width(config_.depths.size() - 1); }
  std::int64_t depth() const override;
  TokenLayout token_layout(std::int64_t height, std::int64_t width) const override;
  std::int64_t flops(std::int64_t height, std::int64_t width) const override;
  std::int64_t layer_of(const std::string& parameter) const override;
  bool no_weight_decay(const std::string& parameter) const override;
  bool is_classifier(const std::string& parameter) const override;
  Tensor adapt(const std::string& parameter, const Tensor& value, const nn::Size2& source) const override;
  bool takes_any_size() const override { return !config_.strict_img_size; }
  const SwinConfig& config() const { return config_; }

 private:
  using AnyBlock = std::variant<SwinBlock, SwinV2Block, SwinV2CrBlock>;
  struct Stage {
    std::optional<nn::PatchMerging> downsample;
    std::vector<AnyBlock> blocks;
  };

  bool is(SwinConfig::Version version) const { return config_.version == version; }
  std::int64_t width(std::size_t stage) const { return config_.embed_dim << stage; }
  SwinBlockConfig block_config(std::size_t stage, std::int64_t index, const nn::Size2& grid) const;
  AnyBlock make_block(const nn::Scope& scope, const SwinBlockConfig& config) const;
  Stage make_stage(const nn::Scope& scope, std::size_t stage, const nn::Size2& grid) const;
  Tensor patches(const Tensor& x, nn::Pass& pass) const;
  Tensor run_stage(const Stage& stage, Tensor x, nn::Pass& pass) const;

  SwinConfig config_;
  std::optional<nn::PatchEmbed> patch_embed_;
  std::optional<nn::Norm> patch_norm_;
  std::vector<Stage> stages_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> head_;
};

}  // namespace vitrail::models
