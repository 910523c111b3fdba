#include "vitrail/ops/attention/cached_attention.h"

#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/dense.h"

namespace vitrail::ops {
namespace {

void check_cached(const char* what, const Tensor& q, const CachedRows& cached) {
  const Tensor& x = cached.rows;
  check(x.rank() == 4 && x.size(0) == q.size(0) && x.size(1) > 0 && q.size(1) % x.size(1) == 0 && is_dense_last(x),
        "cached_attention: the {} must be [B, G, M, d] with the batch of q {} and a divisor of its heads, not {}", what,
        q.shape(), x.shape());
  const bool scaled = x.dtype() == DType::i8;
  check(scaled ? cached.scales.defined() && cached.scales.dtype() == DType::f32 &&
                     cached.scales.shape() == x.shape().removed(3)
               : is_floating(x.dtype()),
        "cached_attention: the {} must be f32, bf16, or i8 with a scale for each row, not {}", what,
        name_of(x.dtype()));
}

}  // namespace

Tensor cached_attention(const Tensor& q, const CachedRows& keys, const CachedRows& values, const CachedScores& scores) {
  check(q.rank() == 4 && is_floating(q.dtype()), "cached_attention: q must be [B, H, N, d] f32 or bf16, not {} {}",
        q.shape(), name_of(q.dtype()));
  check_cached("keys", q, keys);
  check_cached("values", q, values);
  check(keys.rows.size(3) == q.size(3) && keys.rows.dtype() == values.rows.dtype() &&
            keys.rows.shape().with(3, 0) == values.rows.shape().with(3, 0),
        "cached_attention: keys {} and values {} must have the same tokens and dtype, and keys the width of q {}",
        keys.rows.shape(), values.rows.shape(), q.shape());
  check(!autograd::recording({&q, &keys.rows, &values.rows}), "cached_attention: there is no gradient");
  const Tensor out = Tensor::empty({q.size(0), q.size(2), q.size(1), values.rows.size(3)}, q.dtype()).transpose(1, 2);
  kernels::cached_attention(dense_last(q.detach()), keys, values, scores, out);
  return autograd::record("cached_attention", out, {}, [](const Tensor&) {});
}

}  // namespace vitrail::ops
