#include "vitrail/models/mlp/s2_mlp.h"

#include <string_view>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/base/adapt.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/mlp/families.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/images/shift.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

using nn::Size2;

namespace {

constexpr float s2_norm_eps = 1e-5F;

std::int64_t hidden_width(const S2MlpConfig& c) {
  return static_cast<std::int64_t>(static_cast<double>(c.embed_dim) * c.mlp_ratio);
}

void check_config(const S2MlpConfig& c) {
  check(c.img_size[0] >= c.patch_size[0] && c.img_size[1] >= c.patch_size[1],
        "img_size {}x{} holds no patch of patch_size {}x{}", c.img_size[0], c.img_size[1], c.patch_size[0],
        c.patch_size[1]);
  check(c.embed_dim % 4 == 0, "embed_dim {} cannot be divided among four directions", c.embed_dim);
  check(hidden_width(c) > 0, "mlp_ratio {} leaves no hidden unit to embed_dim {}", c.mlp_ratio, c.embed_dim);
  for (const double rate : {c.drop_rate, c.proj_drop_rate, c.drop_path_rate}) {
    check(rate >= 0 && rate < 1, "a drop rate lies in [0, 1), but one is {}", rate);
  }
  // The approximate number of multiply-accumulates for one image; it is bounded so that all counts computed from these
  // numbers fit into 64 bits.
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double pixels = real(c.img_size[0]) * real(c.img_size[1]);
  const double tokens = pixels / (real(c.patch_size[0]) * real(c.patch_size[1]));
  const double block = tokens * (2 + 2 * c.mlp_ratio) * real(c.embed_dim) * real(c.embed_dim);
  const double cost = pixels * real(c.in_chans) * real(c.embed_dim) + block * real(c.depth);
  check(cost < 1e17, "img_size {}x{} with embed_dim {} and depth {} would take {:.0e} FLOPs for an image",
        c.img_size[0], c.img_size[1], c.embed_dim, c.depth, cost);
}

S2MlpConfig read_s2_mlp(const nlohmann::json& arguments, const std::string& source) {
  io::Fields f(arguments, source);
  S2MlpConfig c;
  const io::Range positive{1, largest_size};
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, {0, largest_size});
  c.img_size = read_size(f, "img_size", c.img_size);
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, positive);
  c.patch_size = read_size(f, "patch_size", c.patch_size);
  c.embed_dim = f.get<std::int64_t>("embed_dim", c.embed_dim, positive);
  c.depth = f.get<std::int64_t>("depth", c.depth, {1, 4096});
  c.mlp_ratio = f.get<double>("mlp_ratio", c.mlp_ratio, {1e-3, 1e3});
  c.pre_norm = f.get<bool>("pre_norm", false);
  c.drop_rate = f.get<double>("drop_rate", 0, {0, 1});
  c.proj_drop_rate = f.get<double>("proj_drop_rate", 0, {0, 1});
  c.drop_path_rate = f.get<double>("drop_path_rate", 0, {0, 1});
  f.finish();
  return c;
}

// The paper trains as DeiT does, so the parameters start as those of DeiT.
nn::Init s2_start(std::string_view name, const Shape& /*shape*/, const nn::Init& own) {
  if (own.kind != nn::Init::Kind::uniform || name.starts_with("patch_embed.")) {
    return own;
  }
  return name.ends_with(".weight") ? nn::Init::trunc_normal(0.02F) : nn::Init::zeros();
}

}  // namespace

Tensor spatial_shift(const Tensor& x) {
  const std::int64_t quarter = x.size(3) / 4;
  return ops::shift_channels(x,
                             {{.begin = 0, .end = quarter, .columns = -1},
                              {.begin = quarter, .end = 2 * quarter, .columns = 1},
                              {.begin = 2 * quarter, .end = 3 * quarter, .rows = -1},
                              {.begin = 3 * quarter, .end = 4 * quarter, .rows = 1}},
                             ops::Border::edge);
}

SpatialShiftBlock::SpatialShiftBlock(const nn::Scope& scope, const S2MlpConfig& c, std::int64_t index)
    : pre_norm(c.pre_norm),
      norm1(scope / "norm1", c.embed_dim, s2_norm_eps),
      fc1(scope / "fc1", c.embed_dim, c.embed_dim),
      fc2(scope / "fc2", c.embed_dim, c.embed_dim),
      norm2(scope / "norm2", c.embed_dim, s2_norm_eps),
      mlp(scope / "mlp", {.dim = c.embed_dim,
                          .hidden = hidden_width(c),
                          .drop1 = static_cast<float>(c.proj_drop_rate),
                          .drop2 = static_cast<float>(c.proj_drop_rate)}),
      drop{static_cast<float>(c.proj_drop_rate)},
      drop_path{c.depth > 1 ? static_cast<float>(c.drop_path_rate * static_cast<double>(index) /
                                                 static_cast<double>(c.depth - 1))
                            : 0.0F} {}

