// Products in f32 that are added to what is there, by a kernel of our own: it fetches that while it multiplies.
#pragma once

#include <cstdint>

namespace vitrail::kernels {

// c = relu(c + a · weight + bias): a [rows, depth], weight [depth, columns], c [rows, columns].
struct AddedProduct {
  std::int64_t rows, depth, columns;
  const float* a;
  const float* weight;  // as pack_weight() lays it out in blocks of 64 columns
  const float* bias;    // [columns] or null
  bool relu;            // or not
  float* c;
};

void add_product(const AddedProduct& product);

}  // namespace vitrail::kernels
