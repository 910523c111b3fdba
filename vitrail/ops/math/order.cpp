#include "vitrail/ops/math/order.h"

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/choice.h"
#include "vitrail/kernels/gather.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/blocks.h"

namespace vitrail::ops {
namespace {

// The first k elements of x along `dim` in this order, recorded as `op`.
Ordered in_order(const char* op, const Tensor& x, int dim, std::int64_t k, bool descending) {
  const Tensor dense = x.contiguous();
  const Blocks from(x, dim);
  const Shape shape = x.shape().with(dim, k);
  Tensor indices = Tensor::empty(shape, DType::i64);
  kernels::order({dense.raw(), x.dtype(), from.outer, from.size, from.inner}, k, descending,
                 indices.data<std::int64_t>());
  Tensor values = Tensor::empty(shape, x.dtype());
  const kernels::ElementMap map{from.outer, from.size, from.inner, k, indices.data<std::int64_t>()};
  kernels::gather_mapped(map, dense.raw(), size_of(x.dtype()), values.raw());
  if (is_floating(x.dtype())) {
    values =
        autograd::record(op, std::move(values), {&x}, [dx = autograd::Gradient(x), indices, map](const Tensor& dy) {
          Tensor sums = Tensor::zeros(dx.shape());
          const Tensor given = dy.contiguous();
          kernels::scatter_add_mapped(map, given.raw(), given.dtype(), sums.data<float>());
          dx.add(dy.dtype() == DType::f32 ? std::move(sums) : cast(sums, dy.dtype()));
        });
  }
  return {values, indices};
}

}  // namespace

Ordered sort(const Tensor& x, int dim, bool descending) { return in_order("sort", x, dim, x.size(dim), descending); }

Ordered topk(const Tensor& x, std::int64_t k, int dim, bool largest) {
  check(k >= 0 && k <= x.size(dim), "topk(): {} of the {} elements along dimension {} of {} are asked for", k,
        x.size(dim), dim, x.shape());
  return in_order("topk", x, dim, k, largest);
}

}  // namespace vitrail::ops
