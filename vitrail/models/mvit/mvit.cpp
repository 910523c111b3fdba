#include "vitrail/models/mvit/mvit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/base/adapt.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/mvit/families.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/images/interpolate.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {

using io::Fields;
using io::Kind;
using nn::Size2;
using nn::Size3;

namespace {

Size3 of_image(const Size2& size) { return {1, size[0], size[1]}; }

void check_config(const MvitConfig& c) {
  const std::size_t stages = c.depths.size();
  check(stages > 0 && std::ranges::all_of(c.depths, [](std::int64_t depth) { return depth > 0; }),
        "depths must give every stage at least one block");
  check(c.embed_dim.size() == stages && c.num_heads.size() == stages && c.stride_q.size() == stages &&
            c.stride_kv.size() == stages,
        "depths names {} stages, but embed_dim, num_heads, stride_q and stride_kv have {}, {}, {} and {}", stages,
        c.embed_dim.size(), c.num_heads.size(), c.stride_q.size(), c.stride_kv.size());
  check(c.kernel_qkv[0] % 2 == 1 && c.kernel_qkv[1] % 2 == 1, "kernel_qkv must be odd, not {}x{}", c.kernel_qkv[0],
        c.kernel_qkv[1]);
  check(c.use_cls_token || c.global_pool != nn::Pool::token,
        "global_pool 'token' needs the class token (use_cls_token)");
  for (const double rate : {c.drop_rate, c.drop_path_rate}) {
    check(rate >= 0 && rate < 1, "a drop rate lies in [0, 1), but one is {}", rate);
  }
  // The approximate number of multiply-accumulates for one image; it is bounded so that all counts computed from these
  // numbers fit into 64 bits.
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double patches = (real(c.img_size[0] + 2 * c.patch_padding[0]) / real(c.patch_stride[0]) + 1) *
                         (real(c.img_size[1] + 2 * c.patch_padding[1]) / real(c.patch_stride[1]) + 1);
  const double patch = real(c.patch_kernel[0]) * real(c.patch_kernel[1]) * real(c.in_chans);
  const double width = real(*std::ranges::max_element(c.embed_dim));
  const double kernel = real(c.kernel_qkv[0]) * real(c.kernel_qkv[1]);
  const double blocks = std::accumulate(c.depths.begin(), c.depths.end(), 0.0);
  const double cost = patches * width * (patch + blocks * (2 * patches + kernel + (5 + 2 * c.mlp_ratio) * width));
  check(cost < 1e17, "img_size {}x{} with embed_dim {} and {} blocks would take {:.0e} FLOPs for an image",
        c.img_size[0], c.img_size[1], width, blocks, cost);
}

// The number of rows of patches that the strides of all stages divide, limited to the most that an image can have.
std::int64_t divisible_rows(const MvitConfig& c) {
  const auto times = [](std::int64_t product, const Size2& stride) {
    return std::min<std::int64_t>(product * stride[0], 1 << 20);
  };
  return std::accumulate(c.stride_q.begin(), c.stride_q.end(), std::int64_t{1}, times);
}

void check_square(const MvitConfig& c, const Size3& patches) {
  const std::int64_t rows = divisible_rows(c);
  const std::int64_t enough = (patches[1] + rows - 1) / rows * rows;
  check(patches[1] == patches[2],
        "relative positions (rel_pos_type 'spatial') are for square grids: img_size {}x{} gives {}x{}, but {}x{} a "
        "square one",
        c.img_size[0], c.img_size[1], patches[1], patches[2], enough * c.patch_stride[0], enough * c.patch_stride[1]);
}

// Throws Error if the tables of relative positions do not fit the grid: they have the lengths that timm gives them, for
// a square image, and are too short if the actual grid is larger.
void check_positions(const MvitConfig& c, const nn::MultiscaleBlock& block, const Size3& grid) {
  const Size3 queries = block.attn.query_grid(grid);
  const Size3 keys = block.attn.key_grid(grid);
  check(grid[1] == grid[2],
        "relative positions (rel_pos_type 'spatial') are for square grids, but stride_q makes one of {}x{}", grid[1],
        grid[2]);
  check(nn::relative_distances(queries[1], keys[1]) == block.config.rel_pos_lengths[1],
        "img_size {}x{} cannot be divided by the strides of all stages, as relative positions need it: a multiple of "
        "{} can",
        c.img_size[0], c.img_size[1], c.patch_stride[0] * divisible_rows(c));
}

// In timm, weights start from a truncated normal distribution, except those of convolutions.
nn::Init timm_start(std::string_view name, const Shape& shape, const nn::Init& own) {
  if (own.kind != nn::Init::Kind::uniform || shape.rank() > 2 || name.starts_with("patch_embed.")) {
    return own;
  }
  return name.ends_with(".weight") ? nn::Init::trunc_normal_tf(0.02F) : nn::Init::zeros();
}

// Reads one number for the first stage, which is doubled from stage to stage, or a list with one for each stage.
std::vector<std::int64_t> per_stage(Fields& f, const char* key, std::int64_t fallback, std::size_t stages) {
  const io::Range range{1, largest_size};
  if (f.kind(key) == Kind::list) {
    return f.get<std::vector<std::int64_t>>(key, range);
  }
  std::vector<std::int64_t> result(stages, f.get<std::int64_t>(key, fallback, range));
  for (std::size_t i = 1; i < stages; ++i) {
    result[i] = 2 * result[i - 1];
  }
  return result;
}

std::vector<Size2> strides(Fields& f, const char* key, const std::vector<Size2>& fallback) {
  if (f.is_unset(key)) {
    return fallback;
  }
  const nlohmann::json& list = f.raw(key);
  std::vector<Size2> result;
  check(list.is_array(), "{}: '{}' must be a list of pairs (rows, columns)", f.source(), key);
  for (const nlohmann::json& pair : list) {
    check(pair.is_array() && pair.size() == 2 && pair[0].is_number_integer() && pair[1].is_number_integer(),
          "{}: '{}' must be a list of pairs (rows, columns)", f.source(), key);
    result.push_back({pair[0].get<std::int64_t>(), pair[1].get<std::int64_t>()});
    check(std::ranges::all_of(result.back(), [](std::int64_t s) { return s >= 1 && s <= 1024; }),
          "{}: the strides of '{}' lie from 1 to 1024, not {}x{}", f.source(), key, result.back()[0], result.back()[1]);
  }
  return result;
}

// The strides of keys and values if only that of the first stage is given: it shrinks with the grid.
std::vector<Size2> adaptive_strides(Size2 stride, const std::vector<Size2>& stride_q) {
  std::vector<Size2> result;
  for (const Size2& q : stride_q) {
    if (std::min(q[0], q[1]) > 1) {
      stride = {std::max<std::int64_t>(stride[0] / q[0], 1), std::max<std::int64_t>(stride[1] / q[1], 1)};
    }
    result.push_back(stride);
  }
  return result;
}

Size2 read_small(Fields& f, const char* key, const Size2& fallback) {
  const Size2 size = read_size(f, key, fallback);
  check(size[0] <= 1024 && size[1] <= 1024, "{}: '{}' is at most 1024, not {}x{}", f.source(), key, size[0], size[1]);
  return size;
}

MvitConfig read_mvit(const nlohmann::json& arguments, const std::string& source) {
  Fields f(arguments, source);
  MvitConfig c;
  c.img_size = read_size(f, "img_size", c.img_size);
  c.in_chans = f.get<std::int64_t>("in_chans", c.in_chans, {1, largest_size});
  c.num_classes = f.get<std::int64_t>("num_classes", c.num_classes, {0, largest_size});
  if (f.kind("global_pool") != Kind::absent) {
    c.global_pool = nn::pool_named(f.choice("global_pool", "avg", {"", "avg", "token"}));
  }
  c.depths = f.get<std::vector<std::int64_t>>("depths", c.depths, {1, 4096});
  check(!c.depths.empty() && c.depths.size() <= 16, "{}: 'depths' has from 1 to 16 stages, not {}", f.source(),
        c.depths.size());
  c.embed_dim = per_stage(f, "embed_dim", c.embed_dim.front(), c.depths.size());
  c.num_heads = per_stage(f, "num_heads", c.num_heads.front(), c.depths.size());
  c.mlp_ratio = f.get<double>("mlp_ratio", c.mlp_ratio, {1e-3, 1e3});
  c.expand_attn = f.get<bool>("expand_attn", c.expand_attn);
  c.qkv_bias = f.get<bool>("qkv_bias", c.qkv_bias);
  c.use_cls_token = f.get<bool>("use_cls_token", c.use_cls_token);
  c.use_abs_pos = f.get<bool>("use_abs_pos", c.use_abs_pos);
  c.residual_pooling = f.get<bool>("residual_pooling", c.residual_pooling);
  const std::string mode = f.choice("mode", "conv", {"conv", "max", "avg"});
  c.mode = mode == "conv" ? nn::TokenPool::conv : (mode == "max" ? nn::TokenPool::max : nn::TokenPool::avg);
  c.kernel_qkv = read_small(f, "kernel_qkv", c.kernel_qkv);
  c.stride_q = strides(f, "stride_q", c.stride_q);
  c.stride_kv = strides(f, "stride_kv", adaptive_strides(read_small(f, "stride_kv_adaptive", {4, 4}), c.stride_q));
  c.patch_kernel = read_small(f, "patch_kernel", c.patch_kernel);
  c.patch_stride = read_small(f, "patch_stride", c.patch_stride);
  if (f.kind("patch_padding") != Kind::absent) {
    const auto padding = f.get<std::vector<std::int64_t>>("patch_padding", io::Range{0, 1024});
    check(padding.size() == 2, "{}: 'patch_padding' is a pair of numbers (rows, columns), not a list of {}", f.source(),
          padding.size());
    c.patch_padding = {padding[0], padding[1]};
  }
  c.rel_pos = f.choice("rel_pos_type", "spatial", {"spatial", "", "none"}) == "spatial";
  c.norm = read_norm(f);
  c.norm.eps = static_cast<float>(f.get<double>("norm_eps", c.norm.eps, {1e-20, 1}));
  c.drop_rate = f.get<double>("drop_rate", 0, {0, 1});
  c.drop_path_rate = f.get<double>("drop_path_rate", 0, {0, 1});
  f.finish();
  return c;
}

}  // namespace

