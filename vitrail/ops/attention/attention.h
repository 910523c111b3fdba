/// \file
/// Scaled dot-product attention.
#pragma once

#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// Options of attention. Mask and bias broadcast to [B, H, N, M].
struct AttentionOptions {
  float scale = 0;      ///< 0 stands for 1 / √d
  bool causal = false;  ///< query i attends to keys j ≤ i + (M - N), the lower right triangle

  /// i64 [B]: how many keys of each sample are real, 1 … M. The others are padding: as if they were masked, they get no
  /// probability and gradients of zero, but they are not even read, and cost nothing. Undefined: all keys are real.
  Tensor lengths = {};
  /// i64 [S + 1], for a batch of one row (B = 1) in which S sequences of any lengths follow each other without padding
  /// (PyTorch's and FlashAttention's cu_seqlens): sequence s has the queries, and the keys, from offset s up to offset
  /// s + 1, at least one of each, and sees its own keys alone, as if it were a sample of its own. The first offset is
  /// 0, the last one N, or M. Where only query_offsets are given, they are those of the keys too. Lengths, mask, bias
  /// and further columns cannot be given with them.
  Tensor query_offsets = {};
  Tensor key_offsets = {};
  Tensor mask = {};  ///< boolean (true: may attend; a row without any gives zeros) or f32, added to the scores
  Tensor bias = {};  ///< f32, added to the scores; differentiable, unlike a mask
  /// f32 [H, 2 C + 1], added to the scores by the distance alone, as linear biases (Press et al. 2022) or T5's (Raffel
  /// et al. 2020): element C + j - p of row h for key j and query i, whose place among the keys is p = i + (M - N). For
  /// sequences with offsets, places are counted in each sequence. C is at least the largest distance, N - 1 or M - 1.
  /// Differentiable; not together with a bias. Nothing of the size [N, M] is made of it.
  Tensor distance_bias = {};

  /// W, if the batch consists of images that are cut into W windows each (Swin: Liu et al. 2021; W divides B). The
  /// first dimension of mask and bias may then also be W: sample b uses those of window b mod W. 0: there are no
  /// windows.
  std::int64_t windows = 0;
  /// Further columns of q, [B, H, N, r] of its dtype: q kᵀ + q_extra k_extraᵀ is scaled. Differentiable.
  /// attention_packed() takes none.
  Tensor q_extra = {};
  /// Further columns of k, [B or 1, H or 1, M, r] of its dtype. Not differentiable.
  Tensor k_extra = {};
  float dropout = 0;   ///< dropout of the probabilities, in training
  Philox draws{0, 0};  ///< the random numbers of the dropout
};

/// Scaled dot-product attention (Vaswani et al. 2017, eq. 1): softmax(scale · q kᵀ + bias) v for each sample and head.
///
/// ```text
/// q [B, H, N, d], k [B, G, M, d], v [B, G, M, e], of one dtype (f32 or bf16), any strides with the last dimension
/// dense → [B, H, N, e], whose memory is laid out as [B, N, H, e], so that joining the heads is a view.
/// ```
///
/// G divides H: head h uses the keys and values of head h G / H (grouped-query attention: Ainslie et al. 2023), which
/// are not repeated in memory.
///
/// The probabilities [B, H, N, M] are never stored: forward keeps a log-sum-exp per query and backward recomputes the
/// rest tile by tile (Dao et al. 2022), so memory grows linearly with N and M.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});

/// attention() for q, k and v that are the three parts of one projection qkv [B, N, 3, H, d]. The gradient of qkv is
/// written in that layout directly, without slicing and joining. Returns [B, N, H, d] contiguous.
Tensor attention_packed(const Tensor& qkv, const AttentionOptions& options = {});

/// The packed projection [B, N, 3, H, d] with queries and keys of unit length, for cosine attention (Swin V2: Liu et
/// al. 2022, eq. 2): [scale_h q / |q|, k / |k|, v], in one pass over memory; scale [H] f32 is differentiable too. With
/// `scale = 1` in the options of attention, the scores are then scale_h cos(q, k).
Tensor cosine_queries(const Tensor& qkv, const Tensor& scale);

/// The attention probabilities, f32 [B, H, N, M], computed anew from q and k, for recorders. They are not
/// differentiable, and without dropout. Not of sequences with offsets.
Tensor attention_probabilities(const Tensor& q, const Tensor& k, const AttentionOptions& options = {});

}  // namespace vitrail::ops
