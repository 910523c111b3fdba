#include "vitrail/ops/products/linear.h"

#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/linear_operands.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

// y = act(x Wᵀ + b) + residual; differentiable if act is the identity.
Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation,
              const Tensor& residual) {
  const Tensor rows = rows_of(x);
  Tensor y = Tensor::empty(x.shape().with(-1, weight.size(0)), x.dtype());
  kernels::matmul_packed(rows, weight.transpose(0, 1),
                         {bias, activation, residual.defined() ? rows_of(residual) : Tensor()}, rows_of(y));
  return autograd::record(
      "linear", y, {&x, &weight, &bias, &residual},
      [saved = autograd::requires_grad(weight) || autograd::requires_grad(bias) ? autograd::SavedTensor(x)
                                                                                : autograd::SavedTensor(),
       weight = weight.detach(), dx = Gradient(x), dweight = Gradient(weight), dbias = Gradient(bias),
       dresidual = Gradient(residual)](const Tensor& dy) {
        const Tensor dy_rows = rows_of(dy);
        // dW comes first, so that a recomputed x is freed before dx needs memory.
        if (dweight.wanted() || dbias.wanted()) {
          add_parameter_gradients(rows_of(saved.get()), dy_rows, dweight, dbias);
        }
        if (dx.wanted()) {  // dx = dy W
          Tensor contribution = Tensor::empty(dx.shape(), dy.dtype());
          kernels::matmul_packed(dy_rows, weight, {}, rows_of(contribution));
          dx.add(std::move(contribution));
        }
        dresidual.add(dy);
      });
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation,
              const Tensor& residual) {
  check_linear_operands(x, weight.shape(), bias, residual);
  check(weight.dtype() == DType::f32 || (weight.dtype() == DType::bf16 && x.dtype() == DType::bf16),
        "linear: the weight must be f32, or bf16 as x, but it is {} and x is {}", name_of(weight.dtype()),
        name_of(x.dtype()));
  // The derivative of the activation needs its input, so the activation is an op of its own if a gradient is wanted.
  if (activation != Activation::identity && autograd::recording({&x, &weight, &bias, &residual})) {
    const Tensor y = activate(affine(x, weight, bias, Activation::identity, {}), activation);
    return residual.defined() ? add(y, residual) : y;
  }
  return affine(x, weight, bias, activation, residual);
}

}  // namespace vitrail::ops
