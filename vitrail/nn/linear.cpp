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
  const bool turned = layout == WeightLayout::in_out;
  check(!turned || along == Along::features, "{}: a map of tokens has its weight as [out, in]", scope.path());
  weight = turned ? scope.parameter("weight", {in, out}, Init::normal(0.02F), true)
                  : scope.parameter("weight", {out, in}, Init::kaiming_uniform({out, in}));
  if (with_bias) {
    bias = scope.parameter("bias", {out}, turned ? Init::zeros() : Init::kaiming_uniform({out, in}));
  }
  if (weight.dtype() == DType::i8) {
    weight_scale = scope.buffer("weight_scale", {out}, Init::ones());
    input_scale = scope.held()->fixed_scale ? scope.buffer("input_scale", {1}, Init::ones()) : Tensor();
  }
}

Tensor Linear::operator()(const Tensor& x) const { return (*this)(x, ops::Activation::identity); }

Tensor Linear::operator()(const Tensor& x, ops::Activation activation, const Tensor& residual) const {
  if (observer != nullptr) {
    observer->input(weight, x);
  }
  const bool tokens = along == Along::tokens;
  const Tensor by_output = layout == WeightLayout::in_out ? ops::transpose(weight, 0, 1) : weight;
  if (weight_scale.defined()) {
    const ops::QuantizedWeight quantized{by_output, weight_scale, input_scale};
    if (tokens) {
      const Tensor y = ops::transpose(ops::linear(ops::transpose(x, -1, -2), quantized, bias, activation), -1, -2);
      return residual.defined() ? y + residual : ops::contiguous(y);
    }
    return ops::linear(x, quantized, bias, activation, residual);
  }
  if (tokens) {
    return ops::mix_tokens(x, weight, bias, activation, residual);
  }
  return ops::linear(x, by_output, bias, activation, residual);
}

}  // namespace vitrail::nn
