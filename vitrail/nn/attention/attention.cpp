#include "vitrail/nn/attention/attention.h"

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

// The config with defaults in place of zeros, and with `names` if it has no names.
AttentionConfig filled(const Scope& scope, AttentionConfig config, const AttentionNames& names) {
  check(config.num_heads > 0, "{}: attention needs at least one head, not {}", scope.path(), config.num_heads);
  if (config.key_dim == 0) {
    check(config.dim % config.num_heads == 0, "{}: the width {} cannot be divided among {} heads", scope.path(),
          config.dim, config.num_heads);
    config.key_dim = config.dim / config.num_heads;
  }
  config.value_dim = config.value_dim > 0 ? config.value_dim : config.key_dim;
  config.context_dim = config.context_dim > 0 ? config.context_dim : config.dim;
  config.out_dim = config.out_dim > 0 ? config.out_dim : config.dim;
  config.names = config.names.value_or(names);
  check(!config.names->in_proj || (config.fused && config.k_bias && config.context_dim == config.dim),
        "{}: in_proj_weight makes queries, keys and values at once, from inputs of one width, with biases for all or "
        "none",
        scope.path());
  return config;
}

// One of the linear maps before attention, if it is wanted.
std::optional<Linear> linear_if(bool wanted, const Scope& scope, const AttentionConfig& config, std::int64_t in,
                                std::int64_t out, bool bias) {
  return wanted ? std::optional<Linear>(std::in_place, scope, in, out, bias, Along::features, config.layout)
                : std::nullopt;
}

std::int64_t fused_width(const AttentionConfig& config) {
  return config.num_heads * (2 * config.key_dim + config.value_dim);
}

// The linear map of torch.nn.MultiheadAttention's in_proj_weight and in_proj_bias, initialized as there.
Linear in_projection(const Scope& scope, const AttentionConfig& config) {
  const std::int64_t out = fused_width(config);
  const Tensor weight = scope.parameter("in_proj_weight", {out, config.dim}, Init::xavier_uniform({out, config.dim}));
  return {weight, config.qkv_bias ? scope.parameter("in_proj_bias", {out}, Init::zeros()) : Tensor()};
}

// The linear map by the rows [begin, begin + count) of a map.
Linear rows_of_map(const Linear& map, std::int64_t begin, std::int64_t count) {
  return {ops::narrow(map.weight, 0, begin, count),
          map.bias.defined() ? ops::narrow(map.bias, 0, begin, count) : Tensor()};
}

Linear output_projection(const Scope& scope, const AttentionConfig& config) {
  return {scope / config.names->proj,
          config.num_heads * config.value_dim,
          config.out_dim,
          config.proj_bias,
          Along::features,
          config.layout};
}

std::optional<Norm> norm_if(const std::optional<NormConfig>& config, const Scope& scope, std::int64_t dim) {
  return config ? std::optional<Norm>(std::in_place, scope, dim, *config) : std::nullopt;
}

// Whether queries and values of one fused product have separate biases, and the keys have none.
bool separate_biases(const AttentionConfig& config) { return config.fused && config.qkv_bias && !config.k_bias; }

Tensor bias_if(bool wanted, const Scope& scope, std::string_view name, std::int64_t width) {
  return wanted ? scope.parameter(name, {width}, Init::zeros()) : Tensor();
}