MultiscaleVit::MultiscaleVit(const nn::Scope& scope, const MvitConfig& config) : scope_(scope), config_(config) {
  const MvitConfig& c = config_;
  check_config(c);
  const nn::Scope root = scope.with_init(timm_start);
  std::int64_t dim = c.embed_dim.front();
  patch_embed_.emplace(root / "patch_embed" / "proj", c.in_chans, dim, c.patch_kernel,
                       ops::ConvOptions{.stride = c.patch_stride, .padding = c.patch_padding});
  const nn::Init small = nn::Init::trunc_normal_tf(0.02F);
  Size3 grid = this->grid(c.img_size[0], c.img_size[1]);
  Size3 counted = {1, c.img_size[0] / c.patch_stride[0], c.img_size[1] / c.patch_stride[1]};  // by timm's count
  if (c.rel_pos) {
    check_square(c, grid);
  }
  if (c.use_cls_token) {
    cls_token_ = root.parameter("cls_token", {1, 1, dim}, small);
  }
  if (c.use_abs_pos) {
    check(counted == grid, "img_size {}x{} cannot be divided by patch_stride {}x{}, as use_abs_pos needs it",
          c.img_size[0], c.img_size[1], c.patch_stride[0], c.patch_stride[1]);
    pos_embed_ = root.parameter("pos_embed", {1, prefix() + grid[1] * grid[2], dim}, small);
  }
  const std::int64_t blocks = std::accumulate(c.depths.begin(), c.depths.end(), std::int64_t{0});
  int index = 0;
  for (std::size_t stage = 0; stage < c.depths.size(); ++stage) {
    const std::int64_t wide = c.embed_dim[c.expand_attn ? stage : std::min(stage + 1, c.depths.size() - 1)];
    stages_.emplace_back();
    for (std::int64_t i = 0; i < c.depths[stage]; ++i) {
      nn::MultiscaleBlockConfig block;
      block.dim = dim;
      block.dim_out = c.expand_attn || i + 1 == c.depths[stage] ? wide : dim;
      block.num_heads = c.num_heads[stage];
      block.mlp_hidden =
          static_cast<std::int64_t>(static_cast<double>(c.expand_attn ? block.dim_out : dim) * c.mlp_ratio);
      block.qkv_bias = c.qkv_bias;
      block.expand_attn = c.expand_attn;
      block.mode = c.mode;
      block.kernel_q = block.kernel_kv = of_image(c.kernel_qkv);
      block.stride_q = i == 0 ? of_image(c.stride_q[stage]) : Size3{1, 1, 1};
      block.stride_kv = of_image(c.stride_kv[stage]);
      block.prefix = prefix();
      block.residual_pooling = c.residual_pooling;
      block.rel_pos_init = small;
      block.norm = c.norm;
      block.drop_path =
          blocks > 1 ? static_cast<float>(c.drop_path_rate * index / static_cast<double>(blocks - 1)) : 0.0F;
      ++index;
      if (c.rel_pos) {
        block.rel_pos_lengths = nn::rel_pos_lengths(counted, block.stride_q, block.stride_kv, false);
      }
      stages_.back().emplace_back(root / "stages" / static_cast<std::int64_t>(stage) / "blocks" / i, block);
      if (c.rel_pos) {
        check_positions(c, stages_.back().back(), grid);
      }
      grid = stages_.back().back().output_grid(grid);
      counted = nn::divided(counted, block.stride_q);
      dim = block.dim_out;
    }
  }
  norm_.emplace(root / "norm", dim, c.norm);
  if (c.num_classes > 0) {
    head_.emplace(root / "head" / "fc", dim, c.num_classes);
  }
}

