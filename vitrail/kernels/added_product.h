/// \file
/// Products in f32 that are added to the contents of their destination, by a kernel of our own, which prefetches the
/// destination while it multiplies.
#pragma once

#include <cstdint>

namespace vitrail::kernels {

/// The operands of c = relu(c + a · weight + bias), all f32 and row-major: a [rows, depth], weight [depth, columns], c
/// [rows, columns].
struct AddedProduct {
  std::int64_t rows, depth, columns;
  const float* a;
  const float* weight;  ///< packed by pack_weight() in blocks of 64 columns
  const float* bias;    ///< [columns] or null
  bool relu;            ///< whether the ReLU is applied
  float* c;
};

/// Computes c. Threads share the rows, or the columns where there are few rows.
void add_product(const AddedProduct& product);

}  // namespace vitrail::kernels
