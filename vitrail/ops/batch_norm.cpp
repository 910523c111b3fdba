#include "vitrail/kernels/batch_norm.h"

#include <algorithm>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/layout.h"
#include "vitrail/ops/norm.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

void check_operands(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                    const Tensor& running_variance, bool training) {
  check(is_floating(x.dtype()), "batch_norm: x must be f32 or bf16, not {}", name_of(x.dtype()));
  check(x.rank() == 2 || x.rank() == 4, "batch_norm: x must be [B, C, H, W] or [B, C], not {}", x.shape());
  const std::int64_t channels = x.size(1);
  const auto check_vector = [&](const char* name, const Tensor& vector) {
    check(!vector.defined() || (vector.shape() == Shape{channels} && vector.dtype() == DType::f32),
          "batch_norm: the {} must be [{}] f32, not {} {}", name, channels, vector.shape(), name_of(vector.dtype()));
  };
  check_vector("weight", weight);
  check_vector("bias", bias);
  check_vector("running mean", running_mean);
  check_vector("running variance", running_variance);
  check(training || (running_mean.defined() && running_variance.defined()),
        "batch_norm: without training it needs the running statistics");
  check(!training || channels == 0 || x.numel() / channels > 1,
        "batch_norm: training needs more than one value a channel, but x is {}", x.shape());
}

// [2, C]: the factors and the offsets.
Tensor scale_shift_of(const Tensor& weight, const Tensor& bias, std::int64_t channels) {
  const Tensor both = Tensor::empty({2, channels});
  weight.defined() ? both.select(0, 0).copy_from(weight) : both.select(0, 0).fill(1);
  bias.defined() ? both.select(0, 1).copy_from(bias) : both.select(0, 1).fill(0);
  return both;
}

// running = (1 - momentum) running + momentum · factor · batch
void update(const Tensor& running, const Tensor& batch, float momentum, float factor) {
  if (!running.defined()) {
    return;
  }
  const std::span<float> values = running.span<float>();
  std::ranges::transform(values, batch.span<float>(), values.begin(),
                         [&](float old, float now) { return (1 - momentum) * old + momentum * factor * now; });
  running.touch();
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_variance, bool training, float momentum, float eps) {
  check_operands(x, weight, bias, running_mean, running_variance, training);
  if (x.numel() == 0) {
    return autograd::record("batch_norm", Tensor::empty_like(x), {&x},
                            [dx = Gradient(x)](const Tensor& dy) { dx.add(dy); });
  }
  const std::int64_t channels = x.size(1);
  const Tensor picture = x.rank() == 4 ? x : x.detach().reshape({x.size(0), channels, 1, 1});
  const Tensor input = kernels::channels_last(picture);
  const Tensor scale_shift = scale_shift_of(weight, bias, channels);
  const Tensor mean = training ? Tensor::empty({channels}) : running_mean.clone();
  const Tensor variance = training ? Tensor::empty({channels}) : running_variance.clone();
  const Tensor y = kernels::empty_channels_last(picture.shape(), x.dtype());
  kernels::batch_norm(input, scale_shift, mean, variance, training, eps, y);
  if (training) {
    const std::int64_t values = x.numel() / channels;
    const float unbiased = static_cast<float>(values) / static_cast<float>(values - 1);
    update(running_mean, mean, momentum, 1);
    update(running_variance, variance, momentum, unbiased);
  }
  return autograd::record("batch_norm", y.reshape(x.shape()), {&x, &weight, &bias},
                          [input, scale_shift, mean, variance, training, eps, dx = Gradient(x),
                           dweight = Gradient(weight), dbias = Gradient(bias)](const Tensor& dy) {
                            const Tensor contribution = kernels::empty_channels_last(input.shape(), dy.dtype());
                            const Tensor dscale_shift = Tensor::empty(scale_shift.shape());
                            kernels::batch_norm_gradient(input, scale_shift, mean, variance, training, eps,
                                                         kernels::channels_last(dy.reshape(input.shape())),
                                                         contribution, dscale_shift);
                            dx.add(contribution.reshape(dx.shape()));
                            dweight.add(dscale_shift.select(0, 0));
                            dbias.add(dscale_shift.select(0, 1));
                          });
}

}  // namespace vitrail::ops
