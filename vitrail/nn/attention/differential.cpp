#include "vitrail/nn/attention/differential.h"

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/norm.h"
#include "vitrail/ops/math/reduce.h"

namespace vitrail::nn {
namespace {

constexpr float lambda_spread = 0.1F;

Tensor exp_of_product(const Tensor& a, const Tensor& b) { return ops::exp(ops::sum(a * b, {0}, true)); }

}  // namespace

Differential::Differential(const Scope& scope, std::int64_t key_dim, std::int64_t value_dim, float init)
    : lambda_init(init),
      lambda_q1(scope.parameter("lambda_q1", {key_dim}, Init::normal(lambda_spread))),
      lambda_k1(scope.parameter("lambda_k1", {key_dim}, Init::normal(lambda_spread))),
      lambda_q2(scope.parameter("lambda_q2", {key_dim}, Init::normal(lambda_spread))),
      lambda_k2(scope.parameter("lambda_k2", {key_dim}, Init::normal(lambda_spread))),
      sub_norm(scope / "sub_norm", value_dim, 1e-5F) {}

Tensor Differential::lambda() const {
  return exp_of_product(lambda_q1, lambda_k1) - exp_of_product(lambda_q2, lambda_k2) + lambda_init;
}

Tensor Differential::operator()(const Tensor& first, const Tensor& second) const {
  const Tensor difference = first - second * ops::cast(lambda(), second.dtype());
  return ops::rms_norm(difference, sub_norm.weight * (1 - lambda_init), sub_norm.eps);
}

}  // namespace vitrail::nn
