/// \file
/// The input of text models: ids of tokens.
#pragma once

#include <cstdint>

#include "vitrail/nn/positions/token_positions.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// The texts of a batch, in one of two forms: B texts with N tokens each, padding included, or (with offsets) a single
/// row in which S texts of any lengths follow each other.
struct Texts {
  Tensor ids;           ///< [B, N] i64
  Tensor lengths = {};  ///< [B] i64: how many tokens of each text are real, 1 … N. They come first; undefined: all
  Tensor offsets = {};  ///< [S + 1] i64 of texts in one row (B = 1): where each begins, and at last N
};

/// The place of each token of a row in its text, [N] i64, by the offsets of the texts.
Tensor places_in_texts(const Tensor& offsets);
/// The tokens of the longest text.
std::int64_t longest_text(const Texts& texts);

/// The vectors of the places of texts' tokens: [N, D] from `begin` on, or those of a row of texts with offsets.
Tensor vectors_of_places(const nn::TokenPositions& positions, std::int64_t begin, std::int64_t count,
                         const Tensor& offsets);

/// Throws Error, naming the place, unless `ids` is [B, N] i64 with ids 0 … vocab_size - 1.
void check_token_ids(const Tensor& ids, std::int64_t vocab_size);

}  // namespace vitrail::models
