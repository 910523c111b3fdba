#include "vitrail/models/swin/swin.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "vitrail/models/base/adapt.h"
#include "vitrail/models/vit/vit_init.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

using nn::Size2;
using Version = SwinConfig::Version;

namespace {

constexpr nn::NormConfig norm_config{nn::NormKind::layer, 1e-5F};  // the default epsilon of torch.nn.LayerNorm

// The grid of the next stage: 2 × 2 tokens become one; an odd side is padded at its end.
Size2 halved(const Size2& grid) { return {(grid[0] + 1) / 2, (grid[1] + 1) / 2}; }

void check_config(const SwinConfig& c) {
  const std::size_t stages = c.depths.size();
  check(stages >= 1 && stages <= 16, "depths names {} stages, but there are between 1 and 16", stages);
  check(c.num_heads.size() == stages && c.head_dim.size() == stages && c.window_size.size() == stages &&
            c.mlp_ratio.size() == stages,
        "num_heads, head_dim, window_size and mlp_ratio are for the {} stages of depths, but are for {}, {}, {} and {}",
        stages, c.num_heads.size(), c.head_dim.size(), c.window_size.size(), c.mlp_ratio.size());
  check(c.pretrained_window_sizes.empty() || c.pretrained_window_sizes.size() >= stages,
        "pretrained_window_sizes is for the {} stages of depths, not for {}", stages, c.pretrained_window_sizes.size());
  check(c.patch_size[0] > 0 && c.patch_size[1] > 0, "patch_size must be positive, not {}x{}", c.patch_size[0],
        c.patch_size[1]);
  check(c.img_size[0] >= c.patch_size[0] && c.img_size[1] >= c.patch_size[1],
        "img_size {}x{} holds no patch of patch_size {}x{}", c.img_size[0], c.img_size[1], c.patch_size[0],
        c.patch_size[1]);
  check(c.in_chans > 0 && c.embed_dim > 0 && c.num_classes >= 0,
        "in_chans and embed_dim must be positive, and num_classes not negative");
  check(c.global_pool != nn::Pool::token && c.global_pool != nn::Pool::map && c.global_pool != nn::Pool::sum,
        "global_pool is 'avg', 'max', 'avgmax' or '', not '{}'", name_of(c.global_pool));
  const bool hub = c.window_fit == SwinConfig::WindowFit::transformers;
  check(!hub || (!c.always_partition &&
                 std::ranges::all_of(c.window_size, [](const Size2& size) { return size[0] == size[1]; })),
        "window_fit 'transformers' is for square windows (window_size) without always_partition");
  check(c.global_pool != nn::Pool::none || c.num_classes == 0,
        "global_pool '' gives features, not logits: num_classes must be 0 with it, not {}", c.num_classes);
  for (const double rate : {c.drop_rate, c.proj_drop_rate, c.attn_drop_rate, c.drop_path_rate}) {
    check(rate >= 0 && rate < 1, "a drop rate lies in [0, 1), but one is {}", rate);
  }
  // The approximate number of multiply-accumulates for one image; it is bounded so that all counts computed from these
  // numbers fit into 64 bits.
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double pixels = real(c.img_size[0]) * real(c.img_size[1]);
  double tokens = pixels / (real(c.patch_size[0]) * real(c.patch_size[1]));
  double width = real(c.embed_dim);
  double cost = pixels * real(c.in_chans) * width;
  double positions = 0;  // pairs of tokens within a window, over all blocks
  std::int64_t blocks = 0;
  Size2 grid = {c.img_size[0] / c.patch_size[0], c.img_size[1] / c.patch_size[1]};
  for (std::size_t s = 0; s < stages; ++s, tokens = tokens / 4 + 1, width *= 2) {
    const Size2& window = c.window_size[s];
    check(c.depths[s] >= 0 && c.num_heads[s] > 0 && c.head_dim[s] >= 0 && window[0] > 0 && window[1] > 0 &&
              c.mlp_ratio[s] > 0,
          "stage {}: num_heads, window_size and mlp_ratio must be positive, depths and head_dim not negative", s);
    check(c.head_dim[s] > 0 || std::fmod(width, real(c.num_heads[s])) == 0,
          "stage {}: the width {} cannot be divided among num_heads {}", s, width, c.num_heads[s]);
    const bool filled_up = c.always_partition || hub;
    const Size2 size = nn::fit_windows(grid, window, false, filled_up).size;
    const double area = real(size[0]) * real(size[1]);
    positions += real(c.depths[s]) * area * area;
    blocks += c.depths[s];
    grid = halved(grid);
    const double attention = std::max(width, real(c.head_dim[s]) * real(c.num_heads[s]));
    const double filled = tokens + (filled_up ? area : 0);
    cost += real(c.depths[s] + 1) * (filled + area) * (area + 4 * width + 2 * c.mlp_ratio[s] * width) * attention;
  }
  check(blocks <= 4096, "depths adds up to {} blocks, but there are at most 4096", blocks);
  check(positions < 1 << 27, "the windows of window_size have {:.0e} pairs of tokens in {} blocks, more than 1e8",
        positions, blocks);
  check(cost < 1e17, "img_size {}x{} with embed_dim {} would take {:.0e} FLOPs for an image", c.img_size[0],
        c.img_size[1], c.embed_dim, cost);
}

// V1 starts as a Vision Transformer. V2: linear weights from N(0, 0.02²), their biases 0. V2-CR: each layer's own
// initialization in torch, or timm's init_weights_swin, which has Xavier-uniform linear weights, with q, k and v each
// for itself, and zeros for biases and head.
nn::InitRule init_rule(const SwinConfig& config) {
  VitConfig as_vit;
  if (config.version == Version::v2_cr && config.weight_init != VitConfig::WeightInit::reset) {
    as_vit.weight_init = VitConfig::WeightInit::moco;
    return [rule = vit_init_rule(as_vit)](std::string_view name, const Shape& shape, const nn::Init& own) {
      return name.starts_with("head") ? nn::Init::zeros() : rule(name, shape, own);
    };
  }
  as_vit.weight_init = config.weight_init;
  as_vit.num_classes = config.num_classes;
  return vit_init_rule(as_vit);
}

}  // namespace

