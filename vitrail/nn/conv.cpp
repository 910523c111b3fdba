#include "vitrail/nn/conv.h"

#include "vitrail/ops/norm.h"

namespace vitrail::nn {

Conv2d::Conv2d(const Scope& scope, std::int64_t in, std::int64_t out, std::array<std::int64_t, 2> kernel,
               const ops::ConvOptions& conv_options, bool with_bias)
    : options(conv_options) {
  check(in % options.groups == 0 && out % options.groups == 0,
        "{}: {} inputs and {} outputs cannot be divided into {} groups", scope.path(), in, out, options.groups);
  const Shape shape = {out, in / options.groups, kernel[0], kernel[1]};
  weight = scope.parameter("weight", shape, Init::kaiming_uniform(shape));
  if (with_bias) {
    bias = scope.parameter("bias", {out}, Init::kaiming_uniform(shape));
  }
}

Tensor Conv2d::operator()(const Tensor& x) const { return ops::conv2d(x, weight, bias, options); }

Size2 Conv2d::output_size(const Size2& size) const {
  Size2 result{};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t reach = options.dilation[i] * (weight.size(2 + static_cast<int>(i)) - 1) + 1;
    const std::int64_t room = size[i] + 2 * options.padding[i] - reach;
    check(room >= 0, "a kernel that reaches over {} pixels finds only {}", reach, size[i] + 2 * options.padding[i]);
    result[i] = room / options.stride[i] + 1;
  }
  return result;
}

BatchNorm2d::BatchNorm2d(const Scope& scope, std::int64_t channels, float norm_eps, float norm_momentum)
    : eps(norm_eps),
      momentum(norm_momentum),
      weight(scope.parameter("weight", {channels}, Init::ones())),
      bias(scope.parameter("bias", {channels}, Init::zeros())),
      running_mean(scope.buffer("running_mean", {channels}, Init::zeros())),
      running_var(scope.buffer("running_var", {channels}, Init::ones())),
      num_batches_tracked(scope.buffer("num_batches_tracked", {}, Init::zeros(), DType::i64)) {}

Tensor BatchNorm2d::operator()(const Tensor& x, const Pass& pass) const {
  if (pass.training && !pass.again) {
    ++*num_batches_tracked.data<std::int64_t>();
  }
  return ops::batch_norm(x, weight, bias, running_mean, running_var, pass.training, pass.again ? 0.0F : momentum, eps);
}

}  // namespace vitrail::nn
