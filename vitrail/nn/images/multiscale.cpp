#include "vitrail/nn/images/multiscale.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "vitrail/ops/attention/attention.h"
#include "vitrail/ops/images/conv3d.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

constexpr Size3 ones = {1, 1, 1};

std::int64_t count_of(const Size3& grid) { return grid[0] * grid[1] * grid[2]; }

// The padding that keeps the size, for kernels of odd size.
Size3 half(const Size3& kernel) { return {kernel[0] / 2, kernel[1] / 2, kernel[2] / 2}; }

bool is_pooled(const Size3& kernel, const Size3& stride) { return kernel != ones || stride != ones; }

// The windows in which the shortcut takes the largest of the tokens.
Size3 skip_kernel(const Size3& stride) {
  Size3 kernel{};
  std::ranges::transform(stride, kernel.begin(), [](std::int64_t s) { return s > 1 ? s + 1 : 1; });
  return kernel;
}

// The largest or the mean of each window of tokens x [B, P + T H W, C]; the prefix is not pooled.
Tensor pool_windows(const Tensor& x, const Size3& grid, std::int64_t prefix, TokenPool mode,
                    const ops::Pool3dOptions& options) {
  const std::int64_t channels = x.size(2);
  const Tensor patches = prefix == 0 ? x : ops::narrow(x, 1, prefix, x.size(1) - prefix);
  const Tensor video =
      ops::permute(ops::reshape(patches, {x.size(0), grid[0], grid[1], grid[2], channels}), {0, 4, 1, 2, 3});
  const Tensor pooled = mode == TokenPool::max ? ops::max_pool3d(video, options) : ops::avg_pool3d(video, options);
  const Tensor tokens = ops::reshape(ops::permute(pooled, {0, 2, 3, 4, 1}), {x.size(0), -1, channels});
  return prefix == 0 ? tokens : ops::concat({ops::narrow(x, 1, 0, prefix), tokens}, 1);
}

// [B, N, H d] → [B, N, H, d]
Tensor split_heads(const Tensor& x, std::int64_t heads) {
  return ops::reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads});
}

std::optional<Linear> linear_if(bool wanted, const Scope& scope, std::int64_t in, std::int64_t out) {
  return wanted ? std::optional<Linear>(std::in_place, scope, in, out) : std::nullopt;
}

std::int64_t attention_width(const MultiscaleBlockConfig& c) { return c.expand_attn ? c.dim_out : c.dim; }

const MultiscaleBlockConfig& checked(const Scope& scope, const MultiscaleBlockConfig& c) {
  check(c.num_heads > 0 && attention_width(c) % c.num_heads == 0, "{}: the width {} cannot be divided among {} heads",
        scope.path(), attention_width(c), c.num_heads);
  return c;
}

}  // namespace

PoolingAttention::PoolingAttention(const Scope& scope, const MultiscaleBlockConfig& given)
    : config(checked(scope, given)),
      name((scope / "attn").path()),
      width(attention_width(given)),
      qkv(scope / "attn.qkv", given.dim, 3 * width, given.qkv_bias),
      proj(scope / given.names.proj, width, width) {
  const std::int64_t head_dim = width / config.num_heads;
  for (std::size_t i = 0; i < 3; ++i) {
    const Size3& kernel = i == 0 ? config.kernel_q : config.kernel_kv;
    const Size3& stride = i == 0 ? config.stride_q : config.stride_kv;
    if (config.mode == TokenPool::conv && is_pooled(kernel, stride)) {
      const Shape shape =
          config.video ? Shape{head_dim, 1, kernel[0], kernel[1], kernel[2]} : Shape{head_dim, 1, kernel[1], kernel[2]};
      pools[i] = (scope / config.names.pools[i]).parameter("weight", shape, Init::kaiming_uniform(shape));
      norms[i].emplace(scope / config.names.norms[i], head_dim, config.norm);
    }
  }
  if (config.rel_pos_lengths != Size3{}) {
    rel_pos.emplace(scope / "attn", config.rel_pos_lengths, head_dim, config.rel_pos_init);
  }
}

