/// \file
/// The input of text models: ids of tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

/// Texts that are put one behind the other into a row.
class TextRow {
 public:
  void add(std::span<const std::int64_t> text);
  const std::vector<std::int64_t>& ids() const { return ids_; }  ///< of all texts
  Texts texts() const;

 private:
  std::vector<std::int64_t> ids_;
  std::vector<std::int64_t> offsets_ = {0};
};

/// The place of each token of a row in its text, [N] i64, by the offsets of the texts.
Tensor places_in_texts(const Tensor& offsets);
/// The tokens of the longest text.
std::int64_t longest_text(const Texts& texts);

/// The ids [S, longest] of texts in either form, padded with zeros.
Tensor ids_side_by_side(const Texts& texts);
/// The lengths [S] of texts in either form; undefined if none has padding.
Tensor lengths_side_by_side(const Texts& texts);
/// Where the tokens of a row would be if its texts lay side by side: [N] in [S · longest].
Tensor places_side_by_side(const Texts& row);
/// The states [S, longest, D] of texts side by side, of those of a row, [1, N, D]. At padding stands what the last
/// token of its text has.
Tensor states_side_by_side(const Tensor& states, const Texts& row);
/// The states of texts in their own form, [B, N, D], of those that they have side by side, [S, longest, D].
Tensor in_own_form(const Tensor& side_by_side, const Texts& texts);

/// The states [S, D] of the first token, or the last one, of each text, out of those of all tokens, [B, N, D].
Tensor first_states(const Tensor& states, const Texts& texts);
Tensor last_states(const Tensor& states, const Texts& texts);

/// The vectors of the places of texts' tokens: [N, D] from `begin` on, or those of a row of texts with offsets.
Tensor vectors_of_places(const nn::TokenPositions& positions, std::int64_t begin, std::int64_t count,
                         const Tensor& offsets);

/// Throws Error, naming the place, unless `ids` is [B, N] i64 with ids 0 … vocab_size - 1.
void check_token_ids(const Tensor& ids, std::int64_t vocab_size);

}  // namespace vitrail::models
