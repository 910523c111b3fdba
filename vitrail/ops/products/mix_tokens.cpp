#include "vitrail/ops/products/mix_tokens.h"

#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

void check_operands(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& residual) {
  check(is_floating(x.dtype()), "mix_tokens: x must be f32 or bf16, not {}", name_of(x.dtype()));
  check(weight.rank() == 2 && weight.dtype() == DType::f32, "mix_tokens: the weight must be [out, in] f32, not {} {}",
        weight.shape(), name_of(weight.dtype()));
  check(x.rank() >= 2 && x.size(-2) == weight.size(1),
        "mix_tokens: x {} must be [..., {}, D], as many tokens as the weight {} takes", x.shape(), weight.size(1),
        weight.shape());
  if (bias.defined()) {
    check(bias.shape() == Shape{weight.size(0)} && bias.dtype() == DType::f32,
          "mix_tokens: the bias must be [{}] f32, not {} {}", weight.size(0), bias.shape(), name_of(bias.dtype()));
  }
  if (residual.defined()) {
    const Shape shape = x.shape().with(-2, weight.size(0));
    check(residual.shape() == shape && residual.dtype() == x.dtype(),
          "mix_tokens: the residual must be {} {}, not {} {}", shape, name_of(x.dtype()), residual.shape(),
          name_of(residual.dtype()));
  }
}

// x [..., N, D] as a batch of matrices, detached.
Tensor matrices_of(const Tensor& x) {
  std::int64_t batch = 1;
  for (int d = 0; d < x.rank() - 2; ++d) {
    batch *= x.size(d);
  }
  return x.detach().reshape({batch, x.size(-2), x.size(-1)}).contiguous();
}

// y = act(W x + b 1ᵀ) + residual; differentiable if act is the identity.
Tensor affine_columns(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation,
                      const Tensor& residual) {
  Tensor y = Tensor::empty(x.shape().with(-2, weight.size(0)), x.dtype());
  kernels::matmul_packed_left(weight, matrices_of(x),
                              {bias, activation, residual.defined() ? matrices_of(residual) : Tensor()},
                              matrices_of(y));
  return autograd::record(
      "mix_tokens", y, {&x, &weight, &bias, &residual},
      [saved = autograd::requires_grad(weight) || autograd::requires_grad(bias) ? autograd::SavedTensor(x)
                                                                                : autograd::SavedTensor(),
       weight = weight.detach(), dx = Gradient(x), dweight = Gradient(weight), dbias = Gradient(bias),
       dresidual = Gradient(residual)](const Tensor& dy) {
        const Tensor dy_matrices = matrices_of(dy);
        if (dweight.wanted() || dbias.wanted()) {  // dW = Σ dy xᵀ, db = Σ dy 1
          Tensor dw = Tensor::empty(weight.shape());
          Tensor db = dbias.wanted() ? Tensor::empty(dbias.shape()) : Tensor();
          kernels::weight_gradient_left(matrices_of(saved.get()), dy_matrices, dw, db);
          dweight.add(std::move(dw));
          dbias.add(std::move(db));
        }
        if (dx.wanted()) {  // dx = Wᵀ dy
          Tensor contribution = Tensor::empty(dx.shape(), dy.dtype());
          kernels::matmul_packed_left(weight.transpose(0, 1), dy_matrices, {}, matrices_of(contribution));
          dx.add(std::move(contribution));
        }
        dresidual.add(dy);
      });
}

}  // namespace

Tensor mix_tokens(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation,
                  const Tensor& residual) {
  check_operands(x, weight, bias, residual);
  // The derivative of the activation needs its input, so the activation is an op of its own if a gradient is wanted.
  if (activation != Activation::identity && autograd::recording({&x, &weight, &bias, &residual})) {
    const Tensor y = activate(affine_columns(x, weight, bias, Activation::identity, {}), activation);
    return residual.defined() ? add(y, residual) : y;
  }
  return affine_columns(x, weight, bias, activation, residual);
}

}  // namespace vitrail::ops
