/// \file
/// Eigenvectors of small symmetric matrices.
#pragma once

#include <cstdint>
#include <vector>

namespace vitrail {

/// The eigenvalues of a symmetric matrix [n, n] in falling order, and their eigenvectors of length 1.
struct SymmetricEigen {
  std::vector<double> values;   ///< [n]
  std::vector<double> vectors;  ///< [n, n], one in each row
};

/// Decomposes a symmetric matrix [n, n], given row by row, by Jacobi's rotations.
SymmetricEigen symmetric_eigen(std::vector<double> matrix, std::int64_t n);

}  // namespace vitrail