// Splits [B, N, H d] into heads: a view [B, H, N, d].
Tensor split_heads(const Tensor& x, std::int64_t heads) {
  return ops::permute(ops::reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}

// Joins heads: [B, H, N, d] → [B, N, H d].
Tensor join_heads(const Tensor& x) {
  return ops::reshape(ops::permute(x, {0, 2, 1, 3}), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

ops::AttentionOptions options(const AttentionConfig& config, Pass& pass, const AttentionExtras& extras) {
  ops::AttentionOptions result;
  result.causal = extras.causal;
  result.lengths = extras.lengths;
  result.mask = extras.mask;
  result.bias = extras.bias;
  result.windows = extras.windows;
  if (pass.training && config.attn_drop > 0) {
    result.dropout = config.attn_drop;
    result.draws = pass.random.next();
  }
  return result;
}

// softmax(q kᵀ …) v of all heads, joined: q [B, H, N, d], k [B, H, M, d], v [B, H, M, e] → [B, N, H e]. The
// probabilities go to the recorder if it wants them.
template <class Layer>
Tensor attend(const Layer& layer, Tensor q, Tensor k, const Tensor& v, Pass& pass, const AttentionExtras& extras) {
  if (layer.q_norm) {
    q = (*layer.q_norm)(q);
    k = (*layer.k_norm)(k);
  }
  if (extras.rotation.defined()) {
    q = ops::rotate(q, extras.rotation);
    k = ops::rotate(k, extras.rotation);
  }
  const ops::AttentionOptions how = options(layer.config, pass, extras);
  if (pass.wants_attention()) {
    const Tensor map = ops::attention_probabilities(q, k, how);
    if (layer.config.pools) {
      pass.recorder->pool_attention(layer.name, map);
    } else {
      pass.recorder->attention(layer.name, map, extras.grid);
    }
  }
  return join_heads(ops::attention(q, k, v, how));
}

// Computes proj_drop(proj(norm(heads))) + residual.
template <class Layer>
Tensor project(const Layer& layer, Tensor heads, Pass& pass, const Tensor& residual) {
  if (layer.norm) {
    heads = (*layer.norm)(heads);
  }
  const Dropout drop{layer.config.proj_drop};
  if (!residual.defined()) {
    return drop(layer.proj(heads), pass);
  }
  if (drop.active(pass)) {
    return residual + drop(layer.proj(heads), pass);
  }
  return layer.proj(heads, ops::Activation::identity, residual);
}

// The multiply-accumulates that self- and cross-attention have in common: q kᵀ, the probabilities with v, the norms of
// queries, keys and joined heads, and proj.
template <class Layer>
std::int64_t common_flops(const Layer& layer, std::int64_t queries, std::int64_t keys) {
  const AttentionConfig& c = layer.config;
  std::int64_t total = c.num_heads * queries * keys * (c.key_dim + c.value_dim) + layer.proj.flops(queries);
  if (layer.q_norm) {
    total += layer.q_norm->flops(c.num_heads * queries) + layer.k_norm->flops(c.num_heads * keys);
  }
  return total + (layer.norm ? layer.norm->flops(queries) : 0);
}

}  // namespace

Attention::Attention(const Scope& scope, const AttentionConfig& given)
    : config(filled(scope, given, {})),
      name(scope.path()),
      qkv(config.names->in_proj ? in_projection(scope, config)
                                : linear_if(config.fused, scope / config.names->qkv, config, config.dim,
                                            fused_width(config), config.qkv_bias && config.k_bias)),
      q_proj(linear_if(!config.fused, scope / config.names->q, config, config.dim, config.num_heads * config.key_dim,
                       config.qkv_bias)),
      k_proj(linear_if(!config.fused, scope / config.names->k, config, config.dim, config.num_heads * config.key_dim,
                       config.qkv_bias && config.k_bias)),
      v_proj(linear_if(!config.fused, scope / config.names->v, config, config.dim, config.num_heads * config.value_dim,
                       config.qkv_bias)),
      q_bias(bias_if(separate_biases(config), scope, "q_bias", config.num_heads * config.key_dim)),
      v_bias(bias_if(separate_biases(config), scope, "v_bias", config.num_heads * config.value_dim)),
      q_norm(norm_if(config.qk_norm, scope / "q_norm", config.key_dim)),
      k_norm(norm_if(config.qk_norm, scope / "k_norm", config.key_dim)),
      norm(norm_if(config.scale_norm, scope / "norm", config.num_heads * config.value_dim)),
      proj(output_projection(scope, config)) {}

Tensor Attention::project_qkv(const Tensor& x) const {
  if (!q_bias.defined()) {
    return (*qkv)(x);
  }
  Linear with_biases = *qkv;
  with_biases.bias = ops::concat({q_bias, Tensor::zeros(q_bias.shape()), v_bias}, 0);
  return with_biases(x);
}

Tensor Attention::operator()(const Tensor& x, Pass& pass, const AttentionExtras& extras) const {
  const std::int64_t heads = config.num_heads;
  const std::int64_t keys = heads * config.key_dim;
  Tensor y;
  if (!qkv) {
    y = attend(*this, split_heads((*q_proj)(x), heads), split_heads((*k_proj)(x), heads),
               split_heads((*v_proj)(x), heads), pass, extras);
  } else if (!q_norm && config.value_dim == config.key_dim) {
    // In this layout the gradient of q, k and v is written in one piece.
    Tensor packed = ops::reshape(project_qkv(x), {x.size(0), x.size(1), 3, heads, config.key_dim});
    packed = extras.rotation.defined() ? ops::rotate_packed(packed, extras.rotation) : packed;
    const ops::AttentionOptions how = options(config, pass, extras);
    if (pass.wants_attention()) {
      const auto part = [&](std::int64_t i) { return packed.detach().select(2, i).permute({0, 2, 1, 3}); };
      pass.recorder->attention(name, ops::attention_probabilities(part(0), part(1), how), extras.grid);
    }
    y = ops::reshape(ops::attention_packed(packed, how), {x.size(0), x.size(1), keys});
  } else {
    const std::vector<Tensor> parts = ops::split(project_qkv(x), {keys, keys, heads * config.value_dim}, -1);
    y = attend(*this, split_heads(parts[0], heads), split_heads(parts[1], heads), split_heads(parts[2], heads), pass,
               extras);
  }
  return project(*this, y, pass, extras.residual);
}

std::int64_t Attention::flops(std::int64_t tokens) const {
  std::int64_t total = common_flops(*this, tokens, tokens);
  for (const std::optional<Linear>* linear : {&qkv, &q_proj, &k_proj, &v_proj}) {
    total += *linear ? (*linear)->flops(tokens) : 0;
  }
  return total;
}

CrossAttention::CrossAttention(const Scope& scope, const AttentionConfig& given)
    : config(filled(scope, given, {.qkv = "kv", .q = "q", .k = "k", .v = "v"})),
      name(scope.path()),
      in_proj(config.names->in_proj ? std::optional(in_projection(scope, config)) : std::nullopt),
      q(linear_if(!in_proj, scope / config.names->q, config, config.dim, config.num_heads * config.key_dim,
                  config.qkv_bias)),
      kv(linear_if(config.fused && !in_proj, scope / config.names->qkv, config, config.context_dim,
                   config.num_heads * (config.key_dim + config.value_dim), config.qkv_bias)),
      k(linear_if(!config.fused, scope / config.names->k, config, config.context_dim, config.num_heads * config.key_dim,
                  config.qkv_bias)),
      v(linear_if(!config.fused, scope / config.names->v, config, config.context_dim,
                  config.num_heads * config.value_dim, config.qkv_bias)),
      q_norm(norm_if(config.qk_norm, scope / "q_norm", config.key_dim)),
      k_norm(norm_if(config.qk_norm, scope / "k_norm", config.key_dim)),
      norm(norm_if(config.scale_norm, scope / "norm", config.num_heads * config.value_dim)),
      proj(output_projection(scope, config)) {}

Tensor CrossAttention::operator()(const Tensor& x, const Tensor& context, Pass& pass,
                                  const AttentionExtras& extras) const {
  const std::int64_t heads = config.num_heads;
  const std::int64_t keys = heads * config.key_dim;
  const std::int64_t values = heads * config.value_dim;
  const Tensor queries = in_proj ? rows_of_map(*in_proj, 0, keys)(x) : (*q)(x);
  std::vector<Tensor> parts;
  if (config.fused) {
    const Linear both = in_proj ? rows_of_map(*in_proj, keys, keys + values) : *kv;
    parts = ops::split(both(context), {keys, values}, -1);
  } else {
    parts = {(*k)(context), (*v)(context)};
  }
  const Tensor y = attend(*this, split_heads(queries, heads), split_heads(parts[0], heads),
                          split_heads(parts[1], heads), pass, extras);
  return project(*this, y, pass, extras.residual);
}

std::int64_t CrossAttention::flops(std::int64_t queries, std::int64_t keys) const {
  std::int64_t total = common_flops(*this, queries, keys);
  if (in_proj) {
    const std::int64_t of_queries = config.dim * config.num_heads * config.key_dim;
    return total + queries * of_queries + keys * (in_proj->weight.numel() - of_queries);
  }
  return total + q->flops(queries) + (kv ? kv->flops(keys) : k->flops(keys) + v->flops(keys));
}

}  // namespace vitrail::nn
