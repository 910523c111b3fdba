#include "vitrail/nn/attention/attention.h"

#include <utility>
#include <vector>

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

// The config with defaults in place of zeros, and with `names` if it has no names.
AttentionConfig filled(const Scope& scope, AttentionConfig config, const AttentionNames& names) {
  config = with_widths(scope, std::move(config));
  config.names = config.names.value_or(names);
  check(!config.names->in_proj || (config.fused && config.k_bias && config.context_dim == config.dim),
        "{}: in_proj_weight makes queries, keys and values at once, from inputs of one width, with biases for all or "
        "none",
        scope.path());
  check(!config.by_head || (config.fused && config.k_bias && config.value_dim == config.key_dim &&
                            config.num_kv_heads == config.num_heads),
        "{}: a product that makes queries, keys and values head by head makes them of one width and number",
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
  return config.num_heads * config.key_dim + config.num_kv_heads * (config.key_dim + config.value_dim);
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

// Computes proj_drop(proj(norm(joined))) + residual.
template <class Layer>
Tensor project(const Layer& layer, Tensor joined, Pass& pass, const Tensor& residual) {
  if (layer.norm) {
    joined = (*layer.norm)(joined);
  }
  const Dropout drop{layer.config.proj_drop};
  if (!residual.defined()) {
    return drop(layer.proj(joined), pass);
  }
  if (drop.active(pass)) {
    return residual + drop(layer.proj(joined), pass);
  }
  return layer.proj(joined, ops::Activation::identity, residual);
}

// Queries, keys and values [B, N, H d] of one product.
std::vector<Tensor> parts_of(const Tensor& qkv, const AttentionConfig& config) {
  const std::int64_t keys = config.num_kv_heads * config.key_dim;
  if (!config.by_head) {
    return ops::split(qkv, {config.num_heads * config.key_dim, keys, config.num_kv_heads * config.value_dim}, -1);
  }
  const Tensor apart = ops::reshape(qkv, {qkv.size(0), qkv.size(1), config.num_heads, 3, config.key_dim});
  std::vector<Tensor> result;
  for (std::int64_t part = 0; part < 3; ++part) {
    result.push_back(ops::reshape(ops::select(apart, 3, part), {qkv.size(0), qkv.size(1), keys}));
  }
  return result;
}

// The multiply-accumulates that self- and cross-attention have in common: the heads, their norm, and proj.
template <class Layer>
std::int64_t common_flops(const Layer& layer, std::int64_t queries, std::int64_t keys) {
  return layer.heads.flops(queries, keys) + (layer.norm ? layer.norm->flops(queries) : 0) + layer.proj.flops(queries);
}

}  // namespace

Attention::Attention(const Scope& scope, const AttentionConfig& given)
    : config(filled(scope, given, {})),
      qkv(config.names->in_proj ? in_projection(scope, config)
                                : linear_if(config.fused, scope / config.names->qkv, config, config.dim,
                                            fused_width(config), config.qkv_bias && config.k_bias)),
      q_proj(linear_if(!config.fused, scope / config.names->q, config, config.dim, config.num_heads * config.key_dim,
                       config.qkv_bias)),
      k_proj(linear_if(!config.fused, scope / config.names->k, config, config.dim, config.num_kv_heads * config.key_dim,
                       config.qkv_bias && config.k_bias)),
      v_proj(linear_if(!config.fused, scope / config.names->v, config, config.dim,
                       config.num_kv_heads * config.value_dim, config.qkv_bias)),
      q_bias(bias_if(separate_biases(config), scope, "q_bias", config.num_heads * config.key_dim)),
      v_bias(bias_if(separate_biases(config), scope, "v_bias", config.num_kv_heads * config.value_dim)),
      heads(scope, config),
      norm(norm_if(config.scale_norm, scope / "norm", config.num_heads * config.value_dim)),
      proj(output_projection(scope, config)) {}

Tensor Attention::project_qkv(const Tensor& x) const {
  if (!q_bias.defined()) {
    return (*qkv)(x);
  }
  Linear with_biases = *qkv;
  const Tensor of_keys = Tensor::zeros({config.num_kv_heads * config.key_dim});
  with_biases.bias = ops::concat({q_bias, of_keys, v_bias}, 0);
  return with_biases(x);
}

Tensor Attention::operator()(const Tensor& x, Pass& pass, const AttentionExtras& extras) const {
  Tensor y;
  if (!qkv) {
    y = heads((*q_proj)(x), (*k_proj)(x), (*v_proj)(x), pass, extras);
  } else if (heads.takes_packed(extras)) {
    y = heads.packed(project_qkv(x), pass, extras);
  } else {
    const std::vector<Tensor> parts = parts_of(project_qkv(x), config);
    y = heads(parts[0], parts[1], parts[2], pass, extras);
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
      in_proj(config.names->in_proj ? std::optional(in_projection(scope, config)) : std::nullopt),
      q(linear_if(!in_proj, scope / config.names->q, config, config.dim, config.num_heads * config.key_dim,
                  config.qkv_bias)),
      kv(linear_if(config.fused && !in_proj, scope / config.names->qkv, config, config.context_dim,
                   config.num_kv_heads * (config.key_dim + config.value_dim), config.qkv_bias)),
      k(linear_if(!config.fused, scope / config.names->k, config, config.context_dim,
                  config.num_kv_heads * config.key_dim, config.qkv_bias)),
      v(linear_if(!config.fused, scope / config.names->v, config, config.context_dim,
                  config.num_kv_heads * config.value_dim, config.qkv_bias)),
      heads(scope, config),
      norm(norm_if(config.scale_norm, scope / "norm", config.num_heads * config.value_dim)),
      proj(output_projection(scope, config)) {}

Memory CrossAttention::remember(const Tensor& context) const {
  if (!config.fused) {
    return {(*k)(context), (*v)(context)};
  }
  const std::int64_t keys = config.num_kv_heads * config.key_dim;
  const std::int64_t values = config.num_kv_heads * config.value_dim;
  const Linear both = in_proj ? rows_of_map(*in_proj, config.num_heads * config.key_dim, keys + values) : *kv;
  const std::vector<Tensor> parts = ops::split(both(context), {keys, values}, -1);
  return {parts[0], parts[1]};
}

Tensor CrossAttention::attend(const Tensor& x, const Memory& memory, Pass& pass, const AttentionExtras& extras) const {
  check(extras.cache == nullptr, "{}: cross-attention has no cache", heads.name);
  const Tensor queries = in_proj ? rows_of_map(*in_proj, 0, config.num_heads * config.key_dim)(x) : (*q)(x);
  return project(*this, heads(queries, memory.keys, memory.values, pass, extras), pass, extras.residual);
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
