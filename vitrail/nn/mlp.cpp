#include "vitrail/nn/mlp.h"

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

std::optional<Norm> hidden_norm(const Scope& scope, std::int64_t width, const MlpConfig& config) {
  check(!config.norm || config.along == Along::features, "{}: mixed tokens cannot be normed", scope.path());
  return config.norm ? std::optional<Norm>(std::in_place, scope / config.names.norm, width, *config.norm)
                     : std::nullopt;
}

std::int64_t output_width(const MlpConfig& config) { return config.out > 0 ? config.out : config.dim; }

// drop2(fc2(norm(drop1(hidden)))) + residual: the common end of the three networks.
template <class Layer>
Tensor finish(const Layer& mlp, Tensor hidden, Pass& pass, const Tensor& residual) {
  hidden = mlp.drop1(hidden, pass);
  if (mlp.norm) {
    hidden = (*mlp.norm)(hidden);
  }
  if (!residual.defined()) {
    return mlp.drop2(mlp.fc2(hidden), pass);
  }
  if (mlp.drop2.active(pass)) {
    return residual + mlp.drop2(mlp.fc2(hidden), pass);
  }
  return mlp.fc2(hidden, ops::Activation::identity, residual);
}

std::int64_t norm_flops(const std::optional<Norm>& norm, std::int64_t rows) { return norm ? norm->flops(rows) : 0; }

std::variant<Mlp, GluMlp, SwiGlu> make_mlp(const Scope& scope, MlpKind kind, const MlpConfig& config) {
  switch (kind) {
    case MlpKind::mlp:
      return Mlp(scope, config);
    case MlpKind::glu:
      return GluMlp(scope, config);
    case MlpKind::swiglu:
      return SwiGlu(scope, config);
  }
  fail("no such feed-forward layer: {}", static_cast<int>(kind));
}

}  // namespace

Mlp::Mlp(const Scope& scope, const MlpConfig& config)
    : activation(config.activation),
      fc1(scope / config.names.fc1, config.dim, config.hidden, config.fc1_bias, config.along, config.layout),
      drop1{config.drop1},
      norm(hidden_norm(scope, config.hidden, config)),
      fc2(scope / config.names.fc2, config.hidden, output_width(config), config.fc2_bias, config.along, config.layout),
      drop2{config.drop2} {}

Tensor Mlp::operator()(const Tensor& x, Pass& pass, const Tensor& residual) const {
  return finish(*this, fc1(x, activation), pass, residual);
}

std::int64_t Mlp::flops(std::int64_t rows) const { return fc1.flops(rows) + norm_flops(norm, rows) + fc2.flops(rows); }

GluMlp::GluMlp(const Scope& scope, const MlpConfig& config)
    : activation(config.activation),
      gate_last(config.gate_last),
      fc1(scope / config.names.fc1, config.dim, config.hidden, config.fc1_bias, config.along, config.layout),
      drop1{config.drop1},
      norm(hidden_norm(scope, config.hidden / 2, config)),
      fc2(scope / config.names.fc2, config.hidden / 2, output_width(config), config.fc2_bias, config.along,
          config.layout),
      drop2{config.drop2} {
  check(config.hidden % 2 == 0, "{}: a gated layer needs an even hidden width, not {}", scope.path(), config.hidden);
}

Tensor GluMlp::operator()(const Tensor& x, Pass& pass, const Tensor& residual) const {
  const Tensor both = fc1(x);
  const int dim = fc1.along == Along::tokens ? -2 : -1;
  const std::int64_t half = both.size(dim) / 2;
  const Tensor a = ops::narrow(both, dim, 0, half);
  const Tensor b = ops::narrow(both, dim, half, half);
  return finish(*this, gate_last ? a * ops::activate(b, activation) : ops::activate(a, activation) * b, pass, residual);
}

std::int64_t GluMlp::flops(std::int64_t rows) const {
  return fc1.flops(rows) + norm_flops(norm, rows) + fc2.flops(rows);
}

SwiGlu::SwiGlu(const Scope& scope, const MlpConfig& config)
    : activation(config.activation),
      fc1_g(scope / config.names.fc1_g, config.dim, config.hidden, config.fc1_bias, Along::features, config.layout),
      fc1_x(scope / config.names.fc1_x, config.dim, config.hidden, config.fc1_bias, Along::features, config.layout),
      drop1{config.drop1},
      norm(hidden_norm(scope, config.hidden, config)),
      fc2(scope / config.names.fc2, config.hidden, output_width(config), config.fc2_bias, Along::features,
          config.layout),
      drop2{config.drop2} {}

Tensor SwiGlu::operator()(const Tensor& x, Pass& pass, const Tensor& residual) const {
  return finish(*this, fc1_g(x, activation) * fc1_x(x), pass, residual);
}

std::int64_t SwiGlu::flops(std::int64_t rows) const {
  return fc1_g.flops(rows) + fc1_x.flops(rows) + norm_flops(norm, rows) + fc2.flops(rows);
}

FeedForward::FeedForward(const Scope& scope, MlpKind kind, const MlpConfig& config)
    : mlp_(make_mlp(scope, kind, config)) {}

}  // namespace vitrail::nn
