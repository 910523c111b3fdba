#include "vitrail/nn/linear.h"

#include <cmath>

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/products/mix_tokens.h"
#include "vitrail/ops/products/quantized.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

thread_local InputObserver* observer = nullptr;

}  // namespace

InputObserver::InputObserver() {
  check(observer == nullptr, "the inputs of linear maps are being observed already");
  observer = this;
}
InputObserver::~InputObserver() { observer = nullptr; }

Linear::Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias, Along dimension,
               WeightLayout weight_layout)
    : along(dimension), layout(weight_layout) {
  const std::optional<bool> quantized = scope.quantized();
  if (layout == WeightLayout::in_out && !quantized) {
    check(along == Along::features, "{}: a map of tokens has its weight as [out, in]", scope.path());
    weight = scope.parameter("weight", {in, out}, Init::normal(0.02F));
    bias = with_bias ? scope.parameter("bias", {out}, Init::zeros()) : Tensor();
    return;
  }
  layout = WeightLayout::out_in;
  weight = quantized ? scope.buffer("weight", {out, in}, Init::zeros(), DType::i8)
                     : scope.parameter("weight", {out, in}, Init::kaiming_uniform({out, in}));
  if (with_bias) {
    bias = scope.parameter("bias", {out}, Init::kaiming_uniform({out, in}));
  }
  if (quantized) {
    weight_scale = scope.buffer("weight_scale", {out}, Init::ones());
    input_scale = *quantized ? scope.buffer("input_scale", {1}, Init::ones()) : Tensor();
  }
}

Tensor Linear::operator()(const Tensor& x) const { return (*this)(x, ops::Activation::identity); }

Tensor Linear::operator()(const Tensor& x, ops::Activation activation, const Tensor& residual) const {
  if (observer != nullptr) {
    observer->input(weight, x);
  }
  const bool tokens = along == Along::tokens;
  if (weight_scale.defined()) {
    const ops::QuantizedWeight quantized{weight, weight_scale, input_scale};
    if (tokens) {
      const Tensor y = ops::transpose(ops::linear(ops::transpose(x, -1, -2), quantized, bias, activation), -1, -2);
      return residual.defined() ? y + residual : ops::contiguous(y);
    }
    return ops::linear(x, quantized, bias, activation, residual);
  }
  if (tokens) {
    return ops::mix_tokens(x, weight, bias, activation, residual);
  }
  const bool transposed = layout == WeightLayout::in_out;
  return ops::linear(x, transposed ? ops::transpose(weight, 0, 1) : weight, bias, activation, residual);
}

}  // namespace vitrail::nn