SwinTransformer::SwinTransformer(const nn::Scope& scope, const SwinConfig& config) : scope_(scope), config_(config) {
  check_config(config_);
  const nn::Scope root = scope.with_init(init_rule(config_));
  patch_embed_.emplace(root / "patch_embed", config_.patch_size, config_.in_chans, config_.embed_dim);
  patch_norm_.emplace(root / "patch_embed" / "norm", config_.embed_dim, norm_config);
  Size2 grid = patch_grid(config_.img_size[0], config_.img_size[1]);
  for (std::size_t s = 0; s < config_.depths.size(); ++s) {
    grid = s == 0 ? grid : halved(grid);
    const nn::Scope stages = root / (is(Version::v2_cr) ? "stages" : "layers");
    stages_.push_back(make_stage(stages / static_cast<std::int64_t>(s), s, grid));
  }
  if (!is(Version::v2_cr)) {
    norm_.emplace(root / "norm", num_features(), norm_config);
  }
  if (config_.num_classes > 0) {
    head_.emplace(root / "head" / "fc", num_features(), config_.num_classes);
  }
}

Size2 SwinTransformer::patch_grid(std::int64_t height, std::int64_t width) const {
  const Size2& patch = config_.patch_size;
  return fits_as_transformers() ? Size2{(height + patch[0] - 1) / patch[0], (width + patch[1] - 1) / patch[1]}
                                : patch_embed_->grid(height, width);
}

