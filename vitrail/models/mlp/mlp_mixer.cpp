#include "vitrail/models/mlp/mlp_mixer.h"

#include <cmath>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/base/adapt.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/mlp/families.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/scale.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

using nn::Along;
using nn::Size2;
using MixerKind = MlpMixerConfig::Block;
using MlpLayer = MlpMixerConfig::Mlp;

// ---------------------------------------------------------------------------------------------------------------------
// Arguments
// ---------------------------------------------------------------------------------------------------------------------

namespace {

void check_config(const MlpMixerConfig& c) {
  const auto& [height, width] = c.img_size;
  check(height >= c.patch_size[0] && width >= c.patch_size[1], "img_size {}x{} holds no patch of patch_size {}x{}",
        height, width, c.patch_size[0], c.patch_size[1]);
  const bool gates = c.block_layer == MixerKind::spatial_gating;
  check(!gates || c.mlp_layer == MlpLayer::gated, "a 'spatialgatingblock' needs the mlp_layer 'gatedmlp'");
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const auto hidden = [&](double ratio) { return static_cast<std::int64_t>(real(c.embed_dim) * ratio); };
  for (const double ratio : c.mlp_ratio) {
    check(hidden(ratio) > 0, "mlp_ratio {} leaves no hidden unit to embed_dim {}", ratio, c.embed_dim);
    check((!gates && c.mlp_layer != MlpLayer::glu) || hidden(ratio) % 2 == 0,
          "a gated layer needs an even hidden width: mlp_ratio {} of embed_dim {} is {}", ratio, c.embed_dim,
          hidden(ratio));
  }
  for (const double rate : {c.drop_rate, c.proj_drop_rate, c.drop_path_rate}) {
    check(rate >= 0 && rate < 1, "a drop rate lies in [0, 1), but one is {}", rate);
  }
  // The approximate number of multiply-accumulates for one image and of parameters; it is bounded so that all counts
  // computed from these numbers fit into 64 bits.
  const double pixels = real(height) * real(width);
  const double tokens = pixels / (real(c.patch_size[0]) * real(c.patch_size[1]));
  const double mixing = tokens * (tokens + 2 * c.mlp_ratio[0] * real(c.embed_dim));
  const double block = (mixing + 3 * tokens * c.mlp_ratio[1] * real(c.embed_dim)) * real(c.embed_dim);
  const double cost = pixels * real(c.in_chans) * real(c.embed_dim) + block * real(c.num_blocks);
  check(cost < 1e17, "img_size {}x{} with embed_dim {} and num_blocks {} would take {:.0e} FLOPs for an image", height,
        width, c.embed_dim, c.num_blocks, cost);
}

// Reads a ratio for both Mlps, or one for each.
std::array<double, 2> read_mlp_ratio(io::Fields& f, const std::array<double, 2>& fallback) {
  const io::Range range{1e-3, 1e3};
  if (f.kind("mlp_ratio") == io::Kind::absent) {
    return fallback;
  }
  if (f.kind("mlp_ratio") != io::Kind::list) {
    const auto ratio = f.get<double>("mlp_ratio", range);
    return {ratio, ratio};
  }
  const auto ratios = f.get<std::vector<double>>("mlp_ratio", range);
  check(ratios.size() == 2, "{}: 'mlp_ratio' is a number or a pair of numbers (tokens, channels), not a list of {}",
        f.source(), ratios.size());
  return {ratios[0], ratios[1]};
}

MixerKind block_named(const std::string& name) {
  return name == "resblock" ? MixerKind::res : (name == "mixerblock" ? MixerKind::mixer : MixerKind::spatial_gating);
}

// Reads `block_layer`: a name, or a pair of "resblock" and its init_values.
void read_block_layer(io::Fields& f, MlpMixerConfig& c) {
  if (f.kind("block_layer") != io::Kind::list) {
    c.block_layer =
        block_named(read_choice(f, "block_layer", "mixerblock", {"mixerblock", "resblock", "spatialgatingblock"}));
    return;
  }
  const nlohmann::json& pair = f.raw("block_layer");
  check(pair.size() == 2 && pair[0] == "resblock" && pair[1].is_number(),
        "{}: 'block_layer' is a name, or a pair of 'resblock' and the first value of its scales", f.source());
  c.block_layer = MixerKind::res;
  c.init_values = pair[1].get<double>();
}

MlpMixerConfig read_mlp_mixer(const nlohmann::json& arguments, const std::string& source) {
  io::Fields f(arguments, source);
  MlpMixerConfig c;
  const io::Range positive{1, largest_size};
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, {0, largest_size});
  c.img_size = read_size(f, "img_size", c.img_size);
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, positive);
  c.patch_size = read_size(f, "patch_size", c.patch_size);
  c.num_blocks = f.get<std::int64_t>("num_blocks", c.num_blocks, {1, 4096});
  c.embed_dim = f.get<std::int64_t>("embed_dim", c.embed_dim, positive);
  c.mlp_ratio = read_mlp_ratio(f, c.mlp_ratio);
  read_block_layer(f, c);
  const std::string mlp = read_choice(f, "mlp_layer", c.block_layer == MixerKind::spatial_gating ? "gatedmlp" : "mlp",
                                      {"mlp", "glumlp", "gatedmlp"});
  c.mlp_layer = mlp == "mlp" ? MlpLayer::mlp : (mlp == "glumlp" ? MlpLayer::glu : MlpLayer::gated);
  const bool affine = f.kind("norm_layer") == io::Kind::string && f.get<std::string>("norm_layer") == "affine";
  c.norm_layer = affine ? nn::NormConfig{nn::NormKind::affine} : read_norm(f);
  c.act_layer = read_activation(f);
  c.drop_rate = f.get<double>("drop_rate", 0, {0, 1});
  c.proj_drop_rate = f.get<double>("proj_drop_rate", 0, {0, 1});
  c.drop_path_rate = f.get<double>("drop_path_rate", 0, {0, 1});
  c.nlhb = f.get<bool>("nlhb", false);
  c.stem_norm = f.get<bool>("stem_norm", false);
  c.pool = f.choice("global_pool", "avg", {"", "avg"}) == "avg";
  f.finish();
  return c;
}

