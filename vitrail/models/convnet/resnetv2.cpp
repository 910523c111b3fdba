#include "vitrail/models/convnet/resnetv2.h"

#include <algorithm>
#include <utility>

#include "vitrail/models/base/adapt.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

using nn::Size2;
using StemType = ResNetV2Config::Stem;
using StemPool = ResNetV2Config::StemPool;

namespace {

constexpr float smallest = -3e38F;  // less than any value of a map, and finite in bf16 too

constexpr ops::PoolOptions shortcut_pool{.ceil_mode = true, .count_include_pad = false};

void check_cost(const ResNetV2Config& c, std::int64_t height, std::int64_t width) {
  check(resnetv2_cost(c, static_cast<double>(height), static_cast<double>(width)) < 1e18,
        "an image of {}x{} would take more FLOPs than can be counted", height, width);
}

std::int64_t widened(const ResNetV2Config& c, std::int64_t channels) {
  return make_divisible(static_cast<double>(channels) * static_cast<double>(c.width_factor));
}

Size2 halved(const Size2& size) { return {(size[0] + 1) / 2, (size[1] + 1) / 2}; }

}  // namespace

std::int64_t ResNetV2Config::stem_channels() const { return widened(*this, stem_chs); }

std::int64_t ResNetV2Config::out_channels() const {
  return layers.empty() ? stem_channels() : widened(*this, channels[layers.size() - 1]);
}

double resnetv2_cost(const ResNetV2Config& c, double height, double width) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double stem = 8 + 2 * real(c.stem_chs) * real(c.width_factor);
  double per_pixel = 49 * (real(c.in_chans) + stem) * stem;
  double before = stem;
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    const double widest = (16 + 2 * real(c.channels[i]) * real(c.width_factor)) * std::max(1.0, 2 * c.bottle_ratio);
    per_pixel += real(c.layers[i]) * 18 * (widest + before) * (widest + before);
    before = widest;
  }
  return (height + 32) * (width + 32) * per_pixel + before * real(c.num_classes);
}

void check_resnetv2(const ResNetV2Config& c) {
  check(c.layers.empty() || c.layers.size() <= c.channels.size(), "layers has {} stages, but channels only {}",
        c.layers.size(), c.channels.size());
  const bool positive = std::ranges::all_of(c.layers, [](std::int64_t n) { return n > 0; }) &&
                        std::ranges::all_of(c.channels, [](std::int64_t n) { return n > 0; });
  check(positive && c.in_chans > 0 && c.width_factor > 0 && c.stem_chs > 0 && c.num_classes >= 0,
        "layers, channels, in_chans, width_factor and stem_chs must be positive, and num_classes not negative");
  check(c.preact || !c.basic, "blocks without preact are bottlenecks: basic cannot be had");
  check(c.bottle_ratio > 0, "bottle_ratio must be positive, not {}", c.bottle_ratio);
  check(c.num_classes == 0 || c.global_pool != nn::Pool::none,
        "without pooling (global_pool '') num_classes must be 0, not {}", c.num_classes);
  for (const double rate : {c.drop_rate, c.drop_path_rate}) {
    check(rate >= 0 && rate < 1, "a drop rate lies in [0, 1), but one is {}", rate);
  }
  check_cost(c, c.img_size[0], c.img_size[1]);
}

nn::InitRule resnetv2_init_rule(const ResNetV2Config& c) {
  const std::string last = !c.preact ? ".norm3.weight" : (c.basic ? ".conv2.weight" : ".conv3.weight");
  return [last, zero = c.zero_init_last](std::string_view name, const Shape& shape, const nn::Init& own) {
    if (zero && name.starts_with("stages.") && name.ends_with(last)) {
      return nn::Init::zeros();
    }
    if (name.starts_with("head.fc.")) {
      return name.ends_with(".bias") ? nn::Init::zeros() : nn::Init::normal(0.01F);
    }
    return shape.rank() == 4 ? nn::Init::kaiming_normal(shape) : own;
  };
}

ResNetV2Stem::ResNetV2Stem(const nn::Scope& scope, const ResNetV2Config& c)
    : pool(c.stem_pool), activation(c.act_layer) {
  const std::int64_t out = c.stem_channels();
  const auto add = [&](const std::string& index, std::int64_t from, std::int64_t to, std::int64_t kernel,
                       std::int64_t stride, bool norm) {
    convs.emplace_back(scope / ("conv" + index), from, to, kernel, stride, c.conv_layer);
    if (norm) {
      norms.emplace_back(scope / ("norm" + index), to, c.norm_layer);
    }
  };
  if (c.stem_type == StemType::plain) {
    add("", c.in_chans, out, 7, 2, !c.preact);
    return;
  }
  const std::int64_t first = c.stem_type == StemType::tiered ? 3 * out / 8 : out / 2;
  add("1", c.in_chans, first, 3, 2, true);
  add("2", first, out / 2, 3, 1, true);
  add("3", out / 2, out, 3, 1, !c.preact);
}

