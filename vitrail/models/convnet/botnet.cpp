#include "vitrail/models/convnet/botnet.h"

#include <array>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/models/base/adapt.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/convnet/families.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/nn/images/image_attention.h"
#include "vitrail/ops/attention/attention.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

using nn::ConvNorm;
using nn::Size2;

namespace {

constexpr std::int64_t heads = 4;
constexpr std::int64_t blocks_of_a_stage = 2;
constexpr std::array<std::int64_t, 4> stage_channels = {256, 512, 1024, 2048};
constexpr ops::PoolOptions botnet_stem_pool{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};

// Whether block `block` of stage `stage` has attention: the second block of the third stage and both of the last do.
bool attends(std::size_t stage, std::int64_t block) { return stage == 3 || (stage == 2 && block == 1); }

std::int64_t widened(const BotNetConfig& c, std::int64_t channels) {
  return make_divisible(static_cast<double>(channels) * c.width_factor);
}

std::int64_t inner_width(std::int64_t out) { return make_divisible(static_cast<double>(out) * 0.25); }

void check_config(const BotNetConfig& c) {
  check(c.img_size[0] > 0 && c.img_size[1] > 0 && c.img_size[0] % 32 == 0 && c.img_size[1] % 32 == 0,
        "img_size must be a multiple of 32, not {}x{}", c.img_size[0], c.img_size[1]);
  check(c.in_chans > 0 && c.num_classes >= 0 && c.width_factor > 0,
        "in_chans and width_factor must be positive, and num_classes not negative");
  check(std::lround(64 * c.width_factor) >= 4, "width_factor {} leaves the stem no channels", c.width_factor);
  check(c.num_classes == 0 || c.global_pool != nn::Pool::none,
        "without pooling (global_pool '') num_classes must be 0, not {}", c.num_classes);
  for (const double rate : {c.drop_rate, c.drop_path_rate}) {
    check(rate >= 0 && rate < 1, "a drop rate lies in [0, 1), but one is {}", rate);
  }
  const double pixels = static_cast<double>(c.img_size[0]) * static_cast<double>(c.img_size[1]);
  const double width = 2048 * c.width_factor + 64;
  const double cost = pixels * (9 * (static_cast<double>(c.in_chans) + width) + pixels / 256) * width;
  check(cost < 1e17, "img_size {}x{} with width_factor {} would take {:.0e} FLOPs for an image", c.img_size[0],
        c.img_size[1], c.width_factor, cost);
}

BotNetConfig read_botnet(const nlohmann::json& arguments, const std::string& source) {
  io::Fields f(arguments, source);
  BotNetConfig c;
  c.img_size = read_size(f, "img_size", c.img_size);
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, {1, largest_size});
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, {0, largest_size});
  c.global_pool = nn::pool_named(f.choice("global_pool", "avg", {"", "avg", "max", "avgmax"}));
  c.width_factor = f.get<double>("width_factor", c.width_factor, {1e-2, 64});
  c.act_layer = read_activation(f, "relu");
  c.drop_rate = f.get<double>("drop_rate", 0, {0, 1});
  c.drop_path_rate = f.get<double>("drop_path_rate", 0, {0, 1});
  c.zero_init_last = f.get<bool>("zero_init_last", c.zero_init_last);
  f.finish();
  return c;
}

// The rule of timm's init_weights.
nn::InitRule init_rule(const BotNetConfig& c) {
  return [zero = c.zero_init_last](std::string_view name, const Shape& shape, const nn::Init& own) {
    if (name.starts_with("head.fc.")) {
      return name.ends_with(".bias") ? nn::Init::zeros() : nn::Init::normal(0.01F);
    }
    if (shape.rank() == 4 && !name.ends_with(".self_attn.qkv.weight")) {
      return nn::Init::kaiming_normal(shape);
    }
    if (shape.rank() == 4) {
      return nn::Init::trunc_normal(static_cast<float>(1 / std::sqrt(static_cast<double>(shape[1]))));
    }
    return zero && name.ends_with(".conv3_1x1.bn.weight") ? nn::Init::zeros() : own;
  };
}