Size3 MultiscaleVit::grid(std::int64_t height, std::int64_t width) const {
  return ops::pooled_grid({1, height, width}, of_image(config_.patch_kernel), of_image(config_.patch_stride),
                          {0, config_.patch_padding[0], config_.patch_padding[1]});
}

nn::GridTokens MultiscaleVit::embed(const Tensor& x, nn::Pass& pass) const {
  check(x.rank() == 4 && x.size(1) == config_.in_chans, "the model takes images [B, {}, H, W], not {}",
        config_.in_chans, x.shape());
  check(takes_any_size() || (x.size(2) == config_.img_size[0] && x.size(3) == config_.img_size[1]),
        "the model takes images of {}x{} (img_size), not of {}x{}", config_.img_size[0], config_.img_size[1], x.size(2),
        x.size(3));
  const auto least = [&](std::size_t side) {
    return std::max<std::int64_t>(1, config_.patch_kernel[side] - 2 * config_.patch_padding[side]);
  };
  check(x.size(2) >= least(0) && x.size(3) >= least(1), "the model takes images from {}x{} pixels on, not of {}x{}",
        least(0), least(1), x.size(2), x.size(3));
  const std::int64_t dim = config_.embed_dim.front();
  const Tensor image = (*patch_embed_)(ops::cast(x, pass.dtype));  // [B, D, rows, columns]
  Tensor tokens = ops::reshape(ops::permute(image, {0, 2, 3, 1}), {x.size(0), -1, dim});
  if (cls_token_.defined()) {
    tokens = ops::concat({ops::expand(ops::cast(cls_token_, pass.dtype), {x.size(0), 1, dim}), tokens}, 1);
  }
  if (pos_embed_.defined()) {
    tokens = tokens + ops::cast(pos_embed_, pass.dtype);
  }
  return {tokens, {1, image.size(2), image.size(3)}};
}

