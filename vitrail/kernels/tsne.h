/// \file
/// The forces between the points of a t-SNE map.
#pragma once

#include <cstdint>

namespace vitrail::kernels {

/// N points (x_i, y_i) of a map, and the similarities p [N, N] that they are to have, row by row.
struct TsnePoints {
  std::int64_t count = 0;
  const float* x = nullptr;
  const float* y = nullptr;
  const float* p = nullptr;
};

/// With q_ij = 1 / (1 + |y_i - y_j|²) for i ≠ j, sums over j the two parts of the gradient of t-SNE's objective (van
/// der Maaten & Hinton 2008, eq. 5) for each point i: attraction[2 i …] = Σ p_ij q_ij (y_i - y_j), and repulsion[2 i …]
/// = Σ q_ij² (y_i - y_j). Returns Z = Σ_ij q_ij; the gradient is 4 (attraction - repulsion / Z).
double tsne_forces(const TsnePoints& points, float* attraction, float* repulsion);

}  // namespace vitrail::kernels
