/// \file
/// Vectors for the places of tokens in a text.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vitrail/nn/embedding.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// The kinds of vectors for the places of tokens:
/// - learned: a parameter for each place (GPT, BERT)
/// - sines: sine_positions(), sines and cosines in turn (Vaswani et al. 2017, section 3.5)
/// - sine_halves: the same, all sines before all cosines (Marian)
/// - learned_sines: a parameter that starts as sines (DistilBERT's option)
enum class TokenPositionKind { none, learned, sines, sine_halves, learned_sines };

/// Which vectors a model has for the places of its tokens.
struct TokenPositionsConfig {
  TokenPositionKind kind = TokenPositionKind::none;
  std::int64_t count = 0;   ///< the rows of a table; sines that are computed have no limit of their own
  std::int64_t dim = 0;     ///< D
  std::int64_t offset = 0;  ///< the row of the first token (RoBERTa's is padding_idx + 1)
};

/// Vectors for the places of tokens in a text, which are added to those of the tokens. If there is a table, it is the
/// parameter `weight` [count, D], which starts as N(0, 1) unless as sines.
class TokenPositions {
 public:
  TokenPositions(const Scope& scope, const TokenPositionsConfig& config);
  /// The vectors [length, D] f32 of the places begin … begin + length - 1; undefined if there are no positions.
  Tensor operator()(std::int64_t begin, std::int64_t length) const;

 private:
  TokenPositionsConfig config_;
  std::optional<Embedding> table_;
};

}  // namespace vitrail::nn
