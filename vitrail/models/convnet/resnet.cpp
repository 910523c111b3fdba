#include "vitrail/models/convnet/resnet.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vitrail/models/base/adapt.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::models {

using nn::ConvNorm;
using nn::Size2;
using Block = ResNetConfig::Block;
using Stem = ResNetConfig::Stem;

namespace {

constexpr ops::PoolOptions stem_pool{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
constexpr ops::PoolOptions down_pool{.ceil_mode = true, .count_include_pad = false};

std::int64_t expansion(const ResNetConfig& c) { return c.block == Block::bottleneck ? 4 : 1; }

// The channels inside a block of a stage with `channels` channels.
std::int64_t inner_width(const ResNetConfig& c, std::int64_t channels) {
  return c.block == Block::basic ? channels : channels * c.base_width / 64 * c.cardinality;
}

// An upper bound of the multiply-accumulates for an image of this size, to check that all counts fit into 64 bits.
double cost(const ResNetConfig& c, double height, double width) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  double per_pixel = 49 * (real(c.in_chans) + 4 * real(c.stem_width)) * 2 * real(c.stem_width);
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    const double positions = c.attention == ResNetConfig::Attention::nl || !c.sagan_stages.empty()
                                 ? (height + 32) * (width + 32) / 16
                                 : 0;  // how many each pixel attends to
    const double widest = 4 * real(c.channels[i]) +
                          real(c.channels[i]) * real(c.base_width) * real(c.cardinality) / 64 + 2 * real(c.stem_width) +
                          64 + (i == 0 ? 0 : 4 * real(c.channels[i - 1]));
    per_pixel += real(c.layers[i]) * (49 * widest + 2 * positions) * widest;
  }
  return (height + 32) * (width + 32) * per_pixel + 4 * real(c.channels.back()) * real(c.num_classes);
}

void check_cost(const ResNetConfig& c, std::int64_t height, std::int64_t width) {
  check(cost(c, static_cast<double>(height), static_cast<double>(width)) < 1e18,
        "an image of {}x{} would take more FLOPs than can be counted", height, width);
}

void check_config(const ResNetConfig& c) {
  check(!c.layers.empty() && c.layers.size() == c.channels.size(),
        "layers and channels must name as many stages, not {} and {}", c.layers.size(), c.channels.size());
  check(std::ranges::min(c.layers) > 0 && std::ranges::min(c.channels) > 0 && c.in_chans > 0 && c.num_classes >= 0,
        "layers, channels and in_chans must be positive, and num_classes not negative");
  check(c.output_stride == 8 || c.output_stride == 16 || c.output_stride == 32,
        "output_stride must be 8, 16 or 32, not {}", c.output_stride);
  check(c.output_stride == 32 || !c.avg_down, "output_stride {} cannot be had with avg_down", c.output_stride);
  check(c.down_kernel_size == 1 || c.down_kernel_size == 3, "down_kernel_size must be 1 or 3, not {}",
        c.down_kernel_size);
  check(c.block == Block::bottleneck || (c.cardinality == 1 && c.base_width == 64),
        "cardinality and base_width are for bottleneck blocks");
  check(c.stem_width > 0 && (c.stem_type != Stem::deep_tiered || c.stem_width >= 4), "stem_width {} is too small",
        c.stem_width);
  for (const std::int64_t channels : c.channels) {
    check(inner_width(c, channels) >= c.block_reduce_first && c.block_reduce_first > 0,
          "a stage of {} channels with base_width {} and block_reduce_first {} leaves none for its convolutions",
          channels, c.base_width, c.block_reduce_first);
  }
  for (const std::int64_t stage : c.sagan_stages) {
    check(stage > 0 && stage <= static_cast<std::int64_t>(c.layers.size()) &&
              c.channels[static_cast<std::size_t>(stage - 1)] * expansion(c) >= 8,
          "sagan_stages names stage {}, which does not exist or has less than 8 channels", stage);
  }
  check(c.num_classes == 0 || c.global_pool != nn::Pool::none,
        "without pooling (global_pool '') num_classes must be 0, not {}", c.num_classes);
  for (const double rate : {c.drop_rate, c.drop_path_rate}) {
    check(rate >= 0 && rate < 1, "a drop rate lies in [0, 1), but one is {}", rate);
  }
  check_cost(c, c.img_size[0], c.img_size[1]);
}