Size3 PoolingAttention::query_grid(const Size3& grid) const {
  return ops::pooled_grid(grid, config.kernel_q, config.stride_q, half(config.kernel_q));
}

Size3 PoolingAttention::key_grid(const Size3& grid) const {
  return ops::pooled_grid(grid, config.kernel_kv, config.stride_kv, half(config.kernel_kv));
}

GridTokens PoolingAttention::operator()(const GridTokens& tokens, Pass& pass, const Tensor& residual,
                                        std::shared_ptr<const TokenGrid> at) const {
  const Tensor& x = tokens.x;
  const std::int64_t heads = config.num_heads;
  const Size3 queries = query_grid(tokens.grid);
  const Size3 keys = key_grid(tokens.grid);
  const std::vector<Tensor> parts = ops::split(qkv(x), {width, width, width}, -1);
  std::array<Tensor, 3> pooled;  // [B, P + N', H, d]
  for (std::size_t i = 0; i < 3; ++i) {
    const Size3& kernel = i == 0 ? config.kernel_q : config.kernel_kv;
    const Size3& stride = i == 0 ? config.stride_q : config.stride_kv;
    Tensor part = parts[i];
    if (pools[i].defined()) {
      part = ops::depthwise_conv(
          part, pools[i], {.grid = tokens.grid, .stride = stride, .padding = half(kernel), .prefix = config.prefix});
    } else if (is_pooled(kernel, stride)) {
      part = pool_windows(part, tokens.grid, config.prefix, config.mode,
                          {.kernel = kernel, .stride = stride, .padding = half(kernel)});
    }
    pooled[i] = split_heads(part, heads);
    pooled[i] = norms[i] ? (*norms[i])(pooled[i]) : pooled[i];
  }
  const auto& [q, k, v] = pooled;
  ops::AttentionOptions how = {.scale = 1 / std::sqrt(static_cast<float>(q.size(3)))};
  if (rel_pos) {
    const DecomposedRelPos::Columns more = (*rel_pos)(q, queries, keys, config.prefix, how.scale);
    how.q_extra = ops::transpose(more.q, 1, 2);
    how.k_extra = ops::transpose(more.k, 1, 2);
  }
  const Tensor by_query = ops::transpose(q, 1, 2);
  const Tensor by_key = ops::transpose(k, 1, 2);
  if (pass.wants_attention()) {
    TokenGrid grid;
    grid.prefix = config.prefix;
    grid.queries = {queries[0] * queries[1], queries[2]};
    grid.keys = {keys[0] * keys[1], keys[2]};
    grid.query_frames = queries[0];
    grid.key_frames = keys[0];
    pass.recorder->attention(name, ops::attention_probabilities(by_query, by_key, how),
                             at != nullptr ? std::move(at) : std::make_shared<const TokenGrid>(grid));
  }
  Tensor z = ops::transpose(ops::attention(by_query, by_key, ops::transpose(v, 1, 2), how), 1, 2);
  if (config.residual_pooling) {
    const std::int64_t prefix = config.residual_prefix ? 0 : config.prefix;
    z = z + (prefix == 0 ? q : ops::pad(ops::narrow(q, 1, prefix, q.size(1) - prefix), 1, prefix, 0));
  }
  z = ops::reshape(z, {z.size(0), z.size(1), width});
  const Dropout drop{config.proj_drop};
  if (!residual.defined() || drop.active(pass)) {
    const Tensor y = drop(proj(z), pass);
    return {residual.defined() ? residual + y : y, queries};
  }
  return {proj(z, ops::Activation::identity, residual), queries};
}

