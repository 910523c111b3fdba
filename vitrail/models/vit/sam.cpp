#include "vitrail/models/vit/sam.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/base/adapt.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/vit/families.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/nn/images/image_layers.h"
#include "vitrail/nn/images/patch_embed.h"
#include "vitrail/nn/images/windows.h"
#include "vitrail/nn/positions/position.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

using nn::Size2;
using nn::Size3;

namespace {

constexpr nn::NormConfig neck_norm = {.eps = 1e-6F};

void check_config(const SamConfig& c) {
  check(c.img_size[0] >= c.patch_size[0] && c.img_size[1] >= c.patch_size[1],
        "img_size {}x{} holds no patch of patch_size {}x{}", c.img_size[0], c.img_size[1], c.patch_size[0],
        c.patch_size[1]);
  check(c.embed_dim % c.num_heads == 0, "embed_dim {} cannot be divided among num_heads {}", c.embed_dim, c.num_heads);
  check(c.global_pool != nn::Pool::none || c.num_classes == 0, "a classifier takes pooled features (global_pool)");
  for (const double rate : {c.drop_rate, c.pos_drop_rate, c.proj_drop_rate, c.drop_path_rate}) {
    check(rate >= 0 && rate < 1, "a drop rate lies in [0, 1), but one is {}", rate);
  }
  // The approximate number of multiply-accumulates for one image; it is bounded so that all counts computed from these
  // numbers fit into 64 bits.
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double pixels = real(c.img_size[0]) * real(c.img_size[1]);
  const double tokens =
      pixels / (real(c.patch_size[0]) * real(c.patch_size[1])) + 2 * real(c.window_size * c.window_size);
  const double block = tokens * (2 * tokens + (4 + 2 * c.mlp_ratio) * real(c.embed_dim)) * real(c.embed_dim);
  const double cost = pixels * real(c.in_chans) * real(c.embed_dim) + block * real(c.depth) +
                      tokens * real(c.neck_chans) * (real(c.embed_dim) + 9 * real(c.neck_chans));
  check(cost < 1e17, "img_size {}x{} with embed_dim {} and depth {} would take {:.0e} FLOPs for an image",
        c.img_size[0], c.img_size[1], c.embed_dim, c.depth, cost);
}

std::int64_t window_of(const SamConfig& c, std::int64_t index) {
  return std::ranges::find(c.global_attn_indexes, index) != c.global_attn_indexes.end() ? 0 : c.window_size;
}

nn::MultiscaleBlockConfig attention_of(const SamConfig& c, std::int64_t window) {
  nn::MultiscaleBlockConfig attention;
  attention.dim = attention.dim_out = c.embed_dim;
  attention.num_heads = c.num_heads;
  attention.qkv_bias = c.qkv_bias;
  attention.residual_pooling = false;
  attention.proj_drop = static_cast<float>(c.proj_drop_rate);
  if (c.use_rel_pos) {
    const Size2 grid =
        window > 0 ? Size2{window, window} : Size2{c.img_size[0] / c.patch_size[0], c.img_size[1] / c.patch_size[1]};
    attention.rel_pos_lengths = {0, nn::relative_distances(grid[0], grid[0]), nn::relative_distances(grid[1], grid[1])};
  }
  return attention;
}

std::optional<nn::LayerScale> layer_scale_if(const SamConfig& c, const nn::Scope& scope) {
  const bool wanted = c.init_values.value_or(0) != 0;
  return wanted ? std::optional<nn::LayerScale>(std::in_place, scope, c.embed_dim, *c.init_values) : std::nullopt;
}

SamConfig read_sam(const nlohmann::json& arguments, const std::string& source) {
  io::Fields f(arguments, source);
  const io::Range size{1, largest_size};
  SamConfig c;
  c.img_size = read_size(f, "img_size", c.img_size);
  c.patch_size = read_size(f, "patch_size", c.patch_size);
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, size);
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, {0, largest_size});
  c.global_pool = nn::pool_named(f.choice("global_pool", "avg", {"", "avg", "max", "avgmax"}));
  c.embed_dim = f.get<std::int64_t>("embed_dim", c.embed_dim, size);
  c.depth = f.get<std::int64_t>("depth", c.depth, {0, 4096});
  c.num_heads = f.get<std::int64_t>("num_heads", c.num_heads, size);
  c.mlp_ratio = f.get<double>("mlp_ratio", c.mlp_ratio, {1e-3, 1e3});
  c.qkv_bias = f.get<bool>("qkv_bias", c.qkv_bias);
  c.init_values = as_float(f.optional<double>("init_values"));
  c.use_abs_pos = f.get<bool>("use_abs_pos", c.use_abs_pos);
  c.use_rel_pos = f.get<bool>("use_rel_pos", c.use_rel_pos);
  c.window_size = f.get<std::int64_t>("window_size", c.window_size, {0, 1024});
  if (f.kind("global_attn_indexes") != io::Kind::absent) {
    c.global_attn_indexes = f.get<std::vector<std::int64_t>>("global_attn_indexes", io::Range{0, 4096});
  }
  const bool says_neck = f.kind("neck_chans") != io::Kind::absent;
  c.neck_chans = f.optional<std::int64_t>("neck_chans", {0, largest_size}).value_or(says_neck ? 0 : c.neck_chans);
  c.norm = read_norm(f, c.norm);
  c.act_layer = read_activation(f);
  c.drop_rate = f.get<double>("drop_rate", 0, {0, 1});
  c.pos_drop_rate = f.get<double>("pos_drop_rate", 0, {0, 1});
  c.proj_drop_rate = f.get<double>("proj_drop_rate", 0, {0, 1});
  c.drop_path_rate = f.get<double>("drop_path_rate", 0, {0, 1});
  f.finish();
  return c;
}

}  // namespace