// The rule of timm's init_weights: convolutions from kaiming_normal, the last norm of each block from zero.
nn::InitRule init_rule(const ResNetConfig& config) {
  const std::string last = config.block == Block::basic ? ".bn2.weight" : ".bn3.weight";
  return [last, zero = config.zero_init_last, non_local = config.attention == ResNetConfig::Attention::nl](
             std::string_view name, const Shape& shape, const nn::Init& own) {
    if (shape.rank() == 4) {
      return nn::Init::kaiming_normal(shape);
    }
    if (non_local && name.find(".se.") != std::string_view::npos && shape.rank() == 1) {
      return nn::Init::zeros();  // biases and the norm, so that the block starts as the identity
    }
    return zero && name.starts_with("layer") && name.ends_with(last) ? nn::Init::zeros() : own;
  };
}

ops::ConvOptions square(std::int64_t kernel, std::int64_t stride, std::int64_t dilation = 1, std::int64_t groups = 1) {
  const std::int64_t padding = (stride - 1 + dilation * (kernel - 1)) / 2;
  return {{stride, stride}, {padding, padding}, {dilation, dilation}, groups};
}

std::vector<ConvNorm> make_stem(const nn::Scope& root, const ResNetConfig& c) {
  if (c.stem_type == Stem::plain) {
    return {ConvNorm(root / "conv1", root / "bn1", c.in_chans, 64, {7, 7}, square(7, 2))};
  }
  const std::int64_t width = c.stem_width;
  const std::int64_t first = c.stem_type == Stem::deep_tiered ? 3 * (width / 4) : width;
  const nn::Scope conv = root / "conv1";
  return {ConvNorm(conv / 0, conv / 1, c.in_chans, first, {3, 3}, square(3, 2)),
          ConvNorm(conv / 3, conv / 4, first, width, {3, 3}, square(3, 1)),
          ConvNorm(conv / 6, root / "bn1", width, 2 * width, {3, 3}, square(3, 1))};
}

ConvNorm projection(const nn::Scope& scope, const ResNetConfig& c, std::int64_t in, std::int64_t out,
                    std::int64_t stride, std::int64_t dilation, std::int64_t first_dilation) {
  if (c.avg_down) {  // the pooling is child 0
    return {scope / 1, scope / 2, in, out, {1, 1}};
  }
  const std::int64_t kernel = stride == 1 && dilation == 1 ? 1 : c.down_kernel_size;
  return {scope / 0, scope / 1, in, out, {kernel, kernel}, square(kernel, stride, kernel > 1 ? first_dilation : 1)};
}

}  // namespace

ResNetShortcut::ResNetShortcut(const nn::Scope& scope, const ResNetConfig& config, std::int64_t in, std::int64_t out,
                               std::int64_t stride, std::int64_t dilation, std::int64_t first_dilation)
    : pool(config.avg_down && stride > 1),
      projection(models::projection(scope, config, in, out, stride, dilation, first_dilation)) {}

Tensor ResNetShortcut::operator()(const Tensor& x, const nn::Pass& pass) const {
  return projection(pool ? ops::avg_pool2d(x, down_pool) : x, pass);
}

std::int64_t ResNetShortcut::flops(Size2& size) const {
  if (pool) {
    size = {(size[0] + 1) / 2, (size[1] + 1) / 2};
  }
  return projection.flops(size);
}

