#include "vitrail/nn/images/image_attention.h"

#include <array>
#include <cmath>
#include <utility>

#include "vitrail/nn/images/image_layers.h"
#include "vitrail/ops/attention/attention.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

using Kind = NonLocal::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 4> kinds = {{{"embedded_gaussian", Kind::embedded_gaussian},
                                                                     {"gaussian", Kind::gaussian},
                                                                     {"dot_product", Kind::dot_product},
                                                                     {"concatenation", Kind::concatenation}}};

bool embeds(Kind kind) { return kind != Kind::gaussian; }

std::optional<Conv2d> pointwise_if(bool wanted, const Scope& scope, std::int64_t in, std::int64_t out) {
  return wanted ? std::optional<Conv2d>(std::in_place, scope, in, out, Size2{1, 1}) : std::nullopt;
}

// From [B, C, H, W] to [B, N, C], which is a view of channels-last memory, and back.

Tensor to_tokens(const Tensor& x) {
  return ops::reshape(ops::permute(x, {0, 2, 3, 1}), {x.size(0), x.size(2) * x.size(3), x.size(1)});
}
Tensor to_image(const Tensor& tokens, std::int64_t height, std::int64_t width) {
  return ops::permute(ops::reshape(tokens, {tokens.size(0), height, width, tokens.size(2)}), {0, 3, 1, 2});
}

// softmax(scale q kᵀ) v for q, k and v [B, N, …]. Records the weights if the pass asks for them.
Tensor attend(const Pass& pass, const std::string& name, const Size2& size, const Tensor& q, const Tensor& k,
              const Tensor& v, float scale) {
  const ops::AttentionOptions options{.scale = scale};
  const Tensor queries = ops::unsqueeze(q, 1);
  const Tensor keys = ops::unsqueeze(k, 1);
  if (pass.wants_attention()) {
    record_pixels(pass, name, ops::attention_probabilities(queries, keys, options), size);
  }
  return ops::squeeze(ops::attention(queries, keys, ops::unsqueeze(v, 1), options), 1);
}

// The product of weights [B, N, N] and v [B, N, c]. Records the weights if the pass asks for them.
Tensor weigh(const Pass& pass, const std::string& name, const Size2& size, const Tensor& weights, const Tensor& v) {
  if (pass.wants_attention()) {
    record_pixels(pass, name, ops::cast(weights.detach(), DType::f32).unsqueeze(1), size);
  }
  return ops::matmul(weights, v);
}

std::int64_t pixels_of(const Size2& size) { return size[0] * size[1]; }

}  // namespace

void record_pixels(const Pass& pass, const std::string& name, const Tensor& weights, const Size2& size) {
  TokenGrid grid;
  grid.queries = grid.keys = size;
  pass.recorder->attention(name, weights, std::make_shared<const TokenGrid>(grid));
}

NonLocal::Kind NonLocal::kind_named(std::string_view name) {
  for (const auto& [kind_name, kind] : kinds) {
    if (kind_name == name) {
      return kind;
    }
  }
  fail("there is no non-local block '{}': expected embedded_gaussian, gaussian, dot_product or concatenation", name);
}

NonLocal::NonLocal(const Scope& scope, std::int64_t channels, std::int64_t inner, Kind block_kind)
    : kind(block_kind),
      name(scope.path()),
      t(pointwise_if(embeds(kind), scope / "t", channels, inner)),
      p(pointwise_if(embeds(kind), scope / "p", channels, inner)),
      g(scope / "g", channels, inner, {1, 1}),
      z(scope / "z", inner, channels, {1, 1}),
      norm(scope / "norm", channels) {
  if (kind == Kind::concatenation) {
    f = (scope / "f").parameter("weight", {1, 2 * inner}, Init::kaiming_uniform({1, 2 * inner}));
  }
}

Tensor NonLocal::operator()(const Tensor& x, const Pass& pass) const {
  const Size2 size = {x.size(2), x.size(3)};
  const std::int64_t n = pixels_of(size);
  const Tensor value = to_tokens(g(x));
  const Tensor theta = to_tokens(t ? (*t)(x) : x);
  const Tensor phi = to_tokens(p ? (*p)(x) : x);
  const float share = 1 / static_cast<float>(n);
  Tensor y;
  switch (kind) {
    case Kind::embedded_gaussian:
      y = attend(pass, name, size, theta, phi, value, 1 / std::sqrt(static_cast<float>(x.size(1))));
      break;
    case Kind::gaussian:
      y = attend(pass, name, size, theta, phi, value, 1);
      break;
    case Kind::dot_product:
      y = weigh(pass, name, size, ops::matmul(theta, ops::transpose(phi, 1, 2)) * share, value);
      break;
    case Kind::concatenation: {
      const std::int64_t inner = value.size(2);
      const Tensor of_query = ops::linear(theta, ops::narrow(f, 1, 0, inner));  // [B, N, 1]
      const Tensor of_key = ops::linear(phi, ops::narrow(f, 1, inner, inner));
      const Tensor sums = of_query + ops::transpose(of_key, 1, 2);  // [B, N, N]
      y = weigh(pass, name, size, ops::relu(sums) * share, value);
      break;
    }
  }
  return norm(z(to_image(y, size[0], size[1])), pass, ops::Activation::identity, x);
}

std::int64_t NonLocal::flops(const Size2& size) const {
  const std::int64_t n = pixels_of(size);
  const std::int64_t inner = g.weight.size(0);
  const std::int64_t channels = g.weight.size(1);
  std::int64_t total = g.flops(size[0], size[1]) + z.flops(size[0], size[1]) + norm.flops(size) + n * n * inner;
  total += t ? 2 * t->flops(size[0], size[1]) : 0;
  if (kind == Kind::concatenation) {
    return total + 2 * n * inner;
  }
  return total + n * n * (kind == Kind::gaussian ? channels : inner);
}

SaganAttention::SaganAttention(const Scope& scope, std::int64_t channels)
    : name(scope.path()),
      f(scope / "f", channels, channels / 8, {1, 1}, {}, false),
      g(scope / "g", channels, channels / 8, {1, 1}, {}, false),
      h(scope / "h", channels, channels / 8, {1, 1}, {}, false),
      v(scope / "v", channels / 8, channels, {1, 1}, {}, false),
      gamma(scope.parameter("gamma", {1}, Init::zeros())) {}

Tensor SaganAttention::operator()(const Tensor& x, const Pass& pass) const {
  const Size2 size = {x.size(2), x.size(3)};
  const Tensor y = attend(pass, name, size, to_tokens(g(x)), to_tokens(f(x)), to_tokens(h(x)), 1);
  const Tensor out = to_tokens(v(to_image(y, size[0], size[1])));
  return activate_image(to_image(out * ops::cast(gamma, out.dtype()), size[0], size[1]), ops::Activation::identity, x);
}

std::int64_t SaganAttention::flops(const Size2& size) const {
  const std::int64_t n = pixels_of(size);
  std::int64_t total = 2 * n * n * f.weight.size(0);
  for (const Conv2d* conv : {&f, &g, &h, &v}) {
    total += conv->flops(size[0], size[1]);
  }
  return total;
}

}  // namespace vitrail::nn