// The initialization of timm: Glorot-uniform weights, a head of zeros, gates near 1.
nn::InitRule init_rule(const MlpMixerConfig& config) {
  return [config](std::string_view name, const Shape& shape, const nn::Init& own) -> nn::Init {
    using nn::Init;
    const bool weight = name.ends_with(".weight");
    if (own.kind != Init::Kind::uniform) {  // norms and scales keep their own
      return own;
    }
    if (name.starts_with("head.")) {
      return weight || !config.nlhb ? Init::zeros() : Init::constant(-std::log(static_cast<float>(config.num_classes)));
    }
    if (name.starts_with("stem.")) {
      return weight ? Init::lecun_normal(shape) : Init::zeros();
    }
    const Init gate = weight ? Init::normal(1e-6F) : Init::ones();
    if (name.find(".gate.") != std::string_view::npos) {
      return gate;
    }
    const bool in_mlp = name.find("mlp") != std::string_view::npos;
    const Init init = weight ? Init::xavier_uniform(shape) : (in_mlp ? Init::normal(1e-6F) : Init::zeros());
    const bool glu = config.mlp_layer == MlpLayer::glu && name.find(".fc1.") != std::string_view::npos;
    return glu ? init.with_lower_half(gate) : init;
  };
}

nn::MlpKind mlp_kind(const MixerBlockConfig& config) { return config.glu ? nn::MlpKind::glu : nn::MlpKind::mlp; }