Tensor SpatialShiftBlock::operator()(Tensor x, nn::Pass& pass) const {
  const auto mix = [&](const Tensor& input) {
    const Tensor hidden = drop(fc1(input, ops::Activation::gelu), pass);
    return drop(fc2(spatial_shift(hidden)), pass);
  };
  if (pre_norm) {
    x = x + drop_path(mix(norm1(x)), pass);
    return nn::add_branch(x, drop_path, pass, [&](const Tensor& residual) { return mlp(norm2(x), pass, residual); });
  }
  x = x + drop_path(norm1(mix(x)), pass);
  return x + drop_path(norm2(mlp(x, pass)), pass);
}

std::int64_t SpatialShiftBlock::flops(std::int64_t tokens) const {
  const std::int64_t norms = 2 * 5 * tokens * fc1.in_features();
  return norms + fc1.flops(tokens) + fc2.flops(tokens) + mlp.flops(tokens);
}

S2Mlp::S2Mlp(const nn::Scope& scope, const S2MlpConfig& config) : scope_(scope), config_(config) {
  check_config(config_);
  const nn::Scope root = scope.with_init(s2_start);
  patch_embed_.emplace(root / "patch_embed", config_.patch_size, config_.in_chans, config_.embed_dim);
  norm_.emplace(root / "patch_embed" / "norm", config_.embed_dim, s2_norm_eps);
  for (std::int64_t i = 0; i < config_.depth; ++i) {
    blocks_.emplace_back(root / "blocks" / i, config_, i);
  }
  if (config_.num_classes > 0) {
    head_.emplace(root / "head", config_.embed_dim, config_.num_classes);
  }
}

Tensor S2Mlp::forward_features(const Tensor& x, nn::Pass& pass) const {
  const Size2& patch = config_.patch_size;
  check(x.rank() == 4, "the model takes images [B, {}, H, W], not {}", config_.in_chans, x.shape());
  check(x.size(2) >= patch[0] && x.size(3) >= patch[1] && x.size(2) % patch[0] == 0 && x.size(3) % patch[1] == 0,
        "an image of {}x{} is not made of whole patches of {}x{}", x.size(2), x.size(3), patch[0], patch[1]);
  const Size2 grid = patch_embed_->grid(x.size(2), x.size(3));
  const Shape image = {x.size(0), grid[0], grid[1], config_.embed_dim};
  const Shape tokens = {x.size(0), grid[0] * grid[1], config_.embed_dim};
  Tensor y = ops::reshape((*norm_)((*patch_embed_)(ops::cast(x, pass.dtype))), image);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    y = nn::run_block([&block = blocks_[i]](const Tensor& input, nn::Pass& again) { return block(input, again); }, y,
                      pass);
    if (pass.wants_features()) {
      pass.recorder->feature((scope_ / "blocks" / static_cast<std::int64_t>(i)).path(), y.reshape(tokens));
    }
  }
  return y;
}

Tensor S2Mlp::forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits) const {
  Tensor y = ops::cast(ops::mean(features, {1, 2}), DType::f32);
  y = nn::Dropout{static_cast<float>(config_.drop_rate)}(y, pass);
  return head_ && !pre_logits ? (*head_)(y) : y;  // the head runs in f32 whatever the pass's dtype is
}

TokenLayout S2Mlp::token_layout(std::int64_t height, std::int64_t width) const {
  const Size2 grid = patch_embed_->grid(height, width);
  return {0, grid[0], grid[1], false};
}

std::int64_t S2Mlp::flops(std::int64_t height, std::int64_t width) const {
  const Size2 grid = patch_embed_->grid(height, width);
  const std::int64_t tokens = grid[0] * grid[1];
  std::int64_t total = patch_embed_->flops(grid) + 5 * tokens * config_.embed_dim;
  for (const SpatialShiftBlock& block : blocks_) {
    total += block.flops(tokens);
  }
  return total + (head_ ? head_->flops(1) : 0);
}

std::int64_t S2Mlp::layer_of(const std::string& parameter) const {
  if (parameter.starts_with("patch_embed.")) {
    return 0;
  }
  const auto index = index_after(parameter, "blocks.");
  return index ? *index + 1 : depth() + 1;
}

Tensor S2Mlp::adapt(const std::string& parameter, const Tensor& value, const Shape& /*wanted*/,
                    const Size2& /*source*/) const {
  return parameter == "patch_embed.proj.weight" ? with_channels(value, config_.in_chans) : value;
}

namespace {

// The two settings of the paper (its table of configurations).
std::string_view s2_mlp_table() {
  return R"(
s2_mlp_deep_224 (s2_mlp) patch_size=16 embed_dim=384 depth=36 mlp_ratio=4
  untrained: normalization=imagenet
s2_mlp_wide_224 (s2_mlp) patch_size=16 embed_dim=768 depth=12 mlp_ratio=4
  untrained: normalization=imagenet
)";
}

}  // namespace

constinit const Family s2_mlp_family = {.name = "s2_mlp",
                                        .table = s2_mlp_table,
                                        .build = build<S2Mlp, read_s2_mlp>,
                                        .first_conv = "patch_embed.proj",
                                        .sized = false};

}  // namespace vitrail::models
