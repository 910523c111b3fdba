/// \file
/// What the different linear maps share: checks of their operands, and the gradients of their parameters. For this
/// layer's sources only.
#pragma once

#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// Error unless x [..., in] is f32 or bf16, the bias undefined or [out] f32, and the residual undefined or [..., out]
/// of x's dtype, for a weight of shape [out, in].
inline void check_linear_operands(const Tensor& x, const Shape& weight, const Tensor& bias, const Tensor& residual) {
  check(is_floating(x.dtype()), "linear: x must be f32 or bf16, not {}", name_of(x.dtype()));
  check(weight.rank() == 2, "linear: the weight must be [out, in], not {}", weight);
  check(x.rank() >= 1 && x.size(-1) == weight[1], "linear: x {} has {} features, but the weight {} takes {}", x.shape(),
        x.rank() == 0 ? 0 : x.size(-1), weight, weight[1]);
  if (bias.defined()) {
    check(bias.shape() == Shape{weight[0]} && bias.dtype() == DType::f32,
          "linear: the bias must be [{}] f32, not {} {}", weight[0], bias.shape(), name_of(bias.dtype()));
  }
  if (residual.defined()) {
    const Shape shape = x.shape().with(-1, weight[0]);
    check(residual.shape() == shape && residual.dtype() == x.dtype(), "linear: the residual must be {} {}, not {} {}",
          shape, name_of(x.dtype()), residual.shape(), name_of(residual.dtype()));
  }
}

/// x [..., D] as a matrix [rows, D], detached; copied if its rows are not adjacent in memory.
inline Tensor rows_of(const Tensor& x) {
  std::int64_t rows = 1;
  for (int d = 0; d < x.rank() - 1; ++d) {
    rows *= x.size(d);
  }
  return x.detach().reshape({rows, x.size(-1)}).contiguous();
}

/// Adds dW = dyᵀ x and db = the sum of dy's rows to the gradients of a weight, whose out · in elements may have any
/// shape, and of a bias. x [rows, in] and dy [rows, out].
inline void add_parameter_gradients(const Tensor& x, const Tensor& dy, const autograd::Gradient& dweight,
                                    const autograd::Gradient& dbias) {
  Tensor dw = Tensor::empty(dweight.shape());
  Tensor db = dbias.wanted() ? Tensor::empty(dbias.shape()) : Tensor();
  kernels::weight_gradient(x, dy, dw.reshape({dy.size(1), x.size(1)}), db);
  dweight.add(std::move(dw));
  dbias.add(std::move(db));
}

}  // namespace vitrail::ops
