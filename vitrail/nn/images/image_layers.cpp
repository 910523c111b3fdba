#include "vitrail/nn/images/image_layers.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

// Both are views of the same memory: [B, C, H, W] as [B, H, W, C], and back.

Tensor to_pixels(const Tensor& x) { return ops::permute(x, {0, 2, 3, 1}); }
Tensor to_image(const Tensor& x) { return ops::permute(x, {0, 3, 1, 2}); }

}  // namespace

Tensor activate_image(const Tensor& x, ops::Activation activation, const Tensor& residual) {
  if (activation == ops::Activation::identity && !residual.defined()) {
    return x;
  }
  const Tensor sum = residual.defined() ? to_pixels(x) + to_pixels(residual) : to_pixels(x);
  return to_image(ops::activate(sum, activation));
}

Tensor pad_image(const Tensor& x, const Size2& before, const Size2& after, float value) {
  Tensor y = to_pixels(x);
  for (const int i : {0, 1}) {
    const auto at = static_cast<std::size_t>(i);
    y = before[at] == 0 && after[at] == 0 ? y : ops::pad(y, 1 + i, before[at], after[at], value);
  }
  return to_image(y);
}

Tensor pad_same(const Tensor& x, std::int64_t kernel, std::int64_t stride, float value) {
  Size2 before{};
  Size2 after{};
  for (const int i : {0, 1}) {
    const std::int64_t size = x.size(2 + i);
    const std::int64_t total = std::max<std::int64_t>(((size + stride - 1) / stride - 1) * stride + kernel - size, 0);
    before[static_cast<std::size_t>(i)] = total / 2;
    after[static_cast<std::size_t>(i)] = total - total / 2;
  }
  return pad_image(x, before, after, value);
}

Tensor drop_path_image(const Tensor& x, const DropPath& drop, Pass& pass) {
  return drop.active(pass) ? to_image(drop(to_pixels(x), pass)) : x;
}

Tensor pool_image(const Tensor& x, Pool pool) {
  if (pool == Pool::none) {
    return x;
  }
  const Tensor pixels = to_pixels(x);
  return pool_tokens(ops::reshape(pixels, {x.size(0), x.size(2) * x.size(3), x.size(1)}), pool, 0);
}

std::int64_t pool_flops(std::int64_t channels, const Size2& size, Pool pool) {
  return pool == Pool::avg || pool == Pool::avgmax ? channels * size[0] * size[1] : 0;
}

Norm2d::Norm2d(const Scope& scope, std::int64_t channels, Norm2dKind kind)
    : norm_(kind == Norm2dKind::batch ? std::variant<BatchNorm2d, GroupNorm>(BatchNorm2d(scope, channels))
                                      : std::variant<BatchNorm2d, GroupNorm>(GroupNorm(scope, channels))) {}

Tensor Norm2d::operator()(const Tensor& x, const Pass& pass, ops::Activation activation) const {
  const auto* const batch = std::get_if<BatchNorm2d>(&norm_);
  return batch != nullptr ? (*batch)(x, pass, activation) : activate_image(std::get<GroupNorm>(norm_)(x), activation);
}

// The norm folded into the convolution: y = s conv(x) + (bias - s mean) with s = weight / √(var + eps) is one
// convolution with another weight and a bias.
struct ConvNorm::Folded {
  std::mutex mutex;
  std::array<std::uint64_t, 5> versions{};  // of the tensors that it was made from
  Tensor weight;
  Tensor bias;

  std::pair<Tensor, Tensor> of(const Conv2d& conv, const BatchNorm2d& norm) {
    const auto version = [](const Tensor& tensor) { return tensor.storage().version(); };
    const std::array<std::uint64_t, 5> now = {version(conv.weight), version(norm.weight), version(norm.bias),
                                              version(norm.running_mean), version(norm.running_var)};
    const std::lock_guard lock(mutex);
    if (!weight.defined() || versions != now) {
      const Tensor scale = norm.weight.detach() * ops::rsqrt(norm.running_var.detach() + norm.eps);
      weight = conv.weight.detach() * scale.reshape({scale.size(0), 1, 1, 1});
      bias = norm.bias.detach() - norm.running_mean.detach() * scale;
      versions = now;
    }
    return {weight, bias};
  }
};

ConvNorm::ConvNorm(const Scope& conv_scope, const Scope& norm_scope, std::int64_t in, std::int64_t out,
                   const Size2& kernel, const ops::ConvOptions& options)
    : conv(conv_scope, in, out, kernel, options, false), norm(norm_scope, out), folded_(std::make_shared<Folded>()) {}

Tensor ConvNorm::operator()(const Tensor& x, const Pass& pass, ops::Activation activation, Tensor residual) const {
  if (pass.training || autograd::recording({&x, &residual, &conv.weight, &norm.weight, &norm.bias})) {
    return norm(conv(x), pass, activation, residual);
  }
  const auto [weight, bias] = folded_->of(conv, norm);
  return ops::conv2d_activated(x, weight, bias, conv.options, activation, std::move(residual));
}

std::int64_t ConvNorm::flops(Size2& size) const {
  size = conv.output_size(size);
  return conv.flops(size[0], size[1]) + norm.flops(size);
}

SqueezeExcite::SqueezeExcite(const Scope& scope, std::int64_t channels, std::int64_t hidden)
    : fc1(scope / "fc1", channels, hidden, {1, 1}), fc2(scope / "fc2", hidden, channels, {1, 1}) {}

Tensor SqueezeExcite::operator()(const Tensor& x) const {
  const Tensor pixels = to_pixels(x);
  const Tensor squeezed = to_image(ops::mean(pixels, {1, 2}, true));  // [B, C, 1, 1]
  const Tensor gate = ops::sigmoid(fc2(ops::relu(fc1(squeezed))));
  return to_image(pixels * to_pixels(gate));
}

}  // namespace vitrail::nn
