#include "vitrail/tensor/strided.h"

#include <algorithm>
#include <cstring>

#include "vitrail/tensor/error.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail {
namespace {

constexpr std::int64_t worth_threads = 1 << 15;  // elements from which several threads copy

// The outer dimensions of a copy's loop nest: those that are left when inner ones are removed. Operand 0 is written
// (`to`), operand 1 is read (`from`).
struct Outer {
  explicit Outer(const Loops& loops) : shape(loops.shape), to(loops.strides[0]), from(loops.strides[1]) {}
  void remove(int dim) {
    shape = shape.removed(dim);
    to = to.removed(dim);
    from = from.removed(dim);
  }
  Shape shape;
  Shape to;
  Shape from;
};

// Copies row by row along the last dimension. Long rows are cut into pieces, so that threads can share them.
template <class T>
void copy_rows(T* to, const T* from, const Loops& loops) {
  const std::int64_t to_step = loops.strides[0].back();
  const std::int64_t from_step = loops.strides[1].back();
  Outer outer(loops);
  outer.remove(-1);
  const std::int64_t length = loops.inner();
  constexpr std::int64_t longest = 1 << 13;
  const std::int64_t pieces = (length + longest - 1) / longest;
  const std::int64_t rows = outer.shape.numel();
#pragma omp parallel for schedule(static) if (rows * length > worth_threads)
  for (std::int64_t i = 0; i < rows * pieces; ++i) {
    const std::int64_t first = i % pieces * longest;
    const std::int64_t n = std::min(longest, length - first);
    T* const out = to + strided_offset(outer.shape, outer.to, i / pieces) + first * to_step;
    const T* const in = from + strided_offset(outer.shape, outer.from, i / pieces) + first * from_step;
    if (to_step == 1 && from_step == 1) {
      std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(T));
    } else {
      for (std::int64_t k = 0; k < n; ++k) {
        out[k * to_step] = in[k * from_step];
      }
    }
  }
}

// Copies where the destination is dense along the last dimension but the source along dimension `q`: tile by tile, so
// that each cache line is touched once on either side.
template <class T>
void copy_transposed(T* to, const T* from, const Loops& loops, int q) {
  constexpr std::int64_t edge = 64 / sizeof(T);
  const std::int64_t width = loops.inner();
  const std::int64_t height = loops.shape[q];
  const std::int64_t to_step = loops.strides[0][q];
  const std::int64_t from_step = loops.strides[1].back();
  Outer outer(loops);
  outer.remove(-1);
  outer.remove(q);
  const std::int64_t across = (width + edge - 1) / edge;
#pragma omp parallel for schedule(static) if (loops.shape.numel() > worth_threads)
  for (std::int64_t task = 0; task < outer.shape.numel() * across; ++task) {
    const std::int64_t x = task % across * edge;
    const std::int64_t columns = std::min(edge, width - x);
    T* const out = to + strided_offset(outer.shape, outer.to, task / across) + x;
    const T* const in = from + strided_offset(outer.shape, outer.from, task / across) + x * from_step;
    std::array<std::array<T, edge>, edge> tile;
    for (std::int64_t y = 0; y < height; y += edge) {
      const std::int64_t rows = std::min(edge, height - y);
      for (std::int64_t i = 0; i < columns; ++i) {
        std::memcpy(tile[static_cast<std::size_t>(i)].data(), in + i * from_step + y,
                    static_cast<std::size_t>(rows) * sizeof(T));
      }
      for (std::int64_t j = 0; j < rows; ++j) {
        for (std::int64_t i = 0; i < columns; ++i) {
          out[(y + j) * to_step + i] = tile[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
        }
      }
    }
  }
}

}  // namespace

Loops::Loops(const Shape& full, std::span<const Shape> full_strides) {
  check(full_strides.size() <= max_operands, "a loop nest takes {} operands at most", max_operands);
  const auto joins = [&](int outer, int inner) {
    return std::ranges::all_of(
        full_strides, [&](const Shape& s) { return s.begin()[outer] == s.begin()[inner] * full.begin()[inner]; });
  };
  // The dimensions are taken from the innermost outwards, so each is inserted at the front.
  int before = -1;  // the dimension of `full` that was taken last
  for (int d = full.rank() - 1; d >= 0; --d) {
    if (full[d] == 1) {
      continue;
    }
    if (before >= 0 && joins(d, before)) {
      shape[0] *= full[d];
    } else {
      shape = shape.inserted(0, full[d]);
      for (std::size_t k = 0; k < full_strides.size(); ++k) {
        strides[k] = strides[k].inserted(0, full_strides[k][d]);
      }
    }
    before = d;
  }
  if (shape.rank() == 0) {
    shape = {1};
    strides.fill({1});
  }
}

void copy_strided(std::byte* to, const Shape& to_strides, const std::byte* from, const Shape& from_strides,
                  const Shape& shape, DType dtype) {
  if (shape.numel() == 0) {
    return;
  }
  const std::array strides = {to_strides, from_strides};
  const Loops loops(shape, strides);
  const int last = loops.shape.rank() - 1;
  int dense = last;  // the dimension along which the source is dense
  for (int d = 0; d < last && loops.strides[1][last] > 1; ++d) {
    dense = loops.strides[1][d] == 1 && loops.shape[d] > 1 ? d : dense;
  }
  visit(dtype, [&]<class T>(T) {
    if (dense != last && loops.strides[0][last] == 1) {
      copy_transposed(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), loops, dense);
    } else {
      copy_rows(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), loops);
    }
  });
}

}  // namespace vitrail
