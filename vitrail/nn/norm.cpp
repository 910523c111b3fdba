#include "vitrail/nn/norm.h"

#include "vitrail/ops/math/norm.h"
#include "vitrail/ops/math/scale.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

std::variant<LayerNorm, RmsNorm, TokenNorm, Affine> make_norm(const Scope& scope, std::int64_t dim,
                                                              const NormConfig& config, float weight) {
  switch (config.kind) {
    case NormKind::layer:
      return LayerNorm(scope, dim, config.eps, weight);
    case NormKind::rms:
      return RmsNorm(scope, dim, config.eps, weight);
    case NormKind::token:
      return TokenNorm(config.eps);
    case NormKind::affine:
      return Affine(scope, dim, weight);
  }
  fail("no such norm: {}", static_cast<int>(config.kind));
}

}  // namespace

LayerNorm::LayerNorm(const Scope& scope, std::int64_t dim, float norm_eps, float start)
    : eps(norm_eps),
      weight(scope.parameter("weight", {dim}, Init::constant(start))),
      bias(scope.parameter("bias", {dim}, Init::zeros())) {}

Tensor LayerNorm::operator()(const Tensor& x) const { return ops::layer_norm(x, weight, bias, eps); }

RmsNorm::RmsNorm(const Scope& scope, std::int64_t dim, float norm_eps, float start)
    : eps(norm_eps), weight(scope.parameter("weight", {dim}, Init::constant(start))) {}

Tensor RmsNorm::operator()(const Tensor& x) const { return ops::rms_norm(x, weight, eps); }

Tensor TokenNorm::operator()(const Tensor& x) const { return ops::layer_norm(x, {}, {}, eps); }

Affine::Affine(const Scope& scope, std::int64_t dim, float start)
    : alpha(scope.parameter("alpha", {1, 1, dim}, Init::constant(start))),
      beta(scope.parameter("beta", {1, 1, dim}, Init::zeros())) {}

Tensor Affine::operator()(const Tensor& x) const {
  const Shape columns = {alpha.numel()};
  return ops::scale(x, ops::reshape(alpha, columns), ops::reshape(beta, columns));
}

NormKind norm_named(std::string_view name) {
  if (name == "layernorm") {
    return NormKind::layer;
  }
  if (name == "rmsnorm") {
    return NormKind::rms;
  }
  if (name == "affine") {
    return NormKind::affine;
  }
  check(name == "tokennorm", "there is no norm '{}': expected layernorm, rmsnorm, tokennorm or affine", name);
  return NormKind::token;
}

Norm::Norm(const Scope& scope, std::int64_t dim, const NormConfig& config, float weight)
    : dim_(dim), norm_(make_norm(scope, dim, config, weight)) {}

std::int64_t Norm::flops(std::int64_t rows) const {
  const std::int64_t elements = rows * dim_;
  if (std::holds_alternative<LayerNorm>(norm_)) {
    return 5 * elements;
  }
  return std::holds_alternative<TokenNorm>(norm_) ? 4 * elements : 0;
}

}  // namespace vitrail::nn
