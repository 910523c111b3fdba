#include "vitrail/nn/projection.h"

#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/norm.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/ops/products/linear.h"

namespace vitrail::nn {

BatchNorm1d::BatchNorm1d(const Scope& scope, std::int64_t features, bool plain, float norm_eps, float norm_momentum)
    : eps(norm_eps),
      momentum(norm_momentum),
      weight(plain ? Tensor() : scope.parameter("weight", {features}, Init::ones())),
      bias(plain ? Tensor() : scope.parameter("bias", {features}, Init::zeros())),
      running_mean(scope.buffer("running_mean", {features}, Init::zeros())),
      running_var(scope.buffer("running_var", {features}, Init::ones())),
      num_batches_tracked(scope.buffer("num_batches_tracked", {}, Init::zeros(), DType::i64)) {}

Tensor BatchNorm1d::operator()(const Tensor& x, const Pass& pass, bool relu) const {
  if (pass.training) {
    ++*num_batches_tracked.data<std::int64_t>();
  }
  return ops::batch_norm(x, weight, bias, running_mean, running_var, pass.training, momentum, eps,
                         relu ? ops::Activation::relu : ops::Activation::identity, {}, pass.batch_sum);
}

Projector::Projector(const Scope& scope, const ProjectorConfig& config) {
  check(config.layers >= 1, "a projector has at least one layer, not {}", config.layers);
  std::int64_t place = 0;  // in the Sequential
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const bool last = layer == config.layers - 1;
    const std::int64_t out = last ? config.out : config.hidden;
    linear_.emplace_back(scope / place, layer == 0 ? config.in : config.hidden, out, false);
    if (!last || config.last_norm != LastNorm::none) {
      norms_.emplace_back(scope / (place + 1), out, last && config.last_norm == LastNorm::plain);
    }
    place += 3;  // behind the ReLU
  }
}

Tensor Projector::operator()(const Tensor& x, const Pass& pass) const {
  Tensor y = ops::cast(x, pass.dtype);
  for (std::size_t layer = 0; layer < linear_.size(); ++layer) {
    y = linear_[layer](y);
    if (layer < norms_.size()) {
      y = norms_[layer](y, pass, layer + 1 < linear_.size());
    }
  }
  return ops::cast(y, DType::f32);
}

DinoHead::DinoHead(const Scope& scope, const DinoHeadConfig& config) {
  check(config.nlayers >= 1, "a head has at least one layer, not {}", config.nlayers);
  const Scope mlp = (scope / "mlp").with_init([](std::string_view name, const Shape& shape, const Init& own) {
    return shape.rank() == 2 ? Init::trunc_normal(0.02F) : name.ends_with("bias") ? Init::zeros() : own;
  });
  std::int64_t place = 0;
  for (std::int64_t layer = 0; layer < config.nlayers; ++layer) {
    const bool last = layer == config.nlayers - 1;
    const std::int64_t out = last ? config.bottleneck_dim : config.hidden_dim;
    const Scope here = config.nlayers == 1 ? mlp : mlp / place;  // the reference has no Sequential of one layer
    mlp_.emplace_back(here, layer == 0 ? config.in_dim : config.hidden_dim, out);
    ++place;
    if (!last && config.use_bn) {
      norms_.emplace_back(mlp / place, out);
      ++place;
    }
    ++place;  // the GELU
  }
  const Scope last_layer = scope / "last_layer";
  weight_g_ = last_layer.parameter("weight_g", {config.out_dim, 1}, Init::ones());
  const Shape shape = {config.out_dim, config.bottleneck_dim};
  weight_v_ = last_layer.parameter("weight_v", shape, Init::kaiming_uniform(shape));
}

Tensor DinoHead::operator()(const Tensor& x, const Pass& pass, bool frozen_last_layer) const {
  Tensor y = ops::cast(x, pass.dtype);
  for (std::size_t layer = 0; layer < mlp_.size(); ++layer) {
    const bool hidden = layer + 1 < mlp_.size();
    const bool fused = hidden && norms_.empty();
    y = mlp_[layer](y, fused ? ops::Activation::gelu : ops::Activation::identity);
    if (hidden && !fused) {
      y = ops::gelu(norms_[layer](y, pass));
    }
  }
  y = ops::cast(ops::normalize(ops::cast(y, DType::f32)), pass.dtype);
  const Tensor g = frozen_last_layer ? weight_g_.detach() : weight_g_;
  const Tensor v = frozen_last_layer ? weight_v_.detach() : weight_v_;
  return ops::cast(ops::linear(y, ops::normalize(v) * g), DType::f32);
}

}  // namespace vitrail::nn
