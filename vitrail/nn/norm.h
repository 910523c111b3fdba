// Normalizations of tokens, with their parameters.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "vitrail/nn/parameters.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// (x - mean) / √(var + eps) · weight + bias over the last dimension of x [..., D] (Ba et al. 2016). Parameters `weight`
// (ones, or what the constructor says) and `bias` (zeros), both [D].
struct LayerNorm {
  LayerNorm(const Scope& scope, std::int64_t dim, float eps = 1e-6F, float weight = 1);
  Tensor operator()(const Tensor& x) const;

  float eps;
  Tensor weight;
  Tensor bias;
};

// x / √(mean(x²) + eps) · weight over the last dimension of x [..., D] (Zhang & Sennrich 2019). Parameter `weight` [D].
struct RmsNorm {
  RmsNorm(const Scope& scope, std::int64_t dim, float eps = 1e-6F, float weight = 1);
  Tensor operator()(const Tensor& x) const;

  float eps;
  Tensor weight;
};

// (x - mean) / √(var + eps) over the last dimension of x [..., D]: layer normalization of a token without parameters.
struct TokenNorm {
  explicit TokenNorm(float norm_eps = 1e-6F) : eps(norm_eps) {}
  Tensor operator()(const Tensor& x) const;

  float eps;
};

// α ⊙ x + β over the last dimension of x [..., D]: no normalization, but what stands in its place (ResMLP: Touvron et
// al. 2021, eq. 1). Parameters `alpha` (ones) and `beta` (zeros), both [1, 1, D], as timm has them.
struct Affine {
  Affine(const Scope& scope, std::int64_t dim, float weight = 1);
  Tensor operator()(const Tensor& x) const;

  Tensor alpha;
  Tensor beta;
};

enum class NormKind { layer, rms, token, affine };
// "layernorm", "rmsnorm", "affine" (timm's names), "tokennorm"; Error if unknown.
NormKind norm_named(std::string_view name);

struct NormConfig {
  NormKind kind = NormKind::layer;
  float eps = 1e-6F;
};

// Whichever of the four a model's config asks for.
class Norm {
 public:
  // The weights, if there are any, start from `weight`.
  Norm(const Scope& scope, std::int64_t dim, const NormConfig& config = {}, float weight = 1);
  Tensor operator()(const Tensor& x) const {
    return std::visit([&](const auto& norm) { return norm(x); }, norm_);
  }
  // fvcore's rough count of aten::layer_norm: 5 flops an element, 4 without parameters. It counts none for RmsNorm
  // and Affine.
  std::int64_t flops(std::int64_t rows) const;

 private:
  std::int64_t dim_;
  std::variant<LayerNorm, RmsNorm, TokenNorm, Affine> norm_;
};

}  // namespace vitrail::nn
