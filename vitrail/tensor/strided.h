/// \file
/// Loops over tensors of any strides.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/shape.h"

namespace vitrail {

/// A loop nest over up to four operands with as few dimensions as possible: dimensions of size 1 are removed, and
/// adjacent dimensions that every operand can traverse with a single stride are merged. At least one dimension remains.
struct Loops {
  static constexpr int max_operands = 4;

  /// `strides` are those of each operand over `shape`, in elements; a stride of 0 repeats an element.
  Loops(const Shape& shape, std::span<const Shape> strides);

  std::int64_t inner() const { return shape.back(); }
  /// The offset in operand `k`, in elements, of element `index` of the nest in row-major order.
  std::int64_t offset(int k, std::int64_t index) const;

  Shape shape;
  std::array<Shape, max_operands> strides;
};

/// The offset, in elements, of element `index` in row-major order of `shape`, in memory with these strides.
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

/// Copies elements of operand `k`, whose data begins at `data`: out[i] = element begin + i of the nest, for i < count.
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

/// Copies the elements of a tensor of `shape` and `dtype` between two places in memory, each with its own strides (in
/// elements). The places must not overlap.
void copy_strided(std::byte* to, const Shape& to_strides, const std::byte* from, const Shape& from_strides,
                  const Shape& shape, DType dtype);

}  // namespace vitrail
