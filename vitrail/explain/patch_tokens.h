/// \file
/// What the patches of images have in common: patch tokens compared, grouped and matched.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/models/model.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::explain {

/// The patch tokens of one image x [1, C, H, W], behind the last block and the model's norm: [rows, columns, D] f32.
/// Class and register tokens are left out; of a model that ends in a map, its pixels. Throws Error if the model's
/// features are not on a grid.
Tensor patch_tokens(const models::ImageModel& model, const Tensor& x, DType dtype = DType::f32);

/// Groups of points by k-means.
struct KMeans {
  Tensor centers;                    ///< [K, D] f32
  std::vector<std::int64_t> labels;  ///< [N]: the nearest centre of each point
  double inertia = 0;                ///< sum of the squared distances from there
  std::int64_t iterations = 0;
};

/// K different points of x [N, D] f32 to begin with: each is drawn with a probability that grows with the square of its
/// distance from the nearest before it (k-means++: Arthur & Vassilvitskii 2007), by `seed` alone. Throws Error if there
/// are not so many different points, or if a number is not finite.
Tensor kmeans_start(const Tensor& x, std::int64_t count, std::uint64_t seed);

/// Lloyd's algorithm from `start` [K, D], as scikit-learn's KMeans(init=start, n_init=1, max_iter, tol): it ends when
/// no point changes its group, or when the centres move by less than `tol` times the mean variance of the columns. A
/// group that has lost all its points begins anew at the point that is farthest from its centre.
KMeans kmeans(const Tensor& x, const Tensor& start, std::int64_t max_iter = 300, double tol = 1e-4);

/// Two tokens that are each other's nearest.
struct Match {
  std::int64_t first = 0;   ///< row of the first tensor
  std::int64_t second = 0;  ///< row of the second
  double similarity = 0;    ///< their cosine
};

/// The rows of a [N, D] and b [M, D] that are mutually nearest by their cosines, the most similar first.
std::vector<Match> mutual_matches(const Tensor& a, const Tensor& b);

}  // namespace vitrail::explain
