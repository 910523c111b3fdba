// Loops over tensors that lie in memory in any way.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/shape.h"

namespace vitrail {

// A loop nest over several operands with as few dimensions as possible: sizes of 1 are gone, and neighbouring
// dimensions that every operand walks in one go are one. Never without a dimension.
struct Loops {
  static constexpr int max_operands = 4;

  // The strides of each operand over `shape`, in elements; 0 repeats.
  Loops(const Shape& shape, std::span<const Shape> strides);

  std::int64_t inner() const { return shape.back(); }
  // How far from its start operand `k` is at element `index` of the nest, in row-major order.
  std::int64_t offset(int k, std::int64_t index) const;

  Shape shape;
  std::array<Shape, max_operands> strides;
};

// Offset of element `index`, in row-major order of `shape`, under `strides`.
inline std::int64_t strided_offset(const Shape& shape, const Shape& strides, std::int64_t index) {
  std::int64_t offset = 0;
  for (int d = shape.rank() - 1; d > 0; --d) {
    offset += index % shape.begin()[d] * strides.begin()[d];
    index /= shape.begin()[d];
  }
  return shape.rank() == 0 ? 0 : offset + index * strides.begin()[0];
}

inline std::int64_t Loops::offset(int k, std::int64_t index) const {
  return strided_offset(shape, strides[static_cast<std::size_t>(k)], index);
}

// out[i] = element begin + i of the nest for operand `k`, whose data begins at `data`; i < count.
template <class T>
void gather_elements(const Loops& loops, int k, const T* data, std::int64_t begin, std::int64_t count, T* out) {
  const std::int64_t inner = loops.inner();
  const std::int64_t step = loops.strides[static_cast<std::size_t>(k)].back();
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t length = std::min(count - done, inner - (begin + done) % inner);
    const T* from = data + loops.offset(k, begin + done);
    for (std::int64_t i = 0; i < length; ++i) {
      out[done + i] = from[i * step];
    }
    done += length;
  }
}

// Copies the elements of `shape` from one strided place to another that does not overlap it.
void copy_strided(std::byte* to, const Shape& to_strides, const std::byte* from, const Shape& from_strides,
                  const Shape& shape, DType dtype);

}  // namespace vitrail
