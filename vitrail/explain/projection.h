/// \file
/// Features in two dimensions: principal components and t-SNE.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::explain {

/// The principal components of N points.
struct Pca {
  Tensor components;                             ///< [K, D] f32 of length 1, the largest element of each is positive
  Tensor mean;                                   ///< [D] f32
  Tensor coordinates;                            ///< [N, K] f32: (x - mean) · componentsᵀ
  std::vector<double> explained_variance_ratio;  ///< [K]: the share of the variance along each of them
};

/// The first `count` principal components of x [N, D] f32, up to signs those of scikit-learn's PCA. Throws Error unless
/// 1 <= count <= min(N, D), or if a number is not finite.
Pca pca(const Tensor& x, std::int64_t count);

/// The options of tsne(), named as those of scikit-learn's TSNE.
struct TsneOptions {
  double perplexity = 30;                              ///< how many neighbours count, about
  double early_exaggeration = 12;                      ///< factor of the similarities in the first 250 iterations
  std::optional<double> learning_rate = std::nullopt;  ///< unset: N / early_exaggeration / 4, at least 50
  std::int64_t iterations = 1000;
};

/// A map of points by t-SNE.
struct Tsne {
  Tensor coordinates;           ///< [N, 2] f32
  double kl_divergence = 0;     ///< what was minimized
  std::int64_t iterations = 0;  ///< that were done: fewer than asked for if the gradient has vanished
};

constexpr std::int64_t most_tsne_points = 20000;  ///< their similarities take 1.6 GB

/// t-SNE of x [N, D] f32 (van der Maaten & Hinton 2008), exact, as scikit-learn's TSNE(method="exact", init="pca"): it
/// begins with the first two principal components, and draws nothing. `advance` is called with the number of iterations
/// done, and may throw to end the work. Takes memory for N² numbers. Throws Error if there are too many points or too
/// few for the perplexity, or if a number is not finite.
Tsne tsne(const Tensor& x, const TsneOptions& options = {}, const std::function<void(std::int64_t done)>& advance = {});

/// How far neighbours in a map y [N, K] are neighbours of x [N, D] too, 0 … 1 (Venna & Kaski 2001; scikit-learn's
/// function of this name). Throws Error unless neighbors < N / 2.
double trustworthiness(const Tensor& x, const Tensor& y, std::int64_t neighbors = 5);

}  // namespace vitrail::explain
