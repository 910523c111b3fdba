#include "vitrail/kernels/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/layout.h"
#include "vitrail/ops/math/norm.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

void check_operands(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                    const Tensor& running_variance, bool training, bool whole_batch) {
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
  check(!training || !whole_batch || channels == 0 || x.numel() / channels > 1,
        "batch_norm: training needs more than one value a channel, but x is {}: a batch of more than one sample",
        x.shape());
}

// A parameter [C], or C times `value` if it is undefined.
Tensor vector_or(const Tensor& parameter, std::int64_t channels, float value) {
  return parameter.defined() ? parameter.detach().contiguous() : Tensor::full({channels}, value);
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

// Makes the mean and the biased variance of n values a channel those of all processes' values, and returns how many
// these are.
std::int64_t join_statistics(const kernels::BatchSum& batch, std::int64_t n, const Tensor& mean,
                             const Tensor& variance) {
  const std::span<float> means = mean.span<float>();
  const std::span<float> variances = variance.span<float>();
  std::vector<double> sums = {static_cast<double>(n)};  // n, and for each channel those of values and squares
  for (std::size_t c = 0; c < means.size(); ++c) {
    const auto m = static_cast<double>(means[c]);
    sums.push_back(sums[0] * m);
    sums.push_back(sums[0] * (static_cast<double>(variances[c]) + m * m));
  }
  batch(sums);
  for (std::size_t c = 0; c < means.size(); ++c) {
    const double m = sums[1 + 2 * c] / sums[0];
    means[c] = static_cast<float>(m);
    variances[c] = static_cast<float>(std::max(0.0, sums[2 + 2 * c] / sums[0] - m * m));
  }
  return static_cast<std::int64_t>(sums[0]);
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_variance, bool training, float momentum, float eps, Activation activation,
                  const Tensor& residual, const kernels::BatchSum* batch) {
  check_operands(x, weight, bias, running_mean, running_variance, training, batch == nullptr);
  check(activation == Activation::identity || activation == Activation::relu,
        "batch_norm: of the activations, only ReLU is applied at once");
  check(!residual.defined() || (residual.shape() == x.shape() && residual.dtype() == x.dtype()),
        "batch_norm: the residual must be {} {}, not {} {}", x.shape(), name_of(x.dtype()), residual.shape(),
        name_of(residual.dtype()));
  if (x.numel() == 0) {
    return autograd::record("batch_norm", Tensor::empty_like(x), {&x, &residual},
                            [dx = Gradient(x), dresidual = Gradient(residual)](const Tensor& dy) {
                              dx.add(dy);
                              dresidual.add(dy);
                            });
  }
  const std::int64_t channels = x.size(1);
  const auto image = [images = x.size(0), channels, flat = x.rank() == 2](const Tensor& tensor) {
    return kernels::channels_last(flat ? tensor.detach().reshape({images, channels, 1, 1}) : tensor);
  };
  const Tensor input = image(x);
  const Tensor mean = training ? Tensor::empty({channels}) : running_mean.clone();
  const Tensor variance = training ? Tensor::empty({channels}) : running_variance;
  if (training) {
    kernels::batch_statistics(input, mean, variance);
    const std::int64_t own = x.numel() / channels;
    const std::int64_t values = batch == nullptr ? own : join_statistics(*batch, own, mean, variance);
    check(values > 1, "batch_norm: training needs more than one value a channel");
    const float unbiased = static_cast<float>(values) / static_cast<float>(values - 1);
    update(running_mean, mean, momentum, 1);
    update(running_variance, variance, momentum, unbiased);
  }
  const Tensor rstd = Tensor::empty({channels});
  std::ranges::transform(variance.span<float>(), rstd.span<float>().begin(),
                         [eps](float value) { return 1 / std::sqrt(value + eps); });
  const kernels::BatchNorm norm{mean, rstd, vector_or(weight, channels, 1), vector_or(bias, channels, 0),
                                activation == Activation::relu};
  const Tensor y = kernels::empty_channels_last(input.shape(), x.dtype());
  kernels::batch_norm(norm, input, residual.defined() ? image(residual) : Tensor(), y);
  // Backward then needs y to know where the ReLU's input was positive.
  const bool closes_sum = norm.relu && residual.defined();
  return autograd::record(
      "batch_norm", y.reshape(x.shape()), {&x, &weight, &bias, &residual},
      [norm, input, training, batch, image, closes_sum, output = closes_sum ? y : Tensor(), dx = Gradient(x),
       dweight = Gradient(weight), dbias = Gradient(bias), dresidual = Gradient(residual)](const Tensor& dy) {
        const bool held = dy.is_shared();
        const Tensor gradient = image(dy);
        // The gradients take the memory of `gradient` if it is not shared: each element depends on the same element of
        // it and on sums.
        const bool in_place = !held || gradient.raw() != dy.raw();
        const auto room = [&] { return kernels::empty_channels_last(input.shape(), dy.dtype()); };
        const Tensor dsum = !closes_sum ? Tensor() : (in_place ? gradient : room());
        const Tensor free = dresidual.wanted() ? Tensor() : (closes_sum ? dsum : (in_place ? gradient : Tensor()));
        const Tensor contribution = !dx.wanted() ? Tensor() : (free.defined() ? free : room());
        Tensor dscale = dweight.wanted() ? Tensor::empty(dweight.shape()) : Tensor();
        Tensor dshift = dbias.wanted() ? Tensor::empty(dbias.shape()) : Tensor();
        kernels::batch_norm_gradient(norm, input, output, gradient, training, dsum, contribution, dscale, dshift,
                                     batch);
        if (dresidual.wanted()) {
          dresidual.add(closes_sum ? dsum.reshape(dresidual.shape()) : dy);
        }
        if (dx.wanted()) {
          dx.add(contribution.reshape(dx.shape()));
        }
        dweight.add(std::move(dscale));
        dbias.add(std::move(dshift));
      });
}

}  // namespace vitrail::ops