SamBlock::SamBlock(const nn::Scope& scope, const SamConfig& c, std::int64_t index)
    : window(window_of(c, index)),
      norm1(scope / "norm1", c.embed_dim, c.norm),
      attn(scope, attention_of(c, window)),
      ls1(layer_scale_if(c, scope / "ls1")),
      norm2(scope / "norm2", c.embed_dim, c.norm),
      mlp(scope / "mlp", {.dim = c.embed_dim,
                          .hidden = static_cast<std::int64_t>(static_cast<double>(c.embed_dim) * c.mlp_ratio),
                          .activation = c.act_layer,
                          .drop1 = static_cast<float>(c.proj_drop_rate),
                          .drop2 = static_cast<float>(c.proj_drop_rate)}),
      ls2(layer_scale_if(c, scope / "ls2")),
      drop_path{c.depth > 1 ? static_cast<float>(c.drop_path_rate * static_cast<double>(index) /
                                                 static_cast<double>(c.depth - 1))
                            : 0.0F} {}

Tensor SamBlock::operator()(const Tensor& x, nn::Pass& pass) const {
  const Size2 grid = {x.size(1), x.size(2)};
  const Tensor y = nn::add_scaled_branch(x, ls1, drop_path, pass, [&](const Tensor& residual) {
    const Tensor normed = norm1(x);
    if (window > 0) {
      const Tensor tokens =
          attn({ops::window_partition(normed, windows()), {1, window, window}}, pass, {}, nn::grid_of(grid, windows()))
              .x;
      return ops::window_reverse(tokens, windows(), grid, residual);
    }
    const auto in_rows = [&](const Tensor& map) {
      return map.defined() ? ops::reshape(map, {x.size(0), grid[0] * grid[1], x.size(3)}) : map;
    };
    return ops::reshape(attn({in_rows(normed), {1, grid[0], grid[1]}}, pass, in_rows(residual)).x, x.shape());
  });
  return nn::add_scaled_branch(y, ls2, drop_path, pass,
                               [&](const Tensor& residual) { return mlp(norm2(y), pass, residual); });
}