// Returns the tokens after the last stage, without the final norm.
Tensor MultiscaleVit::encode(const Tensor& x, nn::Pass& pass) const {
  nn::GridTokens tokens = embed(x, pass);
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    for (const nn::MultiscaleBlock& block : stages_[stage]) {
      const auto run = [&block, grid = tokens.grid](const Tensor& input, nn::Pass& block_pass) {
        return block({input, grid}, block_pass).x;
      };
      tokens = {nn::run_block(run, tokens.x, pass), block.output_grid(tokens.grid)};
    }
    if (pass.wants_features()) {
      pass.recorder->feature((scope_ / "stages" / static_cast<std::int64_t>(stage)).path(), tokens.x);
    }
  }
  return tokens.x;
}

nn::Pool MultiscaleVit::pool() const {
  return config_.global_pool.value_or(config_.use_cls_token ? nn::Pool::token : nn::Pool::avg);
}

// The head runs in f32 whatever the pass's dtype is.
Tensor MultiscaleVit::classify(const Tensor& pooled, nn::Pass& pass, bool pre_logits) const {
  const Tensor dropped = nn::Dropout{static_cast<float>(config_.drop_rate)}(pooled, pass);
  return head_ && !pre_logits ? (*head_)(dropped) : dropped;
}

Tensor MultiscaleVit::forward_features(const Tensor& x, nn::Pass& pass) const { return (*norm_)(encode(x, pass)); }

