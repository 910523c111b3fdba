#include "vitrail/nn/linear.h"

#include <cmath>

#include "vitrail/ops/linear.h"
#include "vitrail/ops/quantized.h"

namespace vitrail::nn {
namespace {

thread_local InputObserver* observer = nullptr;

}  // namespace

InputObserver::InputObserver() {
  check(observer == nullptr, "the inputs of linear maps are being observed already");
  observer = this;
}
InputObserver::~InputObserver() { observer = nullptr; }

Linear::Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool with_bias) {
  const std::optional<bool> quantized = scope.quantized();
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
  if (weight_scale.defined()) {
    return ops::linear(x, ops::QuantizedWeight{weight, weight_scale, input_scale}, bias, activation, residual);
  }
  return ops::linear(x, weight, bias, activation, residual);
}

}  // namespace vitrail::nn