// The windows of a block, which on an image of img_size lie on `grid`.
ops::Windows SwinTransformer::own_windows(std::size_t stage, bool shifted, const Size2& grid) const {
  const SwinConfig& c = config_;
  if (!fits_as_transformers()) {
    return nn::fit_windows(grid, c.window_size[stage], shifted, c.always_partition);
  }
  const std::int64_t wanted = c.window_size[stage][0];
  std::int64_t side = wanted;
  std::int64_t shift = shifted ? wanted / 2 : 0;
  if (is(Version::v2)) {  // by the height of img_size, whose odd rows are lost from stage to stage
    const std::int64_t rows = (c.img_size[0] / c.patch_size[0]) >> stage;
    check(rows > 0, "img_size {}x{} leaves no row of whole patches to stage {}, as {} rows of pixels would",
          c.img_size[0], c.img_size[1], stage, c.patch_size[0] << stage);
    side = std::min(rows, wanted);
    shift = rows > wanted ? shift : 0;
  }
  return {.size = {side, side}, .shift = {shift, shift}, .pad_first = true};
}

// The windows of a block, `own`, on a grid of any size.
ops::Windows SwinTransformer::windows_on(const ops::Windows& own, const Size2& grid) const {
  const std::int64_t shorter = std::min(grid[0], grid[1]);
  if (!fits_as_transformers() || is(Version::v2) || shorter > own.size[0]) {
    return own;
  }
  check(shorter == own.size[0],
        "a stage has {}x{} patches, fewer than a window of {}x{}, and transformers' Swin has no positions for that "
        "either: with {} stages a side of the image must be of {} pixels or more",
        grid[0], grid[1], own.size[0], own.size[1], stages_.size(),
        ((config_.window_size.back()[0] - 1) << (stages_.size() - 1)) * config_.patch_size[0] + 1);
  ops::Windows still = own;
  still.shift = {0, 0};
  return still;
}

SwinBlockConfig SwinTransformer::block_config(std::size_t stage, std::int64_t index, const Size2& grid) const {
  const SwinConfig& c = config_;
  SwinBlockConfig block;
  block.dim = width(stage);
  block.num_heads = c.num_heads[stage];
  block.head_dim = c.head_dim[stage];
  block.windows = own_windows(stage, index % 2 == 1, grid);
  block.mlp_ratio = c.mlp_ratio[stage];
  block.qkv_bias = c.qkv_bias;
  block.activation = c.act_layer;
  block.norm = norm_config;
  block.proj_drop = static_cast<float>(c.proj_drop_rate);
  block.attn_drop = static_cast<float>(c.attn_drop_rate);
  const std::int64_t before =
      std::accumulate(c.depths.begin(), c.depths.begin() + static_cast<std::ptrdiff_t>(stage), std::int64_t{0});
  block.drop_path = depth() > 1 ? static_cast<float>(c.drop_path_rate * static_cast<double>(before + index) /
                                                     static_cast<double>(depth() - 1))
                                : 0.0F;
  if (!c.pretrained_window_sizes.empty()) {
    block.pretrained_window = c.pretrained_window_sizes[stage];
  }
  block.norm_weight = static_cast<float>(c.init_values.value_or(1.0));
  block.extra_norm = (c.extra_norm_period > 0 && (index + 1) % c.extra_norm_period == 0) ||
                     (index + 1 == c.depths[stage] && (c.extra_norm_stage || stage + 1 == c.depths.size()));
  return block;
}

SwinTransformer::AnyBlock SwinTransformer::make_block(const nn::Scope& scope, const SwinBlockConfig& config) const {
  switch (config_.version) {
    case Version::v1:
      return SwinBlock(scope, config);
    case Version::v2:
      return SwinV2Block(scope, config);
    case Version::v2_cr:
      return SwinV2CrBlock(scope, config);
  }
  fail("no such version of Swin: {}", static_cast<int>(config_.version));
}

SwinTransformer::Stage SwinTransformer::make_stage(const nn::Scope& scope, std::size_t index, const Size2& grid) const {
  Stage stage;
  if (index > 0) {
    stage.downsample.emplace(scope / "downsample", width(index - 1), width(index), norm_config, is(Version::v2));
  }
  for (std::int64_t i = 0; i < config_.depths[index]; ++i) {
    stage.blocks.push_back(make_block(scope / "blocks" / i, block_config(index, i, grid)));
  }
  return stage;
}

