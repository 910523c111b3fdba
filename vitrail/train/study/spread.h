/// \file
/// How far embeddings are spread over the directions that there are, which tells whether a network has collapsed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/tensor/tensor.h"
#include "vitrail/train/figures.h"

namespace vitrail::train {

/// The spread of embeddings that are scaled to length 1.
struct EmbeddingSpread {
  /// The standard deviation over the images, averaged over the D dimensions, times √D: 1 where all directions are
  /// equally likely, 0 where all images have the same embedding.
  double deviation = 0;
  /// The number of directions that the embeddings differ in: e^H of the singular values of the embeddings minus their
  /// mean, divided by their sum (effective rank: Roy & Vetterli 2007). 0 if all embeddings are the same.
  double effective_rank = 0;
};
/// The spread of embeddings x [N, D] f32 of any lengths. Throws Error unless there are at least two, and all are
/// finite.
EmbeddingSpread embedding_spread(const Tensor& x);

/// The kinds of its figures, "deviation" and "effective_rank", and their values.
std::vector<FigureKind> spread_kinds();
Figures spread_figures(const EmbeddingSpread& spread);
/// A sentence about a collapse that the spread of embeddings of `width` numbers shows, and what to change, of which
/// `further` names more (" or a higher temperature"); "" if it shows none.
std::string collapse_of_spread(const EmbeddingSpread& spread, std::int64_t width, std::string_view further = "");

/// The eigenvalues of a symmetric matrix [n, n], given row by row, in ascending order: by Householder's reduction to a
/// tridiagonal matrix and QL steps with implicit shifts.
std::vector<double> symmetric_eigenvalues(std::vector<double> matrix, std::size_t n);

}  // namespace vitrail::train
