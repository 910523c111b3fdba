#include "vitrail/nn/picture_attention.h"

#include <array>
#include <cmath>
#include <utility>

#include "vitrail/nn/picture.h"
#include "vitrail/ops/arithmetic.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/matmul.h"
#include "vitrail/ops/shape.h"

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

// [B, C, H, W] → [B, N, C], in channels-last memory a view, and back.
Tensor to_tokens(const Tensor& x) {
  return ops::reshape(ops::permute(x, {0, 2, 3, 1}), {x.size(0), x.size(2) * x.size(3), x.size(1)});
}
Tensor to_picture(const Tensor& tokens, std::int64_t height, std::int64_t width) {
  return ops::permute(ops::reshape(tokens, {tokens.size(0), height, width, tokens.size(2)}), {0, 3, 1, 2});
}

bool records(const Pass& pass) { return pass.recorder != nullptr && pass.recorder->wants_attention(); }

// softmax(scale q kᵀ) v for q, k and v [B, N, …].
Tensor attend(const Pass& pass, int index, const Size2& size, const Tensor& q, const Tensor& k, const Tensor& v,
              float scale) {
  const ops::AttentionOptions options{.scale = scale};
  const Tensor queries = ops::unsqueeze(q, 1);
  const Tensor keys = ops::unsqueeze(k, 1);
  if (records(pass)) {
    record_pixels(pass, index, ops::attention_probabilities(queries, keys, options), size);
  }
  return ops::squeeze(ops::attention(queries, keys, ops::unsqueeze(v, 1), options), 1);
}

// weights v for weights [B, N, N] and v [B, N, c].
Tensor weigh(const Pass& pass, int index, const Size2& size, const Tensor& weights, const Tensor& v) {
  if (records(pass)) {
    record_pixels(pass, index, ops::cast(weights.detach(), DType::f32).unsqueeze(1), size);
  }
  return ops::matmul(weights, v);
}

std::int64_t pixels_of(const Size2& size) { return size[0] * size[1]; }

}  // namespace

void record_pixels(const Pass& pass, int index, const Tensor& weights, const Size2& size) {
  pass.recorder->attention(index, weights, AttentionPlace{.queries = size, .keys = size});
}

NonLocal::Kind NonLocal::kind_named(std::string_view name) {
  for (const auto& [kind_name, kind] : kinds) {
    if (kind_name == name) {
      return kind;
    }
  }
  fail("there is no non-local block '{}': expected embedded_gaussian, gaussian, dot_product or concatenation", name);
}

NonLocal::NonLocal(const Scope& scope, std::int64_t channels, std::int64_t inner, Kind block_kind, int map_index)
    : kind(block_kind),
      index(map_index),
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
      y = attend(pass, index, size, theta, phi, value, 1 / std::sqrt(static_cast<float>(x.size(1))));
      break;
    case Kind::gaussian:
      y = attend(pass, index, size, theta, phi, value, 1);
      break;
    case Kind::dot_product:
      y = weigh(pass, index, size, ops::matmul(theta, ops::transpose(phi, 1, 2)) * share, value);
      break;
    case Kind::concatenation: {
      const std::int64_t inner = value.size(2);
      const Tensor of_query = ops::linear(theta, ops::narrow(f, 1, 0, inner));  // [B, N, 1]
      const Tensor of_key = ops::linear(phi, ops::narrow(f, 1, inner, inner));
      const Tensor sums = of_query + ops::transpose(of_key, 1, 2);  // [B, N, N]
      y = weigh(pass, index, size, ops::relu(sums) * share, value);
      break;
    }
  }
  return norm(z(to_picture(y, size[0], size[1])), pass, ops::Activation::identity, x);
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

SaganAttention::SaganAttention(const Scope& scope, std::int64_t channels, int map_index)
    : index(map_index),
      f(scope / "f", channels, channels / 8, {1, 1}, {}, false),
      g(scope / "g", channels, channels / 8, {1, 1}, {}, false),
      h(scope / "h", channels, channels / 8, {1, 1}, {}, false),
      v(scope / "v", channels / 8, channels, {1, 1}, {}, false),
      gamma(scope.parameter("gamma", {1}, Init::zeros())) {}

Tensor SaganAttention::operator()(const Tensor& x, const Pass& pass) const {
  const Size2 size = {x.size(2), x.size(3)};
  const Tensor y = attend(pass, index, size, to_tokens(g(x)), to_tokens(f(x)), to_tokens(h(x)), 1);
  const Tensor out = to_tokens(v(to_picture(y, size[0], size[1])));
  return activate_picture(to_picture(out * ops::cast(gamma, out.dtype()), size[0], size[1]), ops::Activation::identity,
                          x);
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
