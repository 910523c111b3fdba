#include "vitrail/nn/attention/heads.h"

#include <cmath>
#include <tuple>
#include <vector>

#include "vitrail/nn/attention/key_value_cache.h"
#include "vitrail/ops/attention/attention.h"
#include "vitrail/ops/attention/cached_attention.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

// Splits [B, N, H d] into heads: a view [B, H, N, d].
Tensor to_heads(const Tensor& x, std::int64_t heads) {
  return ops::permute(ops::reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}

// Half `index` of each head of [B, N, H d]: a view [B, H, N, d / 2].
Tensor half_heads(const Tensor& x, std::int64_t heads, std::int64_t index) {
  const Tensor halves = ops::reshape(x, {x.size(0), x.size(1), heads, 2, x.size(2) / heads / 2});
  return ops::permute(ops::select(halves, 3, index), {0, 2, 1, 3});
}

// [B, H, N, d] → [B, N, H, d], the order in memory of what attention gives.
Tensor token_rows(const Tensor& x) { return ops::permute(x, {0, 2, 1, 3}); }

// Joins heads: [B, N, H, d] → [B, N, H d].
Tensor join_heads(const Tensor& x) { return ops::reshape(x, {x.size(0), x.size(1), x.size(2) * x.size(3)}); }

ops::AttentionOptions options(const AttentionConfig& config, Pass& pass, const AttentionExtras& extras) {
  ops::AttentionOptions result;
  result.scale = config.scale;
  result.causal = extras.causal;
  result.lengths = extras.lengths;
  result.query_offsets = extras.query_offsets;
  result.key_offsets = extras.key_offsets;
  result.mask = extras.mask;
  result.bias = extras.bias;
  result.distance_bias = extras.distance_bias;
  result.windows = extras.windows;
  if (pass.training && config.attn_drop > 0) {
    result.dropout = config.attn_drop;
    result.draws = pass.random.next();
  }
  return result;
}

// Attention of new tokens to all that the cache holds, which reads it as it lies.
Tensor read_cache(const Tensor& queries, const AttentionConfig& config, const AttentionExtras& extras) {
  const KeyValueCache& cache = *extras.cache;
  const float scale = config.scale != 0 ? config.scale : 1 / std::sqrt(static_cast<float>(config.key_dim));
  return ops::cached_attention(
      queries, cache.keys(), cache.values(),
      {scale, cache.texts().lengths(), cache.texts().table(), extras.causal, extras.causal ? extras.window : 0});
}

// Rotates x [B, H, N, d] by one row of angles for each token, or one for each token of each sample.
Tensor rotated(const Tensor& x, const ops::Rotation& rotation) {
  if (x.size(0) == 1 || rotation.angles.size(-2) + rotation.tables.prefix == x.size(2)) {
    return ops::rotate(x, rotation);
  }
  // The samples one after the other, as one.
  const Tensor rows = ops::reshape(token_rows(x), {1, x.size(0) * x.size(2), x.size(1), x.size(3)});
  const Tensor turned = token_rows(ops::rotate(ops::permute(rows, {0, 2, 1, 3}), rotation));
  return ops::permute(ops::reshape(turned, {x.size(0), x.size(2), x.size(1), x.size(3)}), {0, 2, 1, 3});
}

// The width of the queries and keys that attend: of a head, or of half of it.
std::int64_t attending_width(const AttentionConfig& config) {
  return config.lambda_init ? config.key_dim / 2 : config.key_dim;
}

std::optional<Norm> norm_of_keys(const Scope& scope, const AttentionConfig& config) {
  return config.qk_norm ? std::optional<Norm>(std::in_place, scope, attending_width(config), *config.qk_norm)
                        : std::nullopt;
}

std::optional<Differential> differential_if(const Scope& scope, const AttentionConfig& config) {
  if (!config.lambda_init) {
    return std::nullopt;
  }
  check(config.num_kv_heads == config.num_heads, "{}: differential attention has as many heads of keys as of queries",
        scope.path());
  check(config.key_dim % 2 == 0, "{}: differential attention halves the queries of a head, whose width {} is odd",
        scope.path(), config.key_dim);
  return Differential(scope, attending_width(config), config.value_dim, *config.lambda_init);
}

// The probabilities of attention in f32 by operations that a tape records, without dropout.
Tensor traced_probabilities(const Tensor& q, const Tensor& k, const ops::AttentionOptions& how) {
  check(!how.causal && !how.lengths.defined() && !how.mask.defined() && !how.distance_bias.defined() &&
            !how.q_extra.defined() && !how.query_offsets.defined() && how.windows == 0 && k.size(1) == q.size(1),
        "a traced attention sees all of its keys, and has as many heads of them as of queries");
  const float scale = how.scale != 0 ? how.scale : 1 / std::sqrt(static_cast<float>(q.size(3)));
  const Tensor scores = ops::matmul(ops::cast(q, DType::f32), ops::transpose(ops::cast(k, DType::f32), 2, 3)) * scale;
  return ops::softmax(how.bias.defined() ? scores + how.bias : scores, 3);
}

}  // namespace