// The Mlp along tokens, which differs from that along channels only in its widths.
nn::MlpConfig along_tokens(const MixerBlockConfig& config) {
  nn::MlpConfig tokens = config.channels;
  tokens.dim = config.tokens;
  tokens.hidden = config.tokens_hidden;
  tokens.along = Along::tokens;
  return tokens;
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// Blocks
// ---------------------------------------------------------------------------------------------------------------------

MixerBlock::MixerBlock(const nn::Scope& scope, const MixerBlockConfig& config)
    : norm1(scope / "norm1", config.dim, config.norm),
      mlp_tokens(scope / "mlp_tokens", mlp_kind(config), along_tokens(config)),
      norm2(scope / "norm2", config.dim, config.norm),
      mlp_channels(scope / "mlp_channels", mlp_kind(config), config.channels),
      drop_path{config.drop_path},
      dim(config.dim) {}

Tensor MixerBlock::operator()(Tensor x, nn::Pass& pass) const {
  x = nn::add_branch(x, drop_path, pass, [&](const Tensor& residual) { return mlp_tokens(norm1(x), pass, residual); });
  return nn::add_branch(x, drop_path, pass,
                        [&](const Tensor& residual) { return mlp_channels(norm2(x), pass, residual); });
}

std::int64_t MixerBlock::flops(std::int64_t tokens) const {
  return norm1.flops(tokens) + mlp_tokens.flops(dim) + norm2.flops(tokens) + mlp_channels.flops(tokens);
}

ResBlock::ResBlock(const nn::Scope& scope, const MixerBlockConfig& config)
    : norm1(scope / "norm1", config.dim, config.norm),
      linear_tokens(scope / "linear_tokens", config.tokens, config.tokens, true, Along::tokens),
      norm2(scope / "norm2", config.dim, config.norm),
      mlp_channels(scope / "mlp_channels", mlp_kind(config), config.channels),
      ls1(scope.parameter("ls1", {config.dim}, nn::Init::constant(config.init_values))),
      ls2(scope.parameter("ls2", {config.dim}, nn::Init::constant(config.init_values))),
      drop_path{config.drop_path},
      dim(config.dim) {}

Tensor ResBlock::operator()(Tensor x, nn::Pass& pass) const {
  x = nn::add_branch(x, drop_path, pass,
                     [&](const Tensor& residual) { return ops::scale(linear_tokens(norm1(x)), ls1, {}, residual); });
  return nn::add_branch(x, drop_path, pass, [&](const Tensor& residual) {
    return ops::scale(mlp_channels(norm2(x), pass), ls2, {}, residual);
  });
}

std::int64_t ResBlock::flops(std::int64_t tokens) const {
  return norm1.flops(tokens) + linear_tokens.flops(dim) + norm2.flops(tokens) + mlp_channels.flops(tokens);
}

SpatialGatingUnit::SpatialGatingUnit(const nn::Scope& scope, std::int64_t dim, std::int64_t tokens)
    : norm(scope / "norm", dim / 2, 1e-5F), proj(scope / "proj", tokens, tokens, true, Along::tokens) {}

Tensor SpatialGatingUnit::operator()(const Tensor& x) const {
  const std::int64_t half = x.size(-1) / 2;
  const Tensor u = ops::narrow(x, -1, 0, half);
  const Tensor v = ops::narrow(x, -1, half, half);
  return u * proj(norm(v));
}

GatedMlp::GatedMlp(const nn::Scope& scope, const nn::MlpConfig& config, std::int64_t tokens)
    : activation(config.activation),
      fc1(scope / "fc1", config.dim, config.hidden),
      drop1{config.drop1},
      gate(scope / "gate", config.hidden, tokens),
      fc2(scope / "fc2", config.hidden / 2, config.dim),
      drop2{config.drop2} {}

Tensor GatedMlp::operator()(const Tensor& x, nn::Pass& pass, const Tensor& residual) const {
  const Tensor hidden = gate(drop1(fc1(x, activation), pass));
  if (drop2.active(pass)) {
    const Tensor y = drop2(fc2(hidden), pass);
    return residual.defined() ? residual + y : y;
  }
  return fc2(hidden, ops::Activation::identity, residual);
}

SpatialGatingBlock::SpatialGatingBlock(const nn::Scope& scope, const MixerBlockConfig& config)
    : norm(scope / "norm", config.dim, config.norm),
      mlp_channels(scope / "mlp_channels", config.channels, config.tokens),
      drop_path{config.drop_path} {}

Tensor SpatialGatingBlock::operator()(const Tensor& x, nn::Pass& pass) const {
  return nn::add_branch(x, drop_path, pass,
                        [&](const Tensor& residual) { return mlp_channels(norm(x), pass, residual); });
}

std::int64_t SpatialGatingBlock::flops(std::int64_t tokens) const {
  const std::int64_t half = mlp_channels.fc2.in_features();
  const std::int64_t gate = 5 * tokens * half + mlp_channels.gate.proj.flops(half);
  return norm.flops(tokens) + mlp_channels.fc1.flops(tokens) + gate + mlp_channels.fc2.flops(tokens);
}

// ---------------------------------------------------------------------------------------------------------------------
// The model
// ---------------------------------------------------------------------------------------------------------------------

MlpMixer::MlpMixer(const nn::Scope& scope, const MlpMixerConfig& config) : scope_(scope), config_(config) {
  check_config(config_);
  const nn::Scope root = scope.with_init(init_rule(config_));
  const std::int64_t dim = config_.embed_dim;
  stem_.emplace(root / "stem", config_.patch_size, config_.in_chans, dim);
  if (config_.stem_norm) {
    stem_norm_.emplace(root / "stem" / "norm", dim, config_.norm_layer);
  }
  const MixerBlockConfig block = block_config();
  for (std::int64_t i = 0; i < config_.num_blocks; ++i) {
    const nn::Scope block_scope = root / "blocks" / i;
    switch (config_.block_layer) {
      case MixerKind::mixer:
        blocks_.emplace_back(std::in_place_type<MixerBlock>, block_scope, block);
        break;
      case MixerKind::res:
        blocks_.emplace_back(std::in_place_type<ResBlock>, block_scope, block);
        break;
      case MixerKind::spatial_gating:
        blocks_.emplace_back(std::in_place_type<SpatialGatingBlock>, block_scope, block);
        break;
    }
  }
  norm_.emplace(root / "norm", dim, config_.norm_layer);
  if (config_.num_classes > 0) {
    head_.emplace(root / "head", dim, config_.num_classes);
  }
}

std::int64_t MlpMixer::tokens() const {
  const Size2 grid = stem_->grid(config_.img_size[0], config_.img_size[1]);
  return grid[0] * grid[1];
}

MixerBlockConfig MlpMixer::block_config() const {
  const auto hidden = [&](double ratio) {
    return static_cast<std::int64_t>(static_cast<double>(config_.embed_dim) * ratio);
  };
  const auto drop = static_cast<float>(config_.proj_drop_rate);
  return {.dim = config_.embed_dim,
          .tokens = tokens(),
          .tokens_hidden = hidden(config_.mlp_ratio[0]),
          .norm = config_.norm_layer,
          .glu = config_.mlp_layer == MlpLayer::glu,
          .channels = {.dim = config_.embed_dim,
                       .hidden = hidden(config_.mlp_ratio[1]),
                       .activation = config_.act_layer,
                       .drop1 = drop,
                       .drop2 = drop,
                       .gate_last = true},
          .init_values = static_cast<float>(config_.init_values),
          .drop_path = static_cast<float>(config_.drop_path_rate)};
}

Tensor MlpMixer::forward_features(const Tensor& x, nn::Pass& pass) const {
  const auto& [height, width] = config_.img_size;
  check(x.rank() == 4, "the model takes images [B, {}, {}, {}], not {}", config_.in_chans, height, width, x.shape());
  check(x.size(2) == height && x.size(3) == width,
        "the model mixes the {} tokens of images of {}x{} (img_size), it cannot take {}x{}", tokens(), height, width,
        x.size(2), x.size(3));
  Tensor y = (*stem_)(ops::cast(x, pass.dtype));
  y = stem_norm_ ? (*stem_norm_)(y) : y;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    y = nn::run_block(
        [&block = blocks_[i]](const Tensor& input, nn::Pass& block_pass) {
          return std::visit([&](const auto& b) { return b(input, block_pass); }, block);
        },
        y, pass);
    if (pass.wants_features()) {
      pass.recorder->feature((scope_ / "blocks" / static_cast<std::int64_t>(i)).path(), y);
    }
  }
  return (*norm_)(y);
}

