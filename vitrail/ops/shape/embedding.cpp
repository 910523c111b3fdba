#include "vitrail/ops/shape/embedding.h"

#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/gather.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/blocks.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;
using autograd::record;

// The indices, contiguous and detached; Error if one does not lie in 0 … size - 1.
Tensor checked(const char* op, const Tensor& indices, std::int64_t size) {
  check(indices.dtype() == DType::i64, "{}() needs indices of i64, not {}", op, name_of(indices.dtype()));
  const Tensor dense = indices.contiguous();
  std::int64_t position = 0;
  for (const std::int64_t index : dense.span<std::int64_t>()) {
    check(index >= 0 && index < size, "{}(): the index {} at position {} of {} does not lie in [0, {})", op, index,
          position, indices.shape(), size);
    ++position;
  }
  return dense.detach();
}

// The slices of x along `dim` at `indices`, one after another, as a tensor of `shape`; recorded as `op`. The slice at
// `unlearned`, unless it is -1, gets no gradient.
Tensor select_slices(const char* op, const Tensor& x, int dim, const Tensor& indices, const Shape& shape,
                     std::int64_t unlearned = -1) {
  const Tensor picked = checked(op, indices, x.size(dim));
  const Tensor dense = x.contiguous();
  const Blocks blocks(x, dim);
  Tensor result = Tensor::empty(shape, x.dtype());
  kernels::gather_slices(dense.raw(), blocks.outer, blocks.size,
                         static_cast<std::size_t>(blocks.inner) * size_of(x.dtype()), picked.span<std::int64_t>(),
                         result.raw());
  return record(op, std::move(result), {&x}, [dx = Gradient(x), picked, blocks, dim, unlearned](const Tensor& dy) {
    Tensor sums = Tensor::zeros(dx.shape());
    kernels::scatter_add_slices(dy.raw(), dy.dtype(), blocks.outer, blocks.size, blocks.inner,
                                picked.span<std::int64_t>(), sums.data<float>());
    if (unlearned >= 0) {
      sums.narrow(dim, unlearned, 1).fill(0);
    }
    dx.add(dy.dtype() == DType::f32 ? std::move(sums) : cast(sums, dy.dtype()));
  });
}

}  // namespace

Tensor embedding(const Tensor& table, const Tensor& indices, std::int64_t padding) {
  check(table.rank() == 2, "embedding() needs a table [V, D], not {}", table.shape());
  check(padding >= -1 && padding < table.size(0), "embedding() of {} has no row {} for padding", table.shape(),
        padding);
  return select_slices("embedding", table, 0, indices, indices.shape().inserted(-1, table.size(1)), padding);
}

Tensor index_select(const Tensor& x, int dim, const Tensor& indices) {
  check(indices.rank() == 1, "index_select() needs indices [K], not {}", indices.shape());
  return select_slices("index_select", x, dim, indices, x.shape().with(dim, indices.size(0)));
}

Tensor gather(const Tensor& x, int dim, const Tensor& indices) {
  check(indices.rank() == x.rank() && indices.shape().with(dim, 0) == x.shape().with(dim, 0),
        "gather() along dimension {} of {} cannot take indices of the shape {}", dim, x.shape(), indices.shape());
  const Tensor picked = checked("gather", indices, x.size(dim));
  const Tensor dense = x.contiguous();
  const Blocks from(x, dim);
  const Blocks to(indices, dim);
  Tensor result = Tensor::empty(indices.shape(), x.dtype());
  const kernels::ElementMap map{from.outer, from.size, from.inner, to.size, picked.data<std::int64_t>()};
  kernels::gather_mapped(map, dense.raw(), size_of(x.dtype()), result.raw());
  return record("gather", std::move(result), {&x}, [dx = Gradient(x), picked, map](const Tensor& dy) {
    Tensor sums = Tensor::zeros(dx.shape());
    kernels::scatter_add_mapped(map, dy.raw(), dy.dtype(), sums.data<float>());
    dx.add(dy.dtype() == DType::f32 ? std::move(sums) : cast(sums, dy.dtype()));
  });
}

}  // namespace vitrail::ops
