/// \file
/// Normalizations over features, with their parameters.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "vitrail/nn/parameters.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// Layer normalization (Ba et al. 2016): (x - mean) / √(var + eps) · weight + bias over the last dimension of x
/// [..., D]. Parameters `weight` (at first ones, or what the constructor is given) and `bias` (at first zeros), both
/// [D].
struct LayerNorm {
  LayerNorm(const Scope& scope, std::int64_t dim, float eps = 1e-6F, float weight = 1);
  Tensor operator()(const Tensor& x) const;

  float eps;
  Tensor weight;
  Tensor bias;
};

/// Root mean square normalization (Zhang & Sennrich 2019): x / √(mean(x²) + eps) · weight over the last dimension of x
/// [..., D]. Parameter `weight` [D].
struct RmsNorm {
  RmsNorm(const Scope& scope, std::int64_t dim, float eps = 1e-6F, float weight = 1);
  Tensor operator()(const Tensor& x) const;

  float eps;
  Tensor weight;
};

/// Layer normalization without parameters: (x - mean) / √(var + eps) over the last dimension of x [..., D].
struct TokenNorm {
  explicit TokenNorm(float norm_eps = 1e-6F) : eps(norm_eps) {}
  Tensor operator()(const Tensor& x) const;

  float eps;
};

/// α ⊙ x + β over the last dimension of x [..., D], which takes the place of a normalization in ResMLP (Touvron et al.
/// 2021, eq. 1). Parameters `alpha` (at first ones) and `beta` (at first zeros), both [1, 1, D] as in timm.
struct Affine {
  Affine(const Scope& scope, std::int64_t dim, float weight = 1);
  Tensor operator()(const Tensor& x) const;

  Tensor alpha;
  Tensor beta;
};

enum class NormKind { layer, rms, token, affine };
/// The kind named "layernorm", "rmsnorm", "affine" (timm's names) or "tokennorm". Throws Error for another name.
NormKind norm_named(std::string_view name);

struct NormConfig {
  NormKind kind = NormKind::layer;
  float eps = 1e-6F;
};

/// The normalization that a model's config asks for: one of the four above.
class Norm {
 public:
  /// The parameter that multiplies, if the kind has one, starts as `weight`.
  Norm(const Scope& scope, std::int64_t dim, const NormConfig& config = {}, float weight = 1);
  Tensor operator()(const Tensor& x) const {
    return std::visit([&](const auto& norm) { return norm(x); }, norm_);
  }
  /// fvcore's count for `rows` rows, a rough one of aten::layer_norm: 5 flops per element, 4 without parameters. fvcore
  /// counts none for RmsNorm and Affine.
  std::int64_t flops(std::int64_t rows) const;

 private:
  std::int64_t dim_;
  std::variant<LayerNorm, RmsNorm, TokenNorm, Affine> norm_;
};

}  // namespace vitrail::nn
