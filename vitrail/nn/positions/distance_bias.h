/// \file
/// Biases of attention's scores by the distance of two tokens of a text.
#pragma once

#include <cstdint>

#include "vitrail/nn/parameters.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// The kinds of biases by distance. With r = j - i, from query i to key j, head h adds to their score
/// - alibi: -alibi_slopes()[h] · |r| (ALiBi: Press et al. 2022; in encoders as in both directions)
/// - alibi_learned: the same with slopes that are trained; parameter `alibi_slopes` [H], which starts as those
/// - buckets: a number for each head and relative_position_bucket() of r (T5: Raffel et al. 2020); parameter
///   `relative_attention_bias.weight` [num_buckets, H]
/// - offsets: a number for each head and offset r, of which those beyond max_distance share that of max_distance (Shaw
///   et al. 2018, section 3.2, with scalars); parameter `relative_attention_bias.weight` [2 max_distance + 1, H], whose
///   row max_distance + r is that of r; where no token sees a later one, [max_distance + 1, H], and row -r.
enum class DistanceBiasKind { alibi, alibi_learned, buckets, offsets };

/// Which biases by distance a model has. All its blocks share them.
struct DistanceBiasConfig {
  DistanceBiasKind kind = DistanceBiasKind::alibi;
  std::int64_t num_heads = 0;       ///< H
  bool bidirectional = true;        ///< tokens see those behind them too
  std::int64_t num_buckets = 32;    ///< of buckets: T5's relative_attention_num_buckets
  std::int64_t max_distance = 128;  ///< of buckets and offsets: T5's relative_attention_max_distance
};

/// T5's bucket 0 … num_buckets - 1 of a relative position j - i, as transformers' T5Attention computes it: half of the
/// buckets are for the positions behind i if `bidirectional`, otherwise those all count as 0; half of the rest are for
/// one distance each, and the others grow logarithmically up to max_distance, beyond which all share the last one.
std::int64_t relative_position_bucket(std::int64_t relative_position, bool bidirectional, std::int64_t num_buckets,
                                      std::int64_t max_distance);

/// A bias of attention's scores by distance.
class DistanceBias {
 public:
  /// Throws Error if there are too few buckets for their directions, or no distance.
  DistanceBias(const Scope& scope, const DistanceBiasConfig& config);
  /// The biases [H, 2 length - 1] f32 of the distances -(length - 1) … length - 1, for texts of up to `length` tokens:
  /// ops::AttentionOptions::distance_bias. Where no token sees a later one, what is added beyond 0 is of no use.
  Tensor operator()(std::int64_t length) const;

 private:
  DistanceBiasConfig config_;
  Tensor weight_;  // [rows, H] of buckets and offsets; [H] of ALiBi
};

}  // namespace vitrail::nn
