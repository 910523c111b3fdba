#include "vitrail/nn/attention/pool.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

constexpr std::array<std::pair<std::string_view, Pool>, 8> pools = {{{"", Pool::none},
                                                                     {"token", Pool::token},
                                                                     {"avg", Pool::avg},
                                                                     {"max", Pool::max},
                                                                     {"avgmax", Pool::avgmax},
                                                                     {"sum", Pool::sum},
                                                                     {"map", Pool::map},
                                                                     {"token_avg", Pool::token_avg}}};

}  // namespace

Pool pool_named(std::string_view name) {
  for (const auto& [pool_name, pool] : pools) {
    if (pool_name == name) {
      return pool;
    }
  }
  fail("there is no pooling '{}': expected token, avg, max, avgmax, sum, map, token_avg or '' (none)", name);
}

std::string_view name_of(Pool pool) {
  for (const auto& [pool_name, candidate] : pools) {
    if (candidate == pool) {
      return pool_name;
    }
  }
  fail("no such pooling: {}", static_cast<int>(pool));
}

Tensor pool_tokens(const Tensor& x, Pool pool, std::int64_t prefix) {
  if (pool == Pool::none) {
    return x;
  }
  if (pool == Pool::token) {
    return ops::select(x, 1, 0);
  }
  const Tensor patches = prefix == 0 ? x : ops::narrow(x, 1, prefix, x.size(1) - prefix);
  switch (pool) {
    case Pool::avg:
      return ops::mean(patches, {1});
    case Pool::max:
      return ops::amax(patches, {1});
    case Pool::avgmax:
      return (ops::mean(patches, {1}) + ops::amax(patches, {1})) * 0.5F;
    case Pool::token_avg:
      return ops::concat({ops::select(x, 1, 0), ops::mean(patches, {1})}, 1);
    case Pool::sum:
      return ops::sum(patches, {1});
    default:
      fail("the pooling '{}' has parameters of its own", name_of(pool));
  }
}

AttentionPoolLatent::AttentionPoolLatent(const Scope& scope, const AttentionPoolConfig& config)
    : latent(
          scope.parameter("latent", {1, 1, config.dim},
                          Init::trunc_normal_tf(static_cast<float>(1 / std::sqrt(static_cast<double>(config.dim)))))),
      attention(scope, {.dim = config.dim, .num_heads = config.num_heads, .qkv_bias = config.qkv_bias, .pools = true}),
      norm(scope / "norm", config.dim, config.norm),
      mlp(scope / "mlp", {.dim = config.dim,
                          .hidden = static_cast<std::int64_t>(static_cast<double>(config.dim) * config.mlp_ratio),
                          .activation = config.activation}) {}

Tensor AttentionPoolLatent::operator()(const Tensor& x, Pass& pass) const {
  const Tensor query = ops::expand(ops::cast(latent, x.dtype()), {x.size(0), 1, latent.size(2)});
  const Tensor z = attention(query, x, pass);
  return ops::select(mlp(norm(z), pass, z), 1, 0);
}

std::int64_t AttentionPoolLatent::flops(std::int64_t tokens) const {
  return attention.flops(1, tokens) + norm.flops(1) + mlp.flops(1);
}

}  // namespace vitrail::nn
