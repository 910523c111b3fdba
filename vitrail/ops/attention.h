// Scaled dot-product attention.
#pragma once

#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Mask and bias broadcast to [B, H, N, M]. Their first dimension may also be a number W that divides B: sample b then
// has those of b mod W, as the windows of a batch of pictures have (Swin: Liu et al. 2021).
struct AttentionOptions {
  float scale = 0;      // 0: 1 / √d
  bool causal = false;  // query i sees keys j ≤ i + (M - N), the lower right triangle
  Tensor mask = {};     // boolean, true = may attend (a row without any gives zeros), or f32, added to the scores
  Tensor bias = {};     // f32, added to the scores; differentiable, which a mask is not
  // Further columns of q and k, [B, H, N, r] and [B or 1, H or 1, M, r] of their dtype, so that q kᵀ + q_more k_moreᵀ
  // is scaled. q_more is differentiable, k_more is not. attention_packed() takes none.
  Tensor q_more = {};
  Tensor k_more = {};
  float dropout = 0;   // of the probabilities, in training
  Philox draws{0, 0};  // for the dropout
};

// softmax(scale · q kᵀ + bias) v for each sample and head (Vaswani et al. 2017, eq. 1).
//   q [B, H, N, d], k [B, H, M, d], v [B, H, M, e], of one dtype (f32 or bf16), any strides with the last dimension
//   dense → [B, H, N, e], whose memory is laid out as [B, N, H, e], so that joining the heads is a view.
// The probabilities [B, H, N, M] are never stored: forward keeps a log-sum-exp per query and backward recomputes the
// rest tile by tile (Dao et al. 2022), so memory grows linearly with N and M.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});

// The same where q, k and v are the three parts of one projection qkv [B, N, 3, H, d]: its gradient is written in that
// layout directly, without slicing and joining. Returns [B, N, H, d] contiguous.
Tensor attention_packed(const Tensor& qkv, const AttentionOptions& options = {});

// The packed projection [B, N, 3, H, d] with queries and keys of unit length, for attention by cosine (Swin V2: Liu et
// al. 2022, eq. 2): [scale_h q / |q|, k / |k|, v], in one pass over memory; scale [H] f32 is differentiable too. With
// `scale = 1` in the options, attention's scores are then scale_h cos(q, k).
Tensor cosine_queries(const Tensor& qkv, const Tensor& scale);

// The probabilities themselves, f32 [B, H, N, M], computed anew from q and k: for recorders. Not differentiable, and
// without dropout.
Tensor attention_probabilities(const Tensor& q, const Tensor& k, const AttentionOptions& options = {});

}  // namespace vitrail::ops