Tensor ResNetV2Stem::operator()(const Tensor& x, const nn::Pass& pass) const {
  Tensor y = x;
  for (std::size_t i = 0; i < convs.size(); ++i) {
    y = convs[i](y);
    y = i < norms.size() ? norms[i](y, pass, activation) : y;
  }
  switch (pool) {
    case StemPool::even:
      return ops::max_pool2d(y, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    case StemPool::zeros:  // zeros take part in the maximum
      return ops::max_pool2d(nn::pad_image(y, {1, 1}, {1, 1}), {.kernel = {3, 3}, .stride = {2, 2}});
    case StemPool::by_size:
      return ops::max_pool2d(nn::pad_same(y, 3, 2, smallest), {.kernel = {3, 3}, .stride = {2, 2}});
  }
  fail("no such pooling: {}", static_cast<int>(pool));
}

Size2 ResNetV2Stem::output_size(const Size2& size) const {
  Size2 result = size;
  for (const nn::StyledConv2d& conv : convs) {
    result = conv.output_size(result);
  }
  return halved(result);
}

std::int64_t ResNetV2Stem::flops(Size2& size) const {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < convs.size(); ++i) {
    total += convs[i].flops(size);
    total += i < norms.size() ? norms[i].flops(size) : 0;
  }
  size = halved(size);
  return total;
}

ResNetV2Block::Shortcut::Shortcut(const nn::Scope& scope, const ResNetV2Config& c, std::int64_t in, std::int64_t out,
                                  std::int64_t stride)
    : pool(c.avg_down && stride > 1), conv(scope / "conv", in, out, 1, c.avg_down ? 1 : stride, c.conv_layer) {
  if (!c.preact) {
    norm.emplace(scope / "norm", out, c.norm_layer);
  }
}

Tensor ResNetV2Block::Shortcut::operator()(const Tensor& x, const nn::Pass& pass) const {
  const Tensor y = conv(pool ? ops::avg_pool2d(x, shortcut_pool) : x);
  return norm ? (*norm)(y, pass) : y;
}

std::int64_t ResNetV2Block::Shortcut::flops(Size2 size) const {
  size = pool ? halved(size) : size;
  const std::int64_t total = conv.flops(size);
  return total + (norm ? norm->flops(size) : 0);
}

ResNetV2Block::ResNetV2Block(const nn::Scope& scope, const ResNetV2Config& c, std::int64_t in, std::int64_t out,
                             std::int64_t stride, bool first, float drop)
    : preact(c.preact), activation(c.act_layer), drop_path{drop} {
  const std::int64_t inner = make_divisible(static_cast<double>(out) * c.bottle_ratio);
  const auto add = [&](std::int64_t from, std::int64_t to, std::int64_t kernel, std::int64_t step) {
    const std::string index = std::to_string(convs.size() + 1);
    convs.emplace_back(scope / ("conv" + index), from, to, kernel, step, c.conv_layer);
    norms.emplace_back(scope / ("norm" + index), c.preact ? from : to, c.norm_layer);
  };
  if (c.basic) {
    add(in, inner, 3, stride);
    add(inner, out, 3, 1);
  } else {
    add(in, inner, 1, 1);
    add(inner, inner, 3, stride);
    add(inner, out, 1, 1);
  }
  if (first && (!c.basic || stride != 1 || in != out)) {
    downsample.emplace(scope / "downsample", c, in, out, stride);
  }
}

Tensor ResNetV2Block::operator()(const Tensor& x, nn::Pass& pass) const {
  Tensor y = x;
  Tensor shortcut = x;
  if (!preact && downsample) {
    shortcut = (*downsample)(x, pass);
  }
  for (std::size_t i = 0; i < convs.size(); ++i) {
    if (preact) {
      y = norms[i](y, pass, activation);
      shortcut = i == 0 && downsample ? (*downsample)(y, pass) : shortcut;
      y = convs[i](y);
    } else {
      y = norms[i](convs[i](y), pass, i + 1 < convs.size() ? activation : ops::Activation::identity);
    }
  }
  y = nn::drop_path_image(y, drop_path, pass);
  return nn::activate_image(y, preact ? ops::Activation::identity : activation, shortcut);
}

Size2 ResNetV2Block::output_size(const Size2& size) const {
  Size2 result = size;
  for (const nn::StyledConv2d& conv : convs) {
    result = conv.output_size(result);
  }
  return result;
}

std::int64_t ResNetV2Block::flops(Size2& size) const {
  std::int64_t total = downsample ? downsample->flops(size) : 0;
  for (std::size_t i = 0; i < convs.size(); ++i) {
    total += preact ? norms[i].flops(size) : 0;
    total += convs[i].flops(size);
    total += preact ? 0 : norms[i].flops(size);
  }
  return total;
}