// Embeds the patches: x [B, C, H, W] → [B, rows, columns, D] on the patch_grid(), in the pass's dtype.
Tensor SwinTransformer::patches(const Tensor& x, nn::Pass& pass) const {
  const Size2& patch = config_.patch_size;
  check(x.rank() == 4, "the model takes images [B, {}, H, W], not {}", config_.in_chans, x.shape());
  const std::int64_t height = x.size(2);
  const std::int64_t width = x.size(3);
  if (config_.strict_img_size) {
    check(height == config_.img_size[0] && width == config_.img_size[1],
          "the model takes images of {}x{} (img_size), not of {}x{}; with dynamic_img_size it would take any that are "
          "made of whole patches of {}x{}",
          config_.img_size[0], config_.img_size[1], height, width, patch[0], patch[1]);
  } else if (is(Version::v2_cr)) {  // pixels beyond the last whole patch are ignored
    check(height >= patch[0] && width >= patch[1], "an image of {}x{} holds no patch of {}x{}", height, width, patch[0],
          patch[1]);
  } else if (fits_as_transformers()) {
    check(height > 0 && width > 0, "an image of {}x{} holds nothing", height, width);
  } else {
    check(height > 0 && width > 0 && height % patch[0] == 0 && width % patch[1] == 0,
          "an image of {}x{} is not made of whole patches: its sides must be multiples of {} and {}", height, width,
          patch[0], patch[1]);
  }
  const Size2 grid = patch_grid(height, width);
  Tensor input = ops::cast(x, pass.dtype);
  if (fits_as_transformers()) {
    const Size2 missing = {grid[0] * patch[0] - height, grid[1] * patch[1] - width};
    input = missing[0] > 0 ? ops::pad(input, 2, 0, missing[0]) : input;
    input = missing[1] > 0 ? ops::pad(input, 3, 0, missing[1]) : input;
  }
  const Tensor tokens = (*patch_embed_)(input);
  return (*patch_norm_)(ops::reshape(tokens, {x.size(0), grid[0], grid[1], config_.embed_dim}));
}

Tensor SwinTransformer::run_stage(const Stage& stage, Tensor x, nn::Pass& pass) const {
  x = stage.downsample ? (*stage.downsample)(x) : x;
  Tensor shifted;  // the mask of all shifted blocks, which have the same windows
  for (const AnyBlock& any : stage.blocks) {
    x = std::visit(
        [&](const auto& block) {
          const Size2 grid = {x.size(1), x.size(2)};
          const ops::Windows windows = windows_on(block.windows, grid);
          const bool is_shifted = windows.shift[0] > 0 || windows.shift[1] > 0;
          if (is_shifted && !shifted.defined()) {
            shifted = nn::shift_mask(grid, windows);
            if (fits_as_transformers() && is(Version::v2)) {  // it adds its mask twice
              shifted = shifted * 2.0F;
            }
          }
          const MaskedWindows masked = {windows, is_shifted ? shifted : Tensor()};
          return nn::run_block(
              [&block, masked](const Tensor& input, nn::Pass& block_pass) { return block(input, block_pass, masked); },
              x, pass);
        },
        any);
  }
  return x;
}

Tensor SwinTransformer::forward_features(const Tensor& images, nn::Pass& pass) const {
  Tensor x = patches(images, pass);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    x = run_stage(stages_[s], x, pass);
    if (pass.wants_features()) {
      pass.recorder->feature(
          (scope_ / (is(Version::v2_cr) ? "stages" : "layers") / static_cast<std::int64_t>(s)).path(),
          is(Version::v2_cr) ? x.detach().permute({0, 3, 1, 2}) : x);
    }
  }
  x = norm_ ? (*norm_)(x) : x;
  return is(Version::v2_cr) ? ops::permute(x, {0, 3, 1, 2}) : x;
}

