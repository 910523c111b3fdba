#include "vitrail/nn/images/conv.h"

#include "vitrail/autograd/tape.h"
#include "vitrail/nn/images/image_layers.h"
#include "vitrail/ops/math/norm.h"
#include "vitrail/ops/shape/shape.h"

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

Tensor BatchNorm2d::operator()(const Tensor& x, const Pass& pass, ops::Activation activation,
                               const Tensor& residual) const {
  const bool training = pass.training && autograd::requires_grad(weight);
  if (training && !pass.again) {
    ++*num_batches_tracked.data<std::int64_t>();
  }
  const bool at_once = activation == ops::Activation::identity || activation == ops::Activation::relu;
  const Tensor y = ops::batch_norm(x, weight, bias, running_mean, running_var, training, pass.again ? 0.0F : momentum,
                                   eps, at_once ? activation : ops::Activation::identity, residual, pass.batch_sum);
  return at_once ? y : activate_image(y, activation);
}

namespace {

// The options for a square kernel. Padding that depends on the input's size is left to StyledConv2d.
ops::ConvOptions styled_options(std::int64_t kernel, std::int64_t stride, const ConvStyle& style) {
  const std::int64_t padding = style.same_padding && stride > 1 ? 0 : (stride - 1 + kernel - 1) / 2;
  return {.stride = {stride, stride}, .padding = {padding, padding}};
}

bool pads_by_size(const StyledConv2d& layer) { return layer.style.same_padding && layer.conv.options.stride[0] > 1; }

}  // namespace

StyledConv2d::StyledConv2d(const Scope& scope, std::int64_t in, std::int64_t out, std::int64_t kernel,
                           std::int64_t stride, const ConvStyle& conv_style)
    : style(conv_style), conv(scope, in, out, {kernel, kernel}, styled_options(kernel, stride, conv_style), false) {}

Tensor StyledConv2d::operator()(const Tensor& x) const {
  Tensor weight = conv.weight;
  if (style.standardize) {
    const Tensor rows = ops::reshape(weight, {weight.size(0), weight.numel() / weight.size(0)});
    weight = ops::reshape(ops::layer_norm(rows, {}, {}, *style.standardize), weight.shape());
  }
  const Tensor input = pads_by_size(*this) ? pad_same(x, conv.weight.size(2), conv.options.stride[0]) : x;
  return ops::conv2d(input, weight, {}, conv.options);
}

Size2 StyledConv2d::output_size(const Size2& size) const {
  const std::int64_t stride = conv.options.stride[0];
  return pads_by_size(*this) ? Size2{(size[0] + stride - 1) / stride, (size[1] + stride - 1) / stride}
                             : conv.output_size(size);
}

std::int64_t StyledConv2d::flops(Size2& size) const {
  size = output_size(size);
  return conv.flops(size[0], size[1]) + (style.standardize ? 4 * conv.weight.numel() : 0);
}

GroupNorm::GroupNorm(const Scope& scope, std::int64_t channels, std::int64_t norm_groups, float norm_eps)
    : groups(norm_groups), eps(norm_eps) {
  check(groups > 0 && channels % groups == 0, "{}: {} channels cannot be divided into {} groups", scope.path(),
        channels, groups);
  weight = scope.parameter("weight", {channels}, Init::ones());
  bias = scope.parameter("bias", {channels}, Init::zeros());
}

Tensor GroupNorm::operator()(const Tensor& x) const { return ops::group_norm(x, groups, weight, bias, eps); }

}  // namespace vitrail::nn