Tensor MultiscaleVit::forward_head(const Tensor& features, nn::Pass& pass, bool pre_logits) const {
  return classify(ops::cast(nn::pool_tokens(features, pool(), prefix()), DType::f32), pass, pre_logits);
}

Tensor MultiscaleVit::forward(const Tensor& x, nn::Pass& pass) const {
  if (pool() != nn::Pool::token) {
    return forward_head(forward_features(x, pass), pass);
  }
  // The norm is applied to the class token only, in f32.
  return classify((*norm_)(ops::cast(ops::select(encode(x, pass), 1, 0), DType::f32)), pass, false);
}

TokenLayout MultiscaleVit::token_layout(std::int64_t height, std::int64_t width) const {
  const Size3 cells = grid(height, width);
  return {prefix(), cells[1], cells[2], config_.use_cls_token};
}

std::int64_t MultiscaleVit::flops(std::int64_t height, std::int64_t width) const {
  Size3 cells = grid(height, width);
  std::int64_t total = patch_embed_->flops(cells[1], cells[2]);
  for (const auto& stage : stages_) {
    for (const nn::MultiscaleBlock& block : stage) {
      total += block.flops(cells);
      cells = block.output_grid(cells);
    }
  }
  const std::int64_t tokens = prefix() + cells[1] * cells[2];
  total += norm_->flops(tokens);
  return total + (head_ ? head_->flops(config_.global_pool == nn::Pool::none ? tokens : 1) : 0);
}

std::int64_t MultiscaleVit::layer_of(const std::string& parameter) const {
  if (starts_with_any(parameter, {"cls_token", "pos_embed", "patch_embed"})) {
    return 0;
  }
  if (const auto stage = index_after(parameter, "stages.")) {
    return *stage + 1;
  }
  return parameter.starts_with("norm") ? depth() : depth() + 1;  // the final norm is in the last stage's layer
}

bool MultiscaleVit::no_weight_decay(const std::string& parameter) const {
  return parameter == "cls_token" || parameter == "pos_embed" || parameter.ends_with("rel_pos_h") ||
         parameter.ends_with("rel_pos_w");
}

Tensor MultiscaleVit::adapt(const std::string& parameter, const Tensor& value, const Shape& wanted,
                            const Size2& /*source*/) const {
  if (parameter == "patch_embed.proj.weight") {
    return with_channels(value, config_.in_chans);
  }
  if ((parameter.ends_with("rel_pos_h") || parameter.ends_with("rel_pos_w")) && value.rank() == 2) {
    return nn::resized_rel_pos(value, wanted[0]);
  }
  return value;
}

constinit const Family mvit_family = {.name = "mvit",
                                      .table = mvit_table,
                                      .build = build<MultiscaleVit, read_mvit>,
                                      .first_conv = "patch_embed.proj",
                                      .timm_takes = TimmTakes::of_images};

}  // namespace vitrail::models
