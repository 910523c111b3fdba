#include "vitrail/ops/products/quantized.h"

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/int8.h"
#include "vitrail/ops/products/linear_operands.h"

namespace vitrail::ops {

QuantizedWeight quantize(const Tensor& weight) {
  check(weight.rank() == 2 && weight.dtype() == DType::f32, "quantize: the weight must be [out, in] f32, not {} {}",
        weight.shape(), name_of(weight.dtype()));
  QuantizedWeight result;
  result.values = Tensor::empty(weight.shape(), DType::i8);
  result.scale = Tensor::empty({weight.size(0)});
  kernels::quantize_rows(weight.detach().contiguous(), {}, result.values, result.scale);
  return result;
}

Tensor linear(const Tensor& x, const QuantizedWeight& weight, const Tensor& bias, Activation activation,
              const Tensor& residual) {
  const Tensor& w = weight.values;
  check_linear_operands(x, w.shape(), bias, residual);
  check(w.dtype() == DType::i8 && weight.scale.shape() == Shape{w.size(0)} && weight.scale.dtype() == DType::f32,
        "linear in int8: the weight must be i8 with an f32 scale for each output, not {} {} with {}", w.shape(),
        name_of(w.dtype()), weight.scale.shape());
  const Tensor& fixed = weight.input_scale;
  check(!fixed.defined() || (fixed.shape() == Shape{1} && fixed.dtype() == DType::f32),
        "linear in int8: the scale of the inputs must be [1] f32, not {}", fixed.defined() ? fixed.shape() : Shape{});
  check(!autograd::recording({&x, &bias, &residual}),
        "a linear map in int8 has no gradient: train the model that it was quantized from");
  const Tensor rows = rows_of(x);
  const Tensor q = Tensor::empty(rows.shape(), DType::i8);
  const Tensor scales = Tensor::empty({rows.size(0)});
  kernels::quantize_rows(rows, fixed, q, scales);
  Tensor y = Tensor::empty(x.shape().with(-1, w.size(0)), x.dtype());
  kernels::matmul_int8(q, scales, w, weight.scale,
                       {bias, activation, residual.defined() ? rows_of(residual) : Tensor()}, rows_of(y));
  return autograd::record("linear (int8)", y, {}, [](const Tensor&) {});
}

}  // namespace vitrail::ops
