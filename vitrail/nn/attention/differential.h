/// \file
/// The difference of two attentions (Differential Transformer: Ye et al. 2025).
#pragma once

#include <cstdint>

#include "vitrail/nn/norm.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// What differential attention (Ye et al. 2025, eq. 1 to 3) makes of the two attentions of each head, a₁ and a₂
/// [B, N, H, e] → [B, N, H, e]:
///
/// ```text
/// y = (1 - λ_init) rmsnorm(a₁ - λ a₂),   λ = exp(λ_q1 · λ_k1) - exp(λ_q2 · λ_k2) + λ_init
/// ```
///
/// What both attend to, the noise, cancels out. Parameters `lambda_q1`, `lambda_k1`, `lambda_q2` and `lambda_k2` [d],
/// at first from N(0, 0.1²), and `sub_norm` [e], which all heads share, as in timm's DiffAttention.
struct Differential {
  /// For queries and keys of width `key_dim` and values of width `value_dim`.
  Differential(const Scope& scope, std::int64_t key_dim, std::int64_t value_dim, float lambda_init);
  Tensor operator()(const Tensor& first, const Tensor& second) const;
  Tensor lambda() const;  ///< λ, [1] f32

  float lambda_init;
  Tensor lambda_q1;
  Tensor lambda_k1;
  Tensor lambda_q2;
  Tensor lambda_k2;
  RmsNorm sub_norm;
};

}  // namespace vitrail::nn
