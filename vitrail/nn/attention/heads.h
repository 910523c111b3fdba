/// \file
/// The heads of attention, between its projections.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vitrail/nn/attention/attention_config.h"
#include "vitrail/nn/attention/differential.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// The config with the widths that follow from others in place of zeros. Throws Error, which names the scope, if the
/// heads do not divide the width.
AttentionConfig with_widths(const Scope& scope, AttentionConfig config);

/// What attention computes between its projections: queries q [B, N, H d], keys k [B, M, G d] and values v [B, M, G e]
/// with G = num_kv_heads → the joined heads [B, N, H e],
///
/// ```text
/// join_h softmax(q_h k_hᵀ / √d + bias) v_h
/// ```
///
/// where q_h and k_h are normalized if there is a qk_norm (parameters `q_norm` and `k_norm` [d]), and rotated if there
/// is a rotation. With a lambda_init, attention is differential: the two halves of a head's queries and keys attend by
/// themselves, with widths of d / 2, and Differential takes the one from the other. A recorder gets the maps of both
/// halves, as if head h were the heads 2h and 2h + 1.
struct AttentionHeads {
  AttentionHeads(const Scope& scope, const AttentionConfig& given);
  Tensor operator()(const Tensor& q, const Tensor& k, const Tensor& v, Pass& pass,
                    const AttentionExtras& extras = {}) const;
  /// Whether packed() may be called: values are as wide and as many as queries and keys, and nothing but a rotation
  /// comes before attention.
  bool takes_packed(const AttentionExtras& extras) const {
    return !q_norm && !differential && extras.cache == nullptr && config.value_dim == config.key_dim &&
           config.num_kv_heads == config.num_heads;
  }
  /// The same for one projection qkv [B, N, 3 H d] (or [B, N, H 3 d], by head), whose gradient is then written in one
  /// piece.
  Tensor packed(const Tensor& qkv, Pass& pass, const AttentionExtras& extras = {}) const;
  /// fvcore's count for one sample: both matrix products and the norms.
  std::int64_t flops(std::int64_t queries, std::int64_t keys) const;

  AttentionConfig config;  ///< with the widths filled in
  std::string name;        ///< path of the layer, under which a recorder gets the map
  std::optional<Norm> q_norm;
  std::optional<Norm> k_norm;
  std::optional<Differential> differential;

 private:
  void prepare(Tensor& q, Tensor& k, const AttentionExtras& extras) const;
  void record(const Tensor& map, Pass& pass, const AttentionExtras& extras) const;
};

}  // namespace vitrail::nn
