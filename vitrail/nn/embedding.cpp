#include "vitrail/nn/embedding.h"

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/products/quantized.h"
#include "vitrail/ops/shape/embedding.h"

namespace vitrail::nn {

Embedding::Embedding(const Scope& scope, std::int64_t count, std::int64_t dim, const Init& init,
                     std::int64_t padding_row)
    : padding(padding_row), weight(scope.parameter("weight", {count, dim}, init)) {
  if (weight.dtype() == DType::i8) {
    weight_scale = scope.buffer("weight_scale", {count}, Init::ones());
  }
}

Tensor Embedding::operator()(const Tensor& indices) const {
  const Tensor rows = ops::cast(ops::embedding(weight, indices, padding), DType::f32);
  return weight_scale.defined() ? rows * ops::embedding(weight_scale.unsqueeze(1), indices) : rows;
}

Tensor Embedding::scores(const Tensor& x, const Tensor& bias) const {
  return weight_scale.defined() ? ops::linear(x, ops::QuantizedWeight{weight, weight_scale, {}}, bias)
                                : ops::linear(x, weight, bias);
}

}  // namespace vitrail::nn
