#include "vitrail/ops/math/scale.h"

#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/scale.h"

namespace vitrail::ops {

using autograd::Gradient;

Tensor scale(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& residual) {
  check(x.rank() >= 1 && is_floating(x.dtype()), "scale: x must be [..., D], f32 or bf16, not {} {}", x.shape(),
        name_of(x.dtype()));
  const std::int64_t width = x.size(-1);
  for (const Tensor& parameter : {weight, bias}) {
    check(!parameter.defined() || (parameter.shape() == Shape{width} && parameter.dtype() == DType::f32),
          "scale: weight and bias must be [{}] f32, not {} {}", width, parameter.shape(), name_of(parameter.dtype()));
  }
  check(weight.defined(), "scale: there must be a weight");
  check(!residual.defined() || (residual.shape() == x.shape() && residual.dtype() == x.dtype()),
        "scale: the residual must be {} {}, not {} {}", x.shape(), name_of(x.dtype()), residual.shape(),
        name_of(residual.dtype()));
  const auto floats = [](const Tensor& t) { return t.defined() ? t.data<float>() : nullptr; };
  const auto raw = [](const Tensor& t) { return t.defined() ? t.raw() : nullptr; };
  const auto dense = [](const Tensor& t) { return t.defined() ? t.detach().contiguous() : Tensor(); };
  const Tensor in = dense(x);
  const Tensor factor = dense(weight);
  const Tensor shift = dense(bias);
  const Tensor added = dense(residual);
  const std::int64_t rows = width == 0 ? 0 : x.numel() / width;
  Tensor y = Tensor::empty_like(in);
  kernels::scale_forward(rows, width, x.dtype(), in.raw(), floats(factor), floats(shift), raw(added), y.raw());
  return autograd::record(
      "scale", y, {&x, &weight, &bias, &residual},
      [saved = autograd::requires_grad(weight) ? autograd::SavedTensor(x) : autograd::SavedTensor(), factor, rows,
       width, dx = Gradient(x), dweight = Gradient(weight), dbias = Gradient(bias),
       dresidual = Gradient(residual)](const Tensor& dy_any) {
        const Tensor dy = dy_any.contiguous();
        Tensor x_part = dx.wanted() ? Tensor::empty_like(dy) : Tensor();
        Tensor weight_part = dweight.wanted() ? Tensor::empty({width}) : Tensor();
        Tensor bias_part = dbias.wanted() ? Tensor::empty({width}) : Tensor();
        const Tensor again = dweight.wanted() ? saved.get().contiguous() : Tensor();
        const auto floats_of = [](const Tensor& t) { return t.defined() ? t.data<float>() : nullptr; };
        kernels::scale_backward(rows, width, dy.dtype(), again.defined() ? again.raw() : nullptr, floats_of(factor),
                                dy.raw(), x_part.defined() ? x_part.raw() : nullptr, floats_of(weight_part),
                                floats_of(bias_part));
        dx.add(std::move(x_part));
        dweight.add(std::move(weight_part));
        dbias.add(std::move(bias_part));
        dresidual.add(dy);
      });
}

}  // namespace vitrail::ops