ConvNorm conv_norm(const nn::Scope& scope, std::int64_t in, std::int64_t out, std::int64_t kernel,
                   std::int64_t stride) {
  const std::int64_t padding = (kernel - 1) / 2;
  return {scope / "conv", scope / "bn", in, out, {kernel, kernel}, {{stride, stride}, {padding, padding}}};
}

// Computes q · rel[b - a] for each pixel, where a is its index along `dim` (2 for rows, 3 for columns) and b runs over
// all indices of this dimension: q [B, heads, H, W, d], rel [2 n - 1, d] → [B, heads, H, W, n].
Tensor relative_scores(const Tensor& q, const Tensor& rel, int dim) {
  const std::int64_t n = q.size(dim);
  const Tensor offsets = ops::matmul(q, ops::transpose(ops::cast(rel, q.dtype()), 0, 1));  // [B, heads, H, W, 2 n - 1]
  const Tensor index = Tensor::empty({n, n}, DType::i64);
  for (std::int64_t a = 0; a < n; ++a) {
    for (std::int64_t b = 0; b < n; ++b) {
      index.data<std::int64_t>()[a * n + b] = b - a + n - 1;
    }
  }
  Shape place{1, 1, 1, 1, n};
  place[dim] = n;
  return ops::gather(offsets, 4, index.reshape(place).expand(q.shape().with(4, n)).contiguous());
}

}  // namespace

BottleneckAttention::BottleneckAttention(const nn::Scope& scope, std::int64_t channels, const Size2& input_size,
                                         std::int64_t output_stride)
    : size(input_size),
      stride(output_stride),
      head_dim(make_divisible(static_cast<double>(channels)) / heads),
      name(scope.path()),
      qkv(scope / "qkv", channels, 2 * heads * head_dim + channels, {1, 1}, {}, false) {
  check(channels % heads == 0, "{}: {} channels cannot be divided among {} heads", scope.path(), channels, heads);
  const nn::Init init = nn::Init::trunc_normal(static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim))));
  const nn::Scope positions = scope / "pos_embed";
  height_rel = positions.parameter("height_rel", {2 * size[0] - 1, head_dim}, init);
  width_rel = positions.parameter("width_rel", {2 * size[1] - 1, head_dim}, init);
}

Tensor BottleneckAttention::operator()(const Tensor& x, const nn::Pass& pass) const {
  const std::int64_t batch = x.size(0);
  const std::int64_t n = size[0] * size[1];
  const std::int64_t keys = heads * head_dim;
  const std::int64_t values = x.size(1);
  const Tensor tokens = ops::reshape(ops::permute(qkv(x), {0, 2, 3, 1}), {batch, n, 2 * keys + values});
  const std::vector<Tensor> parts = ops::split(tokens, {keys, keys, values}, 2);
  const auto of_heads = [&](const Tensor& part) {  // [B, N, heads · d] → [B, heads, N, d]
    return ops::permute(ops::reshape(part, {batch, n, heads, part.size(2) / heads}), {0, 2, 1, 3});
  };
  const Tensor q = of_heads(parts[0]);
  const Tensor k = of_heads(parts[1]);
  const Tensor on_grid = ops::reshape(q, {batch, heads, size[0], size[1], head_dim});
  const Tensor by_row = ops::unsqueeze(relative_scores(on_grid, height_rel, 2), 5);    // [B, heads, H, W, H', 1]
  const Tensor by_column = ops::unsqueeze(relative_scores(on_grid, width_rel, 3), 4);  // [B, heads, H, W, 1, W']
  const Tensor bias =
      ops::reshape(ops::cast(by_row, DType::f32) + ops::cast(by_column, DType::f32), {batch, heads, n, n});
  const ops::AttentionOptions options{.bias = bias};
  if (pass.wants_attention()) {
    nn::record_pixels(pass, name, ops::attention_probabilities(q, k, options), size);
  }
  const Tensor joined = ops::permute(ops::attention(q, k, of_heads(parts[2]), options), {0, 2, 1, 3});
  const Tensor y = ops::permute(ops::reshape(joined, {batch, size[0], size[1], values}), {0, 3, 1, 2});
  return stride == 1 ? y : ops::avg_pool2d(y, {});
}