Tensor MlpMixer::forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits) const {
  Tensor y = ops::cast(config_.pool ? ops::mean(features, {1}) : features, DType::f32);
  y = nn::Dropout{static_cast<float>(config_.drop_rate)}(y, pass);
  return head_ && !pre_logits ? (*head_)(y) : y;  // the head runs in f32 whatever the pass's dtype is
}

TokenLayout MlpMixer::token_layout(std::int64_t height, std::int64_t width) const {
  const Size2 grid = stem_->grid(height, width);
  return {0, grid[0], grid[1], false};
}

std::int64_t MlpMixer::flops(std::int64_t height, std::int64_t width) const {
  const Size2 grid = stem_->grid(height, width);
  const std::int64_t count = grid[0] * grid[1];
  std::int64_t total = stem_->flops(grid) + (stem_norm_ ? stem_norm_->flops(count) : 0) + norm_->flops(count);
  for (const AnyBlock& block : blocks_) {
    total += std::visit([&](const auto& b) { return b.flops(count); }, block);
  }
  return total + (head_ ? head_->flops(config_.pool ? 1 : count) : 0);
}

std::int64_t MlpMixer::layer_of(const std::string& parameter) const {
  if (parameter.starts_with("stem.")) {
    return 0;
  }
  if (const auto index = index_after(parameter, "blocks.")) {
    return *index + 1;
  }
  return parameter.starts_with("norm.") ? depth() : depth() + 1;  // the final norm is in the last block's layer
}

Tensor MlpMixer::adapt(const std::string& parameter, const Tensor& value, const Shape& wanted,
                       const Size2& source) const {
  if (parameter == "stem.proj.weight") {
    return with_channels(value, config_.in_chans);
  }
  check(source == config_.img_size || value.shape() == wanted,
        "it mixes the tokens of images of {}x{}: the model cannot be had for {}x{} (img_size)", source[0], source[1],
        config_.img_size[0], config_.img_size[1]);
  return value;
}

constinit const Family mlp_mixer_family = {.name = "mlp_mixer",
                                           .table = mlp_mixer_table,
                                           .build = build<MlpMixer, read_mlp_mixer>,
                                           .first_conv = "stem.proj",
                                           .timm_takes = TimmTakes::not_of_table};

}  // namespace vitrail::models
