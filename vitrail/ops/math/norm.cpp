#include "vitrail/ops/math/norm.h"

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/norm.h"
#include "vitrail/ops/math/dense.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

void check_parameter(const char* op, const char* what, const Tensor& parameter, std::int64_t width) {
  if (parameter.defined()) {
    check(parameter.dtype() == DType::f32 && parameter.shape() == Shape{width}, "{}: {} must be [{}] f32, not {} {}",
          op, what, width, parameter.shape(), name_of(parameter.dtype()));
  }
}

float* data_or_null(const Tensor& tensor) { return tensor.defined() ? tensor.data<float>() : nullptr; }
Tensor room_if(bool wanted, const Shape& shape) { return wanted ? Tensor::empty(shape) : Tensor(); }

// Layer norm (centered) and RMS norm. The formulas of forward and backward are with the kernels.
Tensor row_norm(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps, bool centered) {
  check(is_floating(x.dtype()), "{}: x must be f32 or bf16, not {}", op, name_of(x.dtype()));
  check(x.rank() >= 1 && x.size(-1) > 0, "{}: x must have a last dimension to normalize over, not {}", op, x.shape());
  const std::int64_t width = x.size(-1);
  check_parameter(op, "the weight", weight, width);
  check_parameter(op, "the bias", bias, width);
  const kernels::RowNorm norm{x.numel() / width, width, x.dtype(), centered};
  const Tensor dense = dense_or_undefined(x);
  const Tensor scale = dense_or_undefined(weight);
  const Tensor shift = dense_or_undefined(bias);
  const bool recording = autograd::recording({&x, &weight, &bias});
  const Tensor mean = room_if(recording && centered, {norm.rows});
  const Tensor rstd = room_if(recording, {norm.rows});
  const Tensor y = Tensor::empty_like(dense);
  kernels::norm_forward(norm, dense.raw(), data_or_null(scale), data_or_null(shift), eps, y.raw(), data_or_null(mean),
                        data_or_null(rstd));
  const Tensor result = autograd::record(
      op, y, {&x, &weight, &bias},
      [norm, dense, scale, mean, rstd, dx = Gradient(x), dweight = Gradient(weight),
       dbias = Gradient(bias)](const Tensor& dy) {
        const Tensor weight_part = room_if(dweight.wanted(), {norm.width});
        const Tensor bias_part = room_if(dbias.wanted(), {norm.width});
        const auto backward = [&](const Tensor& to, const Tensor& sum) {
          const auto raw = [](const Tensor& t) { return t.defined() ? t.raw() : nullptr; };
          kernels::norm_backward(norm, dense.raw(), data_or_null(scale), data_or_null(mean), data_or_null(rstd),
                                 dy.raw(), raw(sum), raw(to), data_or_null(weight_part), data_or_null(bias_part));
        };
        dx.wanted() ? dx.accumulate(norm.dtype, {}, backward) : backward({}, {});
        dweight.add(weight_part);
        dbias.add(bias_part);
      });
  autograd::set_rebuild(result, [norm, dense, scale, shift, eps] {
    const Tensor again = Tensor::empty_like(dense);
    kernels::norm_forward(norm, dense.raw(), data_or_null(scale), data_or_null(shift), eps, again.raw(), nullptr,
                          nullptr);
    return again;
  });
  return result;
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps) {
  return row_norm("layer_norm", x, weight, bias, eps, true);
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, float eps) {
  return row_norm("rms_norm", x, weight, {}, eps, false);
}

}  // namespace vitrail::ops