ResNetV2Body::ResNetV2Body(const nn::Scope& scope, const ResNetV2Config& c)
    : scope_(scope), activation_(c.act_layer), stem_(scope / "stem", c) {
  std::int64_t in = c.stem_channels();
  std::int64_t blocks = 0;
  for (const std::int64_t number : c.layers) {
    blocks += number;
  }
  std::int64_t index = 0;
  for (std::size_t stage = 0; stage < c.layers.size(); ++stage) {
    const std::int64_t out = widened(c, c.channels[stage]);
    const nn::Scope place = scope / "stages" / static_cast<std::int64_t>(stage) / "blocks";
    std::vector<ResNetV2Block>& made = stages_.emplace_back();
    for (std::int64_t i = 0; i < c.layers[stage]; ++i, ++index) {
      const double share = blocks > 1 ? static_cast<double>(index) / static_cast<double>(blocks - 1) : 0;
      const std::int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      made.emplace_back(place / i, c, in, out, stride, i == 0, static_cast<float>(c.drop_path_rate * share));
      in = out;
    }
  }
  if (c.preact) {
    norm_.emplace(scope / "norm", in, c.norm_layer);
  }
}

Tensor ResNetV2Body::operator()(const Tensor& x, nn::Pass& pass, bool in_front) const {
  Tensor y = stem_(x, pass);
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    for (const ResNetV2Block& block : stages_[i]) {
      y = nn::run_block([&block](const Tensor& input, nn::Pass& own) { return block(input, own); }, y, pass);
    }
    if (pass.wants_features()) {
      const std::string name = (scope_ / "stages" / static_cast<std::int64_t>(i)).path();
      if (in_front) {
        pass.recorder->stem_feature(name, y);
      } else {
        pass.recorder->feature(name, y);
      }
    }
  }
  return norm_ ? (*norm_)(y, pass, activation_) : y;
}

Size2 ResNetV2Body::output_size(const Size2& size) const {
  Size2 result = stem_.output_size(size);
  for (const std::vector<ResNetV2Block>& stage : stages_) {
    result = stage.front().output_size(result);  // only the first block has a stride
  }
  return result;
}

std::int64_t ResNetV2Body::flops(Size2& size) const {
  std::int64_t total = stem_.flops(size);
  for (const std::vector<ResNetV2Block>& stage : stages_) {
    for (const ResNetV2Block& block : stage) {
      total += block.flops(size);
    }
  }
  return total + (norm_ ? norm_->flops(size) : 0);
}

ResNetV2::ResNetV2(const nn::Scope& scope, const ResNetV2Config& config) : config_(config) {
  check(!config_.layers.empty(), "layers must name at least one stage");
  check_resnetv2(config_);
  const nn::Scope root = scope.with_init(resnetv2_init_rule(config_));
  body_.emplace(root, config_);
  if (config_.num_classes > 0) {
    fc_.emplace(root / "head" / "fc", num_features(), config_.num_classes, Size2{1, 1});
  }
}

std::int64_t ResNetV2::depth() const {
  std::int64_t blocks = 0;
  for (const std::int64_t number : config_.layers) {
    blocks += number;
  }
  return blocks;
}

Tensor ResNetV2::forward_features(const Tensor& x, nn::Pass& pass) const {
  check(x.rank() == 4 && x.size(1) == config_.in_chans, "the model takes images [B, {}, H, W], not {}",
        config_.in_chans, x.shape());
  return (*body_)(ops::cast(x, pass.dtype), pass, false);
}

Tensor ResNetV2::forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits) const {
  Tensor y = ops::cast(nn::pool_image(features, config_.global_pool), DType::f32);  // the head runs in f32
  y = nn::Dropout{static_cast<float>(config_.drop_rate)}(y, pass);
  return fc_ && !pre_logits
             ? ops::reshape((*fc_)(ops::reshape(y, {y.size(0), y.size(1), 1, 1})), {y.size(0), num_classes()})
             : y;
}

TokenLayout ResNetV2::token_layout(std::int64_t height, std::int64_t width) const {
  const Size2 size = body_->output_size({height, width});
  return {0, size[0], size[1], false};
}

std::int64_t ResNetV2::flops(std::int64_t height, std::int64_t width) const {
  check_cost(config_, height, width);
  Size2 size = {height, width};
  const std::int64_t total = body_->flops(size);
  return total + nn::pool_flops(num_features(), size, config_.global_pool) + (fc_ ? fc_->flops(1, 1) : 0);
}

std::int64_t ResNetV2::layer_of(const std::string& parameter) const {
  if (parameter.starts_with("stem.")) {
    return 0;
  }
  std::int64_t before = 1;
  for (std::size_t stage = 0; stage < config_.layers.size(); ++stage) {
    if (const auto index = index_after(parameter, "stages." + std::to_string(stage) + ".blocks.")) {
      return before + *index;
    }
    before += config_.layers[stage];
  }
  return parameter.starts_with("norm.") ? before - 1 : before;  // the final norm belongs to the layer of the last block
}

Tensor ResNetV2::adapt(const std::string& parameter, const Tensor& value, const Shape& /*wanted*/,
                       const Size2& /*source*/) const {
  const bool first = parameter == "stem.conv.weight" || parameter == "stem.conv1.weight";
  return first ? with_channels(value, config_.in_chans) : value;
}

}  // namespace vitrail::models