std::int64_t SamBlock::flops(const Size2& grid) const {
  const std::int64_t tokens = grid[0] * grid[1];
  const Size3 cells = window > 0 ? Size3{1, window, window} : Size3{1, grid[0], grid[1]};
  const std::int64_t count = window > 0 ? windows().count(grid) : 1;
  std::int64_t attention = count * attn.flops(cells);
  if (attn.rel_pos) {  // fvcore rounds the count of all windows, and not of each
    const std::int64_t heads = attn.config.num_heads;
    attention += attn.rel_pos->flops(count * heads, cells, cells) - count * attn.rel_pos->flops(heads, cells, cells);
  }
  return norm1.flops(tokens) + attention + norm2.flops(tokens) + mlp.flops(tokens);
}

SamVit::SamVit(const nn::Scope& scope, const SamConfig& config) : scope_(scope), config_(config) {
  const SamConfig& c = config_;
  check_config(c);
  patch_embed_.emplace(scope / "patch_embed", c.patch_size, c.in_chans, c.embed_dim);
  if (c.use_abs_pos) {
    const Size2 cells = grid(c.img_size[0], c.img_size[1]);
    pos_embed_ = scope.parameter("pos_embed", {1, cells[0], cells[1], c.embed_dim}, nn::Init::zeros());
  }
  for (std::int64_t i = 0; i < c.depth; ++i) {
    blocks_.emplace_back(scope / "blocks" / i, c, i);
  }
  const nn::Scope at = scope / "neck";
  if (c.neck_chans > 0) {
    reduce_.emplace(at / 0, c.embed_dim, c.neck_chans, Size2{1, 1}, ops::ConvOptions{}, false);
    norm_.emplace(at / 1, c.neck_chans, neck_norm);
    mix_.emplace(at / 2, c.neck_chans, c.neck_chans, Size2{3, 3}, ops::ConvOptions{.padding = {1, 1}}, false);
    last_norm_.emplace(at / 3, c.neck_chans, neck_norm);
  } else {
    norm_.emplace(at, c.embed_dim, neck_norm);
  }
  if (c.num_classes > 0) {
    head_.emplace(scope / "head" / "fc", num_features(), c.num_classes);
  }
}

Size2 SamVit::grid(std::int64_t height, std::int64_t width) const {
  return {height / config_.patch_size[0], width / config_.patch_size[1]};
}

// Embeds the patches: x [B, C, H, W] → [B, rows, columns, D].
Tensor SamVit::embed(const Tensor& x, nn::Pass& pass) const {
  const Size2& patch = config_.patch_size;
  check(x.rank() == 4 && x.size(1) == config_.in_chans, "the model takes images [B, {}, H, W], not {}",
        config_.in_chans, x.shape());
  const Size2 cells = grid(x.size(2), x.size(3));
  check(cells[0] > 0 && cells[1] > 0 && x.size(2) % patch[0] == 0 && x.size(3) % patch[1] == 0,
        "an image of {}x{} is not made of whole patches, as one is whose sides are multiples of {} and {}", x.size(2),
        x.size(3), patch[0], patch[1]);
  const Shape shape = {x.size(0), cells[0], cells[1], config_.embed_dim};
  const Tensor tokens = ops::reshape((*patch_embed_)(ops::cast(x, pass.dtype)), shape);
  const nn::Dropout drop{static_cast<float>(config_.pos_drop_rate)};
  if (!pos_embed_.defined()) {
    return drop(tokens, pass);
  }
  const Size2 home = {pos_embed_.size(1), pos_embed_.size(2)};
  const std::int64_t dim = config_.embed_dim;
  Tensor positions = ops::reshape(pos_embed_, {1, home[0] * home[1], dim});
  if (cells != home) {
    positions = nn::resample_positions(positions, home, cells, 0);
  }
  return drop(tokens + ops::cast(ops::reshape(positions, {1, cells[0], cells[1], dim}), pass.dtype), pass);
}

