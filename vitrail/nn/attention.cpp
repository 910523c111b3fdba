#include "vitrail/nn/attention.h"

#include "vitrail/ops/arithmetic.h"
#include "vitrail/ops/shape.h"

namespace vitrail::nn {
namespace {

AttentionConfig filled(const Scope& scope, AttentionConfig config) {
  check(config.num_heads > 0, "{}: attention needs at least one head, not {}", scope.path(), config.num_heads);
  if (config.key_dim == 0) {
    check(config.dim % config.num_heads == 0, "{}: the width {} cannot be divided among {} heads", scope.path(),
          config.dim, config.num_heads);
    config.key_dim = config.dim / config.num_heads;
  }
  config.value_dim = config.value_dim > 0 ? config.value_dim : config.key_dim;
  config.context_dim = config.context_dim > 0 ? config.context_dim : config.dim;
  config.out_dim = config.out_dim > 0 ? config.out_dim : config.dim;
  return config;
}

std::optional<Linear> linear_if(bool wanted, const Scope& scope, std::int64_t in, std::int64_t out, bool bias) {
  return wanted ? std::optional<Linear>(std::in_place, scope, in, out, bias) : std::nullopt;
}

std::optional<Norm> norm_if(const std::optional<NormConfig>& config, const Scope& scope, std::int64_t dim) {
  return config ? std::optional<Norm>(std::in_place, scope, dim, *config) : std::nullopt;
}

// Whether the queries and values of one fused product have a bias each, and the keys none.
bool separate_biases(const AttentionConfig& config) { return config.fused && config.qkv_bias && !config.k_bias; }

Tensor bias_if(bool wanted, const Scope& scope, std::string_view name, std::int64_t width) {
  return wanted ? scope.parameter(name, {width}, Init::zeros()) : Tensor();
}

// [B, N, H d] → [B, H, N, d], a view.
Tensor split_heads(const Tensor& x, std::int64_t heads) {
  return ops::permute(ops::reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}

// [B, H, N, d] → [B, N, H d].
Tensor join_heads(const Tensor& x) {
  return ops::reshape(ops::permute(x, {0, 2, 1, 3}), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

ops::AttentionOptions options(const AttentionConfig& config, Pass& pass, const AttentionExtras& extras) {
  ops::AttentionOptions result;
  result.causal = extras.causal;
  result.mask = extras.mask;
  result.bias = extras.bias;
  if (pass.training && config.attn_drop > 0) {
    result.dropout = config.attn_drop;
    result.draws = pass.random.next();
  }
  return result;
}

// softmax(q kᵀ …) v over heads, joined: q [B, H, N, d], k [B, H, M, d], v [B, H, M, e] → [B, N, H e]. The map goes to
// the recorder if it wants one.
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
  const bool recorded = layer.config.block >= 0 || layer.config.pools;
  if (recorded && pass.recorder != nullptr && pass.recorder->wants_attention()) {
    const Tensor map = ops::attention_probabilities(q, k, how);
    if (layer.config.pools) {
      pass.recorder->pool_attention(map);
    } else {
      pass.recorder->attention(layer.config.block, map, extras.place);
    }
  }
  return join_heads(ops::attention(q, k, v, how));
}

// proj_drop(proj(norm(heads))) + residual.
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

// Multiply-accumulates of q kᵀ and of the probabilities with v, the norms of queries, keys and joined heads, and proj.
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
    : config(filled(scope, given)),
      qkv(linear_if(config.fused, scope / "qkv", config.dim, config.num_heads * (2 * config.key_dim + config.value_dim),
                    config.qkv_bias && config.k_bias)),
      q_proj(
          linear_if(!config.fused, scope / "q_proj", config.dim, config.num_heads * config.key_dim, config.qkv_bias)),
      k_proj(linear_if(!config.fused, scope / "k_proj", config.dim, config.num_heads * config.key_dim,
                       config.qkv_bias && config.k_bias)),
      v_proj(
          linear_if(!config.fused, scope / "v_proj", config.dim, config.num_heads * config.value_dim, config.qkv_bias)),
      q_bias(bias_if(separate_biases(config), scope, "q_bias", config.num_heads * config.key_dim)),
      v_bias(bias_if(separate_biases(config), scope, "v_bias", config.num_heads * config.value_dim)),
      q_norm(norm_if(config.qk_norm, scope / "q_norm", config.key_dim)),
      k_norm(norm_if(config.qk_norm, scope / "k_norm", config.key_dim)),
      norm(norm_if(config.scale_norm, scope / "norm", config.num_heads * config.value_dim)),
      proj(scope / "proj", config.num_heads * config.value_dim, config.out_dim, config.proj_bias) {}

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
  } else if (const bool wants_map = config.block >= 0 && pass.recorder != nullptr && pass.recorder->wants_attention();
             !q_norm && config.value_dim == config.key_dim) {
    // The layout in which the gradient of q, k and v is written in one piece.
    Tensor packed = ops::reshape(project_qkv(x), {x.size(0), x.size(1), 3, heads, config.key_dim});
    packed = extras.rotation.defined() ? ops::rotate_packed(packed, extras.rotation) : packed;
    const ops::AttentionOptions how = options(config, pass, extras);
    if (wants_map) {
      const auto part = [&](std::int64_t i) { return packed.detach().select(2, i).permute({0, 2, 1, 3}); };
      pass.recorder->attention(config.block, ops::attention_probabilities(part(0), part(1), how), extras.place);
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
    : config(filled(scope, given)),
      q(scope / "q", config.dim, config.num_heads * config.key_dim, config.qkv_bias),
      kv(linear_if(config.fused, scope / "kv", config.context_dim,
                   config.num_heads * (config.key_dim + config.value_dim), config.qkv_bias)),
      k(linear_if(!config.fused, scope / "k", config.context_dim, config.num_heads * config.key_dim, config.qkv_bias)),
      v(linear_if(!config.fused, scope / "v", config.context_dim, config.num_heads * config.value_dim,
                  config.qkv_bias)),
      q_norm(norm_if(config.qk_norm, scope / "q_norm", config.key_dim)),
      k_norm(norm_if(config.qk_norm, scope / "k_norm", config.key_dim)),
      norm(norm_if(config.scale_norm, scope / "norm", config.num_heads * config.value_dim)),
      proj(scope / "proj", config.num_heads * config.value_dim, config.out_dim, config.proj_bias) {}

Tensor CrossAttention::operator()(const Tensor& x, const Tensor& context, Pass& pass,
                                  const AttentionExtras& extras) const {
  const std::int64_t heads = config.num_heads;
  const std::vector<Tensor> parts =
      kv ? ops::split((*kv)(context), {heads * config.key_dim, heads * config.value_dim}, -1)
         : std::vector<Tensor>{(*k)(context), (*v)(context)};
  const Tensor y =
      attend(*this, split_heads(q(x), heads), split_heads(parts[0], heads), split_heads(parts[1], heads), pass, extras);
  return project(*this, y, pass, extras.residual);
}

std::int64_t CrossAttention::flops(std::int64_t queries, std::int64_t keys) const {
  const std::int64_t from_context = kv ? kv->flops(keys) : k->flops(keys) + v->flops(keys);
  return common_flops(*this, queries, keys) + q.flops(queries) + from_context;
}

}  // namespace vitrail::nn