ResNetBlock::ResNetBlock(const nn::Scope& scope, const ResNetConfig& c, const Place& place)
    : activation(c.act_layer), drop_path{place.drop_path} {
  const std::int64_t width = inner_width(c, place.channels);
  const std::int64_t first = width / c.block_reduce_first;
  const std::int64_t out = place.channels * expansion(c);
  const auto add = [&](std::int64_t from, std::int64_t to, std::int64_t kernel, const ops::ConvOptions& options) {
    const std::string index = std::to_string(layers.size() + 1);
    layers.emplace_back(scope / ("conv" + index), scope / ("bn" + index), from, to, Size2{kernel, kernel}, options);
  };
  if (c.block == Block::basic) {
    add(place.in, first, 3,
        {{place.stride, place.stride},
         {place.first_dilation, place.first_dilation},
         {place.first_dilation, place.first_dilation}});
    add(first, out, 3, square(3, 1, place.dilation));
  } else {
    add(place.in, first, 1, {});
    add(first, width, 3,
        {{place.stride, place.stride},
         {place.first_dilation, place.first_dilation},
         {place.first_dilation, place.first_dilation},
         c.cardinality});
    add(width, out, 1, {});
  }
  if (c.attention == ResNetConfig::Attention::se) {
    attention.emplace<nn::SqueezeExcite>(scope / "se", out, make_divisible(static_cast<double>(out) / 16, 8, 0));
  } else if (c.attention == ResNetConfig::Attention::nl) {
    attention.emplace<nn::NonLocal>(scope / "se", out, make_divisible(static_cast<double>(out) / 8), c.nl_kind);
  }
  if (place.first && (place.stride != 1 || place.in != out)) {
    downsample.emplace(scope / "downsample", c, place.in, out, place.stride, place.dilation, place.first_dilation);
  }
}

Tensor ResNetBlock::operator()(Tensor x, nn::Pass& pass) const {
  Tensor y = std::move(x);
  Tensor shortcut = downsample ? (*downsample)(y, pass) : y;
  for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
    y = layers[i](y, pass, activation);
  }
  const auto* const se = std::get_if<nn::SqueezeExcite>(&attention);
  const auto* const nl = std::get_if<nn::NonLocal>(&attention);
  if (se == nullptr && nl == nullptr && !drop_path.active(pass)) {
    return layers.back()(y, pass, activation, std::move(shortcut));
  }
  y = layers.back()(y, pass);
  y = se != nullptr ? (*se)(y) : (nl != nullptr ? (*nl)(y, pass) : y);
  return nn::activate_image(nn::drop_path_image(y, drop_path, pass), activation, shortcut);
}

std::int64_t ResNetBlock::flops(Size2& size) const {
  Size2 input = size;
  std::int64_t total = downsample ? downsample->flops(input) : 0;
  for (const ConvNorm& layer : layers) {
    total += layer.flops(size);
  }
  if (const auto* const se = std::get_if<nn::SqueezeExcite>(&attention)) {
    total += se->flops();
  } else if (const auto* const nl = std::get_if<nn::NonLocal>(&attention)) {
    total += nl->flops(size);
  }
  return total;
}

ResNet::ResNet(const nn::Scope& scope, const ResNetConfig& config) : scope_(scope), config_(config) {
  check_config(config_);
  const nn::Scope root = scope.with_init(init_rule(config_));
  stem_ = make_stem(root, config_);
  const auto blocks = static_cast<double>(depth());
  std::int64_t index = 0;
  std::int64_t net_stride = 4;
  std::int64_t dilation = 1;
  ResNetBlock::Place place{.in = config_.stem_type == Stem::plain ? 64 : 2 * config_.stem_width};
  for (std::size_t stage = 0; stage < config_.layers.size(); ++stage) {
    place.channels = config_.channels[stage];
    place.stride = stage == 0 ? 1 : 2;
    if (net_stride >= config_.output_stride) {
      dilation *= place.stride;
      place.stride = 1;
    } else {
      net_stride *= place.stride;
    }
    place.dilation = dilation;
    const nn::Scope stage_scope = root / ("layer" + std::to_string(stage + 1));
    std::vector<ResNetBlock>& made = stages_.emplace_back();
    for (std::int64_t i = 0; i < config_.layers[stage]; ++i, ++index) {
      place.first = i == 0;
      place.drop_path =
          blocks > 1 ? static_cast<float>(config_.drop_path_rate * static_cast<double>(index) / (blocks - 1)) : 0;
      made.emplace_back(stage_scope / i, config_, place);
      place.in = place.channels * expansion(config_);
      place.stride = 1;
      place.first_dilation = dilation;
    }
    if (const auto number = static_cast<std::int64_t>(stage + 1);
        std::ranges::find(config_.sagan_stages, number) != config_.sagan_stages.end()) {
      sagan_.try_emplace(stage, root / ("attn" + std::to_string(number)), place.in);
    }
  }
  if (config_.num_classes > 0) {
    fc_.emplace(root / "fc", num_features(), config_.num_classes);
  }
}