std::int64_t BottleneckAttention::flops(Size2& image) const {
  const std::int64_t n = size[0] * size[1];
  const std::int64_t channels = qkv.weight.size(1);
  const std::int64_t positions = n * heads * head_dim * (2 * size[0] - 1 + 2 * size[1] - 1);
  image = {image[0] / stride, image[1] / stride};
  return qkv.flops(size[0], size[1]) + n * n * (heads * head_dim + channels) + positions;
}

BotNetBlock::BotNetBlock(const nn::Scope& scope, const BotNetConfig& c, const Place& place)
    : activation(c.act_layer),
      conv1_1x1(conv_norm(scope / "conv1_1x1", place.in, inner_width(place.out), 1, 1)),
      conv3_1x1(conv_norm(scope / "conv3_1x1", inner_width(place.out), place.out, 1, 1)),
      drop_path{place.drop_path} {
  const std::int64_t inner = inner_width(place.out);
  if (place.stride != 1 || place.in != place.out) {
    shortcut.emplace(conv_norm(scope / "shortcut", place.in, place.out, 1, place.stride));
  }
  if (place.attends) {
    self_attn.emplace(scope / "self_attn", inner, place.size, place.stride);
    post_attn.emplace(scope / "post_attn", inner);
  } else {
    conv2_kxk.emplace(conv_norm(scope / "conv2_kxk", inner, inner, 3, place.stride));
  }
}

Tensor BotNetBlock::operator()(const Tensor& x, nn::Pass& pass) const {
  Tensor y = conv1_1x1(x, pass, activation);
  if (self_attn) {
    y = (*post_attn)((*self_attn)(y, pass), pass, activation);
  } else {
    y = (*conv2_kxk)(y, pass, activation);
  }
  const Tensor residual = shortcut ? (*shortcut)(x, pass) : x;
  if (!drop_path.active(pass)) {
    return conv3_1x1(y, pass, activation, residual);
  }
  return nn::activate_image(nn::drop_path_image(conv3_1x1(y, pass), drop_path, pass), activation, residual);
}

std::int64_t BotNetBlock::flops(Size2& size) const {
  Size2 input = size;
  std::int64_t total = shortcut ? shortcut->flops(input) : 0;
  total += conv1_1x1.flops(size);
  if (self_attn) {
    total += self_attn->flops(size);
    total += post_attn->flops(size);
  } else {
    total += conv2_kxk->flops(size);
  }
  return total + conv3_1x1.flops(size);
}

BotNet::BotNet(const nn::Scope& scope, const BotNetConfig& config) : scope_(scope), config_(config) {
  check_config(config_);
  const nn::Scope root = scope.with_init(init_rule(config_));
  const auto stem = static_cast<std::int64_t>(std::lround(64 * config_.width_factor));
  const nn::Scope stem_scope = root / "stem";
  stem_.push_back(conv_norm(stem_scope / "conv1", config_.in_chans, 3 * stem / 8, 3, 2));
  stem_.push_back(conv_norm(stem_scope / "conv2", 3 * stem / 8, stem / 2, 3, 1));
  stem_.push_back(conv_norm(stem_scope / "conv3", stem / 2, stem, 3, 1));
  BotNetBlock::Place place{.in = stem, .size = {config_.img_size[0] / 4, config_.img_size[1] / 4}};
  std::int64_t index = 0;
  for (std::size_t stage = 0; stage < stage_channels.size(); ++stage) {
    place.out = widened(config_, stage_channels[stage]);
    const nn::Scope stage_scope = root / "stages" / static_cast<std::int64_t>(stage);
    std::vector<BotNetBlock>& made = stages_.emplace_back();
    for (std::int64_t i = 0; i < blocks_of_a_stage; ++i, ++index) {
      place.stride = stage > 0 && i == 0 ? 2 : 1;
      place.attends = attends(stage, i);
      place.drop_path =
          static_cast<float>(config_.drop_path_rate * static_cast<double>(index) / static_cast<double>(depth() - 1));
      made.emplace_back(stage_scope / i, config_, place);
      place.in = place.out;
      place.size = {place.size[0] / place.stride, place.size[1] / place.stride};
    }
  }
  if (config_.num_classes > 0) {
    fc_.emplace(root / "head" / "fc", num_features(), config_.num_classes);
  }
}

