#include "vitrail/kernels/group_norm.h"

#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/layout.h"
#include "vitrail/ops/math/dense.h"
#include "vitrail/ops/math/norm.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

void check_operands(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias) {
  check(is_floating(x.dtype()), "group_norm: x must be f32 or bf16, not {}", name_of(x.dtype()));
  check(x.rank() == 4, "group_norm: x must be [B, C, H, W], not {}", x.shape());
  check(groups > 0 && x.size(1) % groups == 0, "group_norm: {} channels cannot be divided into {} groups", x.size(1),
        groups);
  for (const Tensor* parameter : {&weight, &bias}) {
    check(!parameter->defined() || (parameter->shape() == Shape{x.size(1)} && parameter->dtype() == DType::f32),
          "group_norm: weight and bias must be [{}] f32, not {}", x.size(1), parameter->shape());
  }
}

const float* values_or_null(const Tensor& tensor) { return tensor.defined() ? tensor.data<float>() : nullptr; }
}  // namespace

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, float eps) {
  check_operands(x, groups, weight, bias);
  if (x.numel() == 0) {
    return x;
  }
  const kernels::GroupNorm norm{x.size(0), x.size(2) * x.size(3), x.size(1), groups, x.dtype()};
  const Tensor input = kernels::channels_last(x);
  const Tensor scale = dense_or_undefined(weight);
  const Tensor shift = dense_or_undefined(bias);
  const Tensor mean = Tensor::empty({norm.samples, groups});
  const Tensor rstd = Tensor::empty(mean.shape());
  const Tensor y = kernels::empty_channels_last(x.shape(), x.dtype());
  kernels::group_norm_forward(norm, input.raw(), values_or_null(scale), values_or_null(shift), eps, y.raw(),
                              mean.data<float>(), rstd.data<float>());
  return autograd::record(
      "group_norm", y, {&x, &weight, &bias},
      [norm, input, scale, mean, rstd, dx = Gradient(x), dweight = Gradient(weight),
       dbias = Gradient(bias)](const Tensor& dy) {
        const Tensor gradient = kernels::channels_last(dy);
        const Tensor x_part = dx.wanted() ? kernels::empty_channels_last(input.shape(), dy.dtype()) : Tensor();
        Tensor weight_part = dweight.wanted() ? Tensor::empty({norm.channels}) : Tensor();
        Tensor bias_part = dbias.wanted() ? Tensor::empty({norm.channels}) : Tensor();
        kernels::group_norm_backward(norm, input.raw(), values_or_null(scale), mean.data<float>(), rstd.data<float>(),
                                     gradient.raw(), x_part.defined() ? x_part.raw() : nullptr,
                                     weight_part.defined() ? weight_part.data<float>() : nullptr,
                                     bias_part.defined() ? bias_part.data<float>() : nullptr);
        dx.add(x_part);
        dweight.add(std::move(weight_part));
        dbias.add(std::move(bias_part));
      });
}

}  // namespace vitrail::ops