AttentionConfig with_widths(const Scope& scope, AttentionConfig config) {
  check(config.num_heads > 0, "{}: attention needs at least one head, not {}", scope.path(), config.num_heads);
  if (config.key_dim == 0) {
    check(config.dim % config.num_heads == 0, "{}: the width {} cannot be divided among {} heads", scope.path(),
          config.dim, config.num_heads);
    config.key_dim = config.dim / config.num_heads;
  }
  config.num_kv_heads = config.num_kv_heads > 0 ? config.num_kv_heads : config.num_heads;
  check(config.num_heads % config.num_kv_heads == 0, "{}: {} heads of keys and values cannot be shared by {} heads",
        scope.path(), config.num_kv_heads, config.num_heads);
  config.value_dim = config.value_dim > 0 ? config.value_dim : config.key_dim;
  config.context_dim = config.context_dim > 0 ? config.context_dim : config.dim;
  config.out_dim = config.out_dim > 0 ? config.out_dim : config.dim;
  return config;
}

AttentionHeads::AttentionHeads(const Scope& scope, const AttentionConfig& given)
    : config(with_widths(scope, given)),
      name(scope.path()),
      q_norm(norm_of_keys(scope / "q_norm", config)),
      k_norm(norm_of_keys(scope / "k_norm", config)),
      differential(differential_if(scope, config)) {}

// Normalizes and rotates queries and keys [B, H, N, d].
void AttentionHeads::prepare(Tensor& q, Tensor& k, const AttentionExtras& extras) const {
  if (q_norm) {
    q = (*q_norm)(q);
    k = (*k_norm)(k);
  }
  if (extras.rotation.defined()) {
    q = rotated(q, extras.rotation);
    k = rotated(k, extras.rotation);
  }
}

void AttentionHeads::record(const Tensor& map, Pass& pass, const AttentionExtras& extras) const {
  if (config.pools) {
    pass.recorder->pool_attention(name, map);
  } else {
    pass.recorder->attention(name, map, extras.grid);
  }
}

Tensor AttentionHeads::operator()(const Tensor& q, const Tensor& k, const Tensor& v, Pass& pass,
                                  const AttentionExtras& extras) const {
  const std::int64_t heads = config.num_heads;
  Tensor values = to_heads(v, config.num_kv_heads);
  if (!differential) {
    Tensor queries = to_heads(q, heads);
    Tensor keys = to_heads(k, config.num_kv_heads);
    prepare(queries, keys, extras);
    if (extras.cache != nullptr) {
      extras.cache->append(keys, values);
      if (extras.cache->texts().reads_back() && !pass.wants_attention() && !extras.distance_bias.defined()) {
        return join_heads(token_rows(read_cache(queries, config, extras)));
      }
      if (extras.cache->texts().length() > keys.size(2)) {
        std::tie(keys, values) = extras.cache->gathered(queries.dtype());
      }
    }
    const ops::AttentionOptions how = options(config, pass, extras);
    if (pass.wants_attention()) {
      record(ops::attention_probabilities(queries, keys, how), pass, extras);
    }
    if (pass.traces(name)) {
      pass.recorder->trace(name, traced_probabilities(queries, keys, how));
    }
    return join_heads(token_rows(ops::attention(queries, keys, values, how)));
  }
  check(extras.cache == nullptr, "{}: differential attention has no cache", name);
  std::vector<Tensor> attended;
  std::vector<Tensor> maps;
  for (const std::int64_t half : {0, 1}) {
    Tensor queries = half_heads(q, heads, half);
    Tensor keys = half_heads(k, heads, half);
    prepare(queries, keys, extras);
    const ops::AttentionOptions how = options(config, pass, extras);
    if (pass.wants_attention()) {
      maps.push_back(ops::attention_probabilities(queries, keys, how));
    }
    attended.push_back(token_rows(ops::attention(queries, keys, values, how)));
  }
  if (pass.wants_attention()) {
    const Tensor both = ops::stack(maps, 2);  // [B, H, 2, N, M]
    record(ops::reshape(both, {both.size(0), 2 * heads, both.size(3), both.size(4)}), pass, extras);
  }
  return join_heads((*differential)(attended[0], attended[1]));
}

Tensor AttentionHeads::packed(const Tensor& qkv, Pass& pass, const AttentionExtras& extras) const {
  Tensor parts = config.by_head
                     ? ops::permute(ops::reshape(qkv, {qkv.size(0), qkv.size(1), config.num_heads, 3, config.key_dim}),
                                    {0, 1, 3, 2, 4})
                     : ops::reshape(qkv, {qkv.size(0), qkv.size(1), 3, config.num_heads, config.key_dim});
  parts = extras.rotation.defined() ? ops::rotate_packed(parts, extras.rotation) : parts;
  const ops::AttentionOptions how = options(config, pass, extras);
  if (pass.wants_attention()) {
    const auto part = [&](std::int64_t i) { return parts.detach().select(2, i).permute({0, 2, 1, 3}); };
    record(ops::attention_probabilities(part(0), part(1), how), pass, extras);
  }
  return join_heads(ops::attention_packed(parts, how));
}

std::int64_t AttentionHeads::flops(std::int64_t queries, std::int64_t keys) const {
  std::int64_t total = config.num_heads * queries * keys * (config.key_dim + config.value_dim);
  if (q_norm) {
    const std::int64_t rows = config.num_heads * (differential ? 2 : 1);
    total += q_norm->flops(rows * queries) + k_norm->flops(rows * keys);
  }
  return total;
}

}  // namespace vitrail::nn