std::int64_t ResNet::num_features() const { return config_.channels.back() * expansion(config_); }

std::int64_t ResNet::depth() const {
  std::int64_t blocks = 0;
  for (const std::int64_t number : config_.layers) {
    blocks += number;
  }
  return blocks;
}

Tensor ResNet::stem(const Tensor& x, const nn::Pass& pass) const {
  check(x.rank() == 4 && x.size(1) == config_.in_chans, "the model takes images [B, {}, H, W], not {}",
        config_.in_chans, x.shape());
  Tensor y = ops::cast(x, pass.dtype);
  for (const ConvNorm& layer : stem_) {
    y = layer(y, pass, config_.act_layer);
  }
  return ops::max_pool2d(y, stem_pool);
}

Tensor ResNet::forward_features(const Tensor& x, nn::Pass& pass, bool in_front) const {
  Tensor y = stem(x, pass);
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    for (const ResNetBlock& block : stages_[i]) {
      y = nn::run_block([&block](Tensor input, nn::Pass& own) { return block(std::move(input), own); }, std::move(y),
                        pass);
    }
    if (const auto sagan = sagan_.find(i); sagan != sagan_.end()) {
      y = sagan->second(y, pass);
    }
    if (pass.wants_features()) {
      const std::string name = (scope_ / ("layer" + std::to_string(i + 1))).path();
      if (in_front) {
        pass.recorder->stem_feature(name, y);
      } else {
        pass.recorder->feature(name, y);
      }
    }
  }
  return y;
}

Tensor ResNet::forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits) const {
  Tensor y = ops::cast(nn::pool_image(features, config_.global_pool), DType::f32);  // the head runs in f32
  y = nn::Dropout{static_cast<float>(config_.drop_rate)}(y, pass);
  return fc_ && !pre_logits ? (*fc_)(y) : y;
}

Size2 ResNet::stem_size(const Size2& size) const {
  Size2 result = size;
  for (const ConvNorm& layer : stem_) {
    result = layer.conv.output_size(result);
  }
  return {(result[0] + 1) / 2, (result[1] + 1) / 2};
}

TokenLayout ResNet::token_layout(std::int64_t height, std::int64_t width) const {
  Size2 size = stem_size({height, width});
  for (const std::vector<ResNetBlock>& stage : stages_) {
    for (const ConvNorm& layer : stage.front().layers) {  // only the first block has a stride
      size = layer.conv.output_size(size);
    }
  }
  return {0, size[0], size[1], false};
}

std::int64_t ResNet::flops(std::int64_t height, std::int64_t width) const {
  check_cost(config_, height, width);
  Size2 size = {height, width};
  std::int64_t total = 0;
  for (const ConvNorm& layer : stem_) {
    total += layer.flops(size);
  }
  size = stem_size({height, width});
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    for (const ResNetBlock& block : stages_[i]) {
      total += block.flops(size);
    }
    if (const auto sagan = sagan_.find(i); sagan != sagan_.end()) {
      total += sagan->second.flops(size);
    }
  }
  return total + nn::pool_flops(num_features(), size, config_.global_pool) + (fc_ ? fc_->flops(1) : 0);
}

std::int64_t ResNet::layer_of(const std::string& parameter) const {
  if (starts_with_any(parameter, {"conv1", "bn1"})) {
    return 0;
  }
  std::int64_t before = 1;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    const std::string number = std::to_string(stage + 1) + ".";
    if (const auto index = index_after(parameter, "layer" + number)) {
      return before + *index;
    }
    before += config_.layers[stage];
    if (parameter.starts_with("attn" + number)) {  // belongs to the layer of the stage's last block
      return before - 1;
    }
  }
  return before;
}

Tensor ResNet::adapt(const std::string& parameter, const Tensor& value, const Shape& /*wanted*/,
                     const Size2& /*source*/) const {
  const bool first = parameter == "conv1.weight" || parameter == "conv1.0.weight";
  return first ? with_channels(value, config_.in_chans) : value;
}

}  // namespace vitrail::models