std::int64_t PoolingAttention::flops(const Size3& grid) const {
  const std::int64_t heads = config.num_heads;
  const Size3 queries = query_grid(grid);
  const Size3 keys = key_grid(grid);
  const std::int64_t n = config.prefix + count_of(queries);
  const std::int64_t m = config.prefix + count_of(keys);
  std::int64_t total = qkv.flops(config.prefix + count_of(grid)) + 2 * n * m * width + proj.flops(n);
  for (std::size_t i = 0; i < 3; ++i) {
    if (pools[i].defined()) {
      total += heads * count_of(i == 0 ? queries : keys) * pools[i].numel() + norms[i]->flops(heads * (i == 0 ? n : m));
    }
  }
  return total + (rel_pos ? rel_pos->flops(heads, queries, keys) : 0);
}

MultiscaleBlock::MultiscaleBlock(const Scope& scope, const MultiscaleBlockConfig& given)
    : config(given),
      norm1(scope / "norm1", given.dim, given.norm),
      attn(scope, given),
      shortcut_attn(linear_if(given.dim != given.dim_out && given.expand_attn, scope / given.names.shortcut_attn,
                              given.dim, given.dim_out)),
      norm2(scope / "norm2", attn.width, given.norm),
      fc1(scope / given.names.fc1, attn.width, given.mlp_hidden),
      fc2(scope / given.names.fc2, given.mlp_hidden, given.dim_out),
      shortcut_mlp(linear_if(given.dim != given.dim_out && !given.expand_attn, scope / given.names.shortcut_mlp,
                             given.dim, given.dim_out)),
      proj_drop{given.proj_drop},
      drop_path{given.drop_path} {}

GridTokens MultiscaleBlock::operator()(const GridTokens& tokens, Pass& pass) const {
  const Tensor normed = norm1(tokens.x);
  Tensor shortcut = shortcut_attn ? (*shortcut_attn)(normed) : tokens.x;
  if (config.stride_q != ones) {
    const Size3 kernel = skip_kernel(config.stride_q);
    shortcut = pool_windows(shortcut, tokens.grid, config.prefix, TokenPool::max,
                            {.kernel = kernel, .stride = config.stride_q, .padding = half(kernel)});
  }
  const bool dropping = drop_path.active(pass);
  auto [x, grid] = attn({normed, tokens.grid}, pass, dropping ? Tensor() : shortcut);
  x = dropping ? shortcut + drop_path(x, pass) : x;

  const Tensor again = norm2(x);
  const Tensor direct = shortcut_mlp ? (*shortcut_mlp)(again) : x;
  const Tensor hidden = proj_drop(fc1(again, ops::Activation::gelu), pass);
  if (!dropping && !proj_drop.active(pass)) {
    return {fc2(hidden, ops::Activation::identity, direct), grid};
  }
  return {direct + drop_path(proj_drop(fc2(hidden), pass), pass), grid};
}

std::int64_t MultiscaleBlock::flops(const Size3& grid) const {
  const std::int64_t before = config.prefix + count_of(grid);
  const std::int64_t after = config.prefix + count_of(output_grid(grid));
  return norm1.flops(before) + attn.flops(grid) + (shortcut_attn ? shortcut_attn->flops(before) : 0) +
         norm2.flops(after) + fc1.flops(after) + fc2.flops(after) + (shortcut_mlp ? shortcut_mlp->flops(after) : 0);
}

Size3 divided(const Size3& grid, const Size3& stride) {
  return {grid[0] / stride[0], grid[1] / stride[1], grid[2] / stride[2]};
}

Size3 rel_pos_lengths(const Size3& grid, const Size3& stride_q, const Size3& stride_kv, bool video) {
  const std::int64_t side = std::max(grid[1], grid[2]);
  const auto at_least_one = [](std::int64_t length) { return std::max<std::int64_t>(1, length); };
  const std::int64_t length = at_least_one(relative_distances(side / stride_q[1], side / stride_kv[1]));
  return {video ? at_least_one(relative_distances(grid[0], grid[0])) : 0, length, length};
}

}  // namespace vitrail::nn