Tensor SwinTransformer::forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits) const {
  Tensor x = features;
  if (config_.global_pool != nn::Pool::none) {
    x = is(Version::v2_cr) ? ops::permute(x, {0, 2, 3, 1}) : x;
    x = nn::pool_tokens(ops::reshape(x, {x.size(0), x.size(1) * x.size(2), x.size(3)}), config_.global_pool, 0);
  } else if (is(Version::v2_cr)) {
    x = ops::contiguous(x);
  }
  // The head runs in f32 whatever the pass's dtype is: it is small, and its rounding errors would go straight into the
  // logits.
  x = nn::Dropout{static_cast<float>(config_.drop_rate)}(ops::cast(x, DType::f32), pass);
  return head_ && !pre_logits ? (*head_)(x) : x;
}

std::int64_t SwinTransformer::depth() const {
  return std::accumulate(config_.depths.begin(), config_.depths.end(), std::int64_t{0});
}

TokenLayout SwinTransformer::token_layout(std::int64_t height, std::int64_t width) const {
  const Size2 grid = patch_grid(height, width);
  return {0, grid[0], grid[1], false};
}

std::int64_t SwinTransformer::flops(std::int64_t height, std::int64_t width) const {
  Size2 grid = patch_grid(height, width);
  std::int64_t total = patch_embed_->flops(grid) + patch_norm_->flops(grid[0] * grid[1]);
  for (const Stage& stage : stages_) {
    if (stage.downsample) {
      grid = halved(grid);
      total += stage.downsample->flops(grid[0] * grid[1]);
    }
    for (const AnyBlock& any : stage.blocks) {
      total += std::visit([&](const auto& block) { return block.flops(grid, windows_on(block.windows, grid)); }, any);
    }
  }
  total += norm_ ? norm_->flops(grid[0] * grid[1]) : 0;
  if (is(Version::v2_cr) && config_.global_pool == nn::Pool::avg) {
    total += grid[0] * grid[1] * num_features();  // fvcore counts the pooling of [B, C, H, W], not that of [B, H, W, C]
  }
  return total + (head_ ? head_->flops(1) : 0);
}

std::int64_t SwinTransformer::layer_of(const std::string& parameter) const {
  const std::string_view name = parameter;
  if (name.starts_with("patch_embed")) {
    return 0;
  }
  const std::string stages = is(Version::v2_cr) ? "stages." : "layers.";
  const auto stage = index_after(name, stages);
  if (!stage) {
    return name.starts_with("norm") ? depth() : depth() + 1;  // the final norm belongs to the layer of the last block
  }
  std::int64_t layer = 1;
  for (std::int64_t s = 0; s < *stage; ++s) {
    layer += config_.depths[static_cast<std::size_t>(s)];
  }
  const std::string blocks = stages + std::to_string(*stage) + ".blocks.";
  return layer + index_after(name, blocks).value_or(0);  // merging belongs to the layer of the stage's first block
}

bool SwinTransformer::no_weight_decay(const std::string& parameter) const {
  return parameter.ends_with("relative_position_bias_table") ||
         (is(Version::v2) && (parameter.find("cpb_mlp") != std::string::npos || parameter.ends_with("logit_scale")));
}

bool SwinTransformer::is_head(const std::string& parameter) const { return parameter.starts_with("head."); }

Tensor SwinTransformer::adapt(const std::string& parameter, const Tensor& value, const Shape& wanted,
                              const Size2& /*source*/) const {
  if (parameter == "patch_embed.proj.weight") {
    return with_channels(value, config_.in_chans);
  }
  if (!parameter.ends_with("relative_position_bias_table") || value.rank() != 2 || value.size(0) == wanted[0]) {
    return value;
  }
  // The table belongs to another window, which, as in timm, must have been a square.
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(value.size(0)))));
  if (side * side != value.size(0) || side % 2 == 0) {
    return value;
  }
  const std::int64_t layer = layer_of(parameter) - 1;
  Size2 window{};
  std::int64_t index = 0;
  for (const Stage& stage : stages_) {
    for (const AnyBlock& any : stage.blocks) {
      if (index++ == layer) {
        window = std::visit([](const auto& block) { return block.windows.size; }, any);
      }
    }
  }
  return nn::resample_bias_table(value, {(side + 1) / 2, (side + 1) / 2}, window);
}

}  // namespace vitrail::models
