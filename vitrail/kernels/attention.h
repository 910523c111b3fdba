/// \file
/// Fused scaled dot-product attention, forward and backward.
#pragma once

#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// How the scores q kᵀ become probabilities. Mask and bias are [B, H, N, M] of any strides (0 where broadcast). Instead
/// of B they may have a number of samples W that divides B; sample b then uses sample b mod W of them.
struct AttentionScores {
  float scale = 1;      ///< the factor of q kᵀ
  bool causal = false;  ///< query i attends to keys j ≤ i + (M - N)

  /// i64 [B] contiguous, or undefined: how many keys of each sample are real, 1 … M. Those behind are not read, and
  /// their gradients are zero.
  Tensor lengths = {};
  /// i64 [S + 1] contiguous, both or neither: a batch of one sample (B = 1) consists of S sequences, of which sequence
  /// s has the queries and keys from element s up to element s + 1, and sees its own keys alone. Then there are no
  /// lengths, no mask, no bias and no further columns.
  Tensor query_offsets = {};
  Tensor key_offsets = {};
  Tensor mask = {};  ///< boolean (true: may attend) or f32, added to the scaled scores; or undefined
  Tensor bias = {};  ///< f32, added to the scaled scores; or undefined
  /// f32 [H, 2 C + 1] contiguous, or undefined: element C + j - i - (M - N) of row h is added to the scaled score of
  /// query i and key j, for sequences by the sizes of each. C is at least the largest distance. Not with a bias.
  Tensor distance_bias = {};

  /// Further columns of q, [B, H, N, r], or undefined: q kᵀ + q_extra k_extraᵀ is scaled.
  Tensor q_extra = {};
  /// Further columns of k, [B, H, M, r], or undefined.
  Tensor k_extra = {};
  float dropout = 0;   ///< probability of dropping an element; those that are kept are divided by 1 - dropout
  Philox draws{0, 0};  ///< element (b, h, i, j) is kept if draws.uniform(((b H + h) N + i) M + j) >= dropout
};

/// out = softmax(scale · q kᵀ + bias) v for q [B, H, N, d], k [B, G, M, d], v [B, G, M, e] and out [B, H, N, e], all
/// f32 or all bf16, of any strides with a dense last dimension. G divides H: H / G adjacent heads share keys and
/// values; with k_extra, G is H. A query that may attend to no key gives zeros. `log_sum`, f32 [B, H, N] contiguous or
/// undefined, receives what backward needs of each row of scores: log₂ Σ 2^t over t = score · log₂ e, or +∞ for a query
/// without keys.
void attention_forward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionScores& scores,
                       const Tensor& out, const Tensor& log_sum);

/// Where attention_backward() writes its gradients. dq, dk, dv and dq_extra have the shapes of q, k, v and q_extra, but
/// dk and dv have all H heads, and any strides with a dense last dimension. dbias, to which is added, is f32,
/// contiguous, of a shape that broadcasts to the bias, or that of the distance_bias. dq_extra and dbias may be
/// undefined.
struct AttentionGradients {
  Tensor dq, dk, dv;
  Tensor dq_extra = {};
  Tensor dbias = {};
};

/// The gradients of attention_forward(), from its `out` and `log_sum` and the gradient `dout`. The scores are
/// recomputed tile by tile. Deterministic for a given number of threads.
void attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionScores& scores,
                        const Tensor& out, const Tensor& log_sum, const Tensor& dout,
                        const AttentionGradients& gradients);

/// Writes the attention probabilities (without dropout) to the contiguous f32 tensor [B, H, N, M].
void attention_probabilities(const Tensor& q, const Tensor& k, const AttentionScores& scores,
                             const Tensor& probabilities);

}  // namespace vitrail::kernels