// x [B, H, W, D] → [B, neck_chans, H, W].
Tensor SamVit::neck(const Tensor& x) const {
  const auto to_channels = [](const Tensor& map) { return ops::permute(map, {0, 3, 1, 2}); };
  const auto to_places = [](const Tensor& map) { return ops::permute(map, {0, 2, 3, 1}); };
  if (!reduce_) {
    return to_channels((*norm_)(x));
  }
  const Tensor narrow = (*norm_)(to_places((*reduce_)(to_channels(x))));
  return to_channels((*last_norm_)(to_places((*mix_)(to_channels(narrow)))));
}

Tensor SamVit::forward_features(const Tensor& x, nn::Pass& pass) const {
  Tensor map = embed(x, pass);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const auto run = [&block = blocks_[i]](const Tensor& input, nn::Pass& block_pass) {
      return block(input, block_pass);
    };
    map = nn::run_block(run, map, pass);
    if (pass.wants_features()) {
      pass.recorder->feature((scope_ / "blocks" / static_cast<std::int64_t>(i)).path(),
                             ops::reshape(map, {map.size(0), map.size(1) * map.size(2), map.size(3)}));
    }
  }
  return neck(map);
}

Tensor SamVit::forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits) const {
  if (config_.global_pool == nn::Pool::none) {
    return ops::cast(features, DType::f32);
  }
  const Tensor places = ops::transpose(
      ops::reshape(features, {features.size(0), features.size(1), features.size(2) * features.size(3)}), 1, 2);
  const Tensor pooled = ops::cast(nn::pool_tokens(places, config_.global_pool, 0), DType::f32);
  const Tensor dropped = nn::Dropout{static_cast<float>(config_.drop_rate)}(pooled, pass);
  return head_ && !pre_logits ? (*head_)(dropped) : dropped;
}

TokenLayout SamVit::token_layout(std::int64_t height, std::int64_t width) const {
  const Size2 cells = grid(height, width);
  return {0, cells[0], cells[1], false};
}

std::int64_t SamVit::flops(std::int64_t height, std::int64_t width) const {
  const Size2 cells = grid(height, width);
  const std::int64_t tokens = cells[0] * cells[1];
  std::int64_t total = patch_embed_->flops(cells) + norm_->flops(tokens);
  for (const SamBlock& block : blocks_) {
    total += block.flops(cells);
  }
  if (reduce_) {
    total += reduce_->flops(cells[0], cells[1]) + mix_->flops(cells[0], cells[1]) + last_norm_->flops(tokens);
  }
  return total + nn::pool_flops(num_features(), cells, config_.global_pool) + (head_ ? head_->flops(1) : 0);
}

std::int64_t SamVit::layer_of(const std::string& parameter) const {
  if (starts_with_any(parameter, {"pos_embed", "patch_embed"})) {
    return 0;
  }
  const auto index = index_after(parameter, "blocks.");
  return index ? *index + 1 : config_.depth + 1;
}

Tensor SamVit::adapt(const std::string& parameter, const Tensor& value, const Shape& wanted,
                     const Size2& /*source*/) const {
  if (parameter == "patch_embed.proj.weight") {
    return with_channels(value, config_.in_chans);
  }
  const bool has_places = value.rank() == wanted.rank() && value.numel() > 0;
  if (parameter == "pos_embed" && has_places && value.size(0) == 1) {
    const Size2 from = {value.size(1), value.size(2)};
    const Tensor table = value.reshape({1, from[0] * from[1], value.size(3)});
    const Size2 to = {wanted[1], wanted[2]};
    return from == to ? value : nn::resample_positions(table, from, to, 0).reshape({1, to[0], to[1], value.size(3)});
  }
  if ((parameter.ends_with(".rel_pos_h") || parameter.ends_with(".rel_pos_w")) && has_places) {
    return nn::resized_rel_pos(value, wanted[0]).contiguous();
  }
  return value;
}

constinit const Family sam_family = {
    .name = "sam", .table = vit_sam_table, .build = build<SamVit, read_sam>, .first_conv = "patch_embed.proj"};

}  // namespace vitrail::models
