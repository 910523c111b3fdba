#include "vitrail/ops/products/matmul.h"

#include <algorithm>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

// The leading dimensions of a matrix operand.
Shape batch_of(const Tensor& x) { return Shape(std::span(x.shape().begin(), static_cast<std::size_t>(x.rank() - 2))); }

Shape matrix_shape(Shape batch, std::int64_t rows, std::int64_t columns) {
  return batch.inserted(batch.rank(), rows).inserted(batch.rank() + 1, columns);
}

// x with dimensions of size 1 in front, up to `rank` dimensions.
Tensor with_rank(Tensor x, int rank) {
  while (x.rank() < rank) {
    x = x.unsqueeze(0);
  }
  return x;
}

// a [..., M, K] · b [..., K, N] → [..., M, N] in `dtype`.
Tensor product(const Tensor& a, const Tensor& b, DType dtype) {
  const Tensor c = Tensor::empty(matrix_shape(broadcast(batch_of(a), batch_of(b)), a.size(-2), b.size(-1)), dtype);
  if (b.rank() == 2 && a.rank() > 2) {  // one matrix for the whole batch, which then only adds rows
    const std::int64_t rows = c.numel() == 0 ? 0 : c.numel() / c.size(-1);
    if (rows > 0) {
      kernels::matmul(a.reshape({rows, a.size(-1)}), b, c.reshape({rows, c.size(-1)}));
    }
    return c;
  }
  kernels::matmul(with_rank(a, c.rank()), with_rank(b, c.rank()), c);
  return c;
}

// a · b summed (in f32) over the leading dimensions in which the operand of shape `wanted` was broadcast.
Tensor reduced_product(const Tensor& a, const Tensor& b, const Shape& wanted, DType dtype) {
  const Shape batch = broadcast(batch_of(a), batch_of(b));
  std::vector<int> repeated;
  for (int d = 0; d < batch.rank(); ++d) {
    const int own = d - (batch.rank() + 2 - wanted.rank());
    if (own < 0 || (wanted[own] == 1 && batch[d] != 1)) {
      repeated.push_back(d);
    }
  }
  if (repeated.empty()) {
    return product(a, b, dtype);
  }
  if (wanted.rank() == 2) {  // the sum over the batch is one product whose inner dimension includes the batch
    const int rank = batch.rank() + 2;
    const Tensor left = with_rank(a, rank).expand(matrix_shape(batch, a.size(-2), a.size(-1)));
    const Tensor right = with_rank(b, rank).expand(matrix_shape(batch, b.size(-2), b.size(-1)));
    const std::int64_t inner = batch.numel() * a.size(-1);
    const Tensor columns = left.transpose(-1, -2).reshape({inner, a.size(-2)}).transpose(0, 1);
    return product(columns, right.reshape({inner, b.size(-1)}), dtype);
  }
  return cast(sum(product(a, b, DType::f32), repeated).reshape(wanted), dtype);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check(a.rank() >= 1 && b.rank() >= 1, "matmul: the operands {} and {} need at least one dimension", a.shape(),
        b.shape());
  check(is_floating(a.dtype()) && a.dtype() == b.dtype(),
        "matmul: both operands must be f32 or both bf16, not {} and {}", name_of(a.dtype()), name_of(b.dtype()));
  const Tensor left = a.rank() == 1 ? a.detach().unsqueeze(0) : a.detach();
  const Tensor right = b.rank() == 1 ? b.detach().unsqueeze(1) : b.detach();
  check(left.size(-1) == right.size(-2), "matmul: {} · {}: the inner sizes {} and {} differ", a.shape(), b.shape(),
        left.size(-1), right.size(-2));
  Tensor c = product(left, right, a.dtype());
  const Shape full = c.shape();
  if (b.rank() == 1) {
    c = c.squeeze(-1);
  }
  if (a.rank() == 1) {
    c = c.squeeze(b.rank() == 1 ? -1 : -2);
  }
  return autograd::record(
      "matmul", c, {&a, &b}, [left, right, full, da = Gradient(a), db = Gradient(b)](const Tensor& dc) {
        const Tensor dy = dc.reshape(full);
        if (da.wanted()) {  // da = dc bᵀ
          da.add(reduced_product(dy, right.transpose(-1, -2), left.shape(), dy.dtype()).reshape(da.shape()));
        }
        if (db.wanted()) {  // db = aᵀ dc
          db.add(reduced_product(left.transpose(-1, -2), dy, right.shape(), dy.dtype()).reshape(db.shape()));
        }
      });
}

}  // namespace vitrail::ops
