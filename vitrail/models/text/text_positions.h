/// \file
/// What tells the tokens of a text apart by their places.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/io/json.h"
#include "vitrail/nn/attention/attention_config.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/nn/positions/distance_bias.h"
#include "vitrail/nn/positions/token_positions.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// The positions of a text model's tokens. Any part may be missing.
struct TextPositionsConfig {
  nn::TokenPositionKind added = nn::TokenPositionKind::none;  ///< vectors that are added to embedded tokens
  std::int64_t offset = 0;                                    ///< rows of their table before the first token's
  /// The frequencies of rotary positions, of which a head's width has half as many: radians for each place.
  std::vector<float> rotary = {};
  std::optional<nn::DistanceBiasConfig> bias = std::nullopt;  ///< of attention's scores, the same in all blocks
};

/// Reads `pos_embed` and the fields that belong to it. It names the positions that take the place of a model's `own`:
/// - "none", "learn" (a vector for each place), "sincos" (Vaswani et al. 2017), "rope" (`rope_theta`)
/// - "alibi", "alibi_learn", "rel_bucket", "rel_bias": nn::DistanceBiasKind alibi, alibi_learned, buckets, offsets,
/// with
///   `relative_attention_num_buckets` and `relative_attention_max_distance`
///
/// `attention` is that of the blocks, `positions` the most tokens of a text. Without `pos_embed`, `own` is left. Throws
/// Error if the name is unknown or does not suit the model.
TextPositionsConfig read_text_positions(io::Fields& fields, TextPositionsConfig own,
                                        const nn::AttentionConfig& attention, std::int64_t positions,
                                        bool bidirectional);

/// The frequencies θ^(-2i/d), i < d/2, of rotary positions (RoFormer: Su et al. 2024, section 3.2).
std::vector<float> rotary_frequencies(std::int64_t head_dim, double theta = 10000);

/// The positions of a text model's tokens, which lie side by side from some place on, or in a row of texts with offsets
/// (Texts::offsets).
class TextPositions {
 public:
  /// What is learned is made in the scope: the table of vectors of width `dim` for `count` places as `weight`
  /// [offset + count, dim], and the parameters of the bias (nn::DistanceBiasKind).
  TextPositions(const nn::Scope& scope, const TextPositionsConfig& config, std::int64_t count, std::int64_t dim);

  /// x [B, N, dim] with the vectors of `places`: [N] one after the other, or [B, N].
  Tensor add_at(const Tensor& x, const Tensor& places) const;
  /// x [B, N, dim] with the vectors of the places begin … begin + N - 1.
  Tensor add_to(const Tensor& x, std::int64_t begin, const Tensor& offsets = {}) const;

  /// The biases by distance of texts of up to `longest` tokens (nn::AttentionExtras::distance_bias); undefined if there
  /// are none.
  Tensor distance_bias(std::int64_t longest) const { return bias_ ? (*bias_)(longest) : Tensor(); }
  bool has_distance_bias() const { return bias_.has_value(); }
  /// The rotation to places [N] or [B, N], a row of angles for each; undefined if there is none.
  ops::Rotation rotation_at(const Tensor& places) const;
  /// The rotation of `count` tokens from place `begin` on; undefined if there is none.
  ops::Rotation rotation(std::int64_t begin, std::int64_t count, const Tensor& offsets = {}) const;

 private:
  TextPositionsConfig config_;
  nn::TokenPositions added_;
  std::optional<nn::DistanceBias> bias_;
};

/// What nn::run_block() runs: `block` with `extras`. If the pass asks for checkpoints, the biases by distance are made
/// anew in the block, for texts of up to `longest` tokens, since a block that runs again uses no tensors with gradients
/// but parameters; then `extras` have none.
template <class Block>
auto in_block(const Block& block, const TextPositions& positions, nn::AttentionExtras extras, std::int64_t longest) {
  return [&block, &positions, extras = std::move(extras), longest](Tensor x, nn::Pass& pass) {
    nn::AttentionExtras own = extras;
    if (pass.checkpoint) {
      own.distance_bias = positions.distance_bias(longest);
    }
    return block(std::move(x), pass, own);
  };
}

}  // namespace vitrail::models
