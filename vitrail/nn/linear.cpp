#include "vitrail/nn/linear.h"

#include <cmath>

#include "vitrail/ops/linear.h"

namespace vitrail::nn {

Linear::Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias)
    : weight(scope.parameter("weight", {out, in}, Init::kaiming_uniform({out, in}))) {
  if (with_bias) {
    bias = scope.parameter("bias", {out}, Init::kaiming_uniform({out, in}));
  }
}

Tensor Linear::operator()(const Tensor& x) const { return ops::linear(x, weight, bias); }

Tensor Linear::operator()(const Tensor& x, ops::Activation activation, const Tensor& residual) const {
  return ops::linear(x, weight, bias, activation, residual);
}

}  // namespace vitrail::nn
