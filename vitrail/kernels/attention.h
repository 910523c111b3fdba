// Fused scaled dot-product attention, forward and backward.
#pragma once

#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

// How the scores q kᵀ become probabilities. Mask and bias are [B, H, N, M] of any strides (0 where broadcast); instead
// of B they may have a number of samples that divides B, and serve sample b with their own b mod that number.
struct AttentionScores {
  float scale = 1;      // of q kᵀ
  bool causal = false;  // query i sees keys j ≤ i + (M - N)
  Tensor mask = {};     // boolean, true = may attend, or f32, added to the scaled scores; or undefined
  Tensor bias = {};     // f32, added to the scaled scores; or undefined
  // [B, H, N, r] and [B, H, M, r]: further columns of q and k, so that q kᵀ + q_more k_moreᵀ is scaled; or undefined.
  Tensor q_more = {};
  Tensor k_more = {};
  float dropout = 0;   // probability (i, j) of head (b, h) is kept, and divided by 1 - dropout, if
  Philox draws{0, 0};  // draws.uniform(((b H + h) N + i) M + j) >= dropout
};

// out = softmax(scale · q kᵀ + bias) v for q [B, H, N, d], k [B, H, M, d], v [B, H, M, e] and out [B, H, N, e], all f32
// or all bf16, of any strides with a dense last dimension. A query without any key it may attend to gives zeros.
// `log_sum`, f32 [B, H, N] contiguous or undefined, receives what backward needs of each row of scores: log₂ Σ 2^t of
// t = score · log₂ e, and +∞ for a query without keys.
void attention_forward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionScores& scores,
                       const Tensor& out, const Tensor& log_sum);

// Where attention_backward() puts its gradients. dq, dk, dv and dq_more are shaped as q, k, v and q_more, of any
// strides with a dense last dimension; dbias, to which it adds, is f32, contiguous, of a shape that broadcasts to the
// bias. The last two may be undefined.
struct AttentionGradients {
  Tensor dq, dk, dv;
  Tensor dq_more = {};
  Tensor dbias = {};
};

// The gradients of that. Scores are recomputed tile by tile. Deterministic for a fixed number of threads.
void attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionScores& scores,
                        const Tensor& out, const Tensor& log_sum, const Tensor& dout,
                        const AttentionGradients& gradients);

// The probabilities themselves (without dropout) into the contiguous f32 tensor [B, H, N, M].
void attention_probabilities(const Tensor& q, const Tensor& k, const AttentionScores& scores,
                             const Tensor& probabilities);

}  // namespace vitrail::kernels