std::int64_t BotNet::num_features() const { return widened(config_, stage_channels.back()); }

void BotNet::check_size(std::int64_t height, std::int64_t width) const {
  check(height == config_.img_size[0] && width == config_.img_size[1],
        "the model takes images of {}x{} (img_size), not of {}x{}", config_.img_size[0], config_.img_size[1], height,
        width);
}

Tensor BotNet::forward_features(const Tensor& x, nn::Pass& pass) const {
  check(x.rank() == 4 && x.size(1) == config_.in_chans, "the model takes images [B, {}, H, W], not {}",
        config_.in_chans, x.shape());
  check_size(x.size(2), x.size(3));
  Tensor y = ops::cast(x, pass.dtype);
  for (const ConvNorm& layer : stem_) {
    y = layer(y, pass, config_.act_layer);
  }
  y = ops::max_pool2d(y, botnet_stem_pool);
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    for (const BotNetBlock& block : stages_[i]) {
      y = nn::run_block([&block](const Tensor& input, nn::Pass& own) { return block(input, own); }, y, pass);
    }
    if (pass.wants_features()) {
      pass.recorder->feature((scope_ / "stages" / static_cast<std::int64_t>(i)).path(), y);
    }
  }
  return y;
}

Tensor BotNet::forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits) const {
  Tensor y = ops::cast(nn::pool_image(features, config_.global_pool), DType::f32);  // the head runs in f32
  y = nn::Dropout{static_cast<float>(config_.drop_rate)}(y, pass);
  return fc_ && !pre_logits ? (*fc_)(y) : y;
}

TokenLayout BotNet::token_layout(std::int64_t height, std::int64_t width) const {
  return {0, height / 32, width / 32, false};
}

std::int64_t BotNet::flops(std::int64_t height, std::int64_t width) const {
  check_size(height, width);
  Size2 size = {height, width};
  std::int64_t total = 0;
  for (const ConvNorm& layer : stem_) {
    total += layer.flops(size);
  }
  size = {height / 4, width / 4};
  for (const std::vector<BotNetBlock>& stage : stages_) {
    for (const BotNetBlock& block : stage) {
      total += block.flops(size);
    }
  }
  return total + nn::pool_flops(num_features(), size, config_.global_pool) + (fc_ ? fc_->flops(1) : 0);
}

std::int64_t BotNet::layer_of(const std::string& parameter) const {
  if (parameter.starts_with("stem.")) {
    return 0;
  }
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    if (const auto index = index_after(parameter, "stages." + std::to_string(stage) + ".")) {
      return 1 + static_cast<std::int64_t>(stage) * blocks_of_a_stage + *index;
    }
  }
  return depth() + 1;
}

Tensor BotNet::adapt(const std::string& parameter, const Tensor& value, const Shape& /*wanted*/,
                     const Size2& /*source*/) const {
  return parameter == "stem.conv1.conv.weight" ? with_channels(value, config_.in_chans) : value;
}

constinit const Family botnet_family = {
    .name = "botnet", .table = botnet_table, .build = build<BotNet, read_botnet>, .first_conv = "stem.conv1.conv"};

}  // namespace vitrail::models
