#include "vitrail/ops/math/reduce.h"

#include <array>
#include <cmath>
#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/elementwise.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/kernels/reduce.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/blocks.h"
#include "vitrail/ops/math/broadcast.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;
using autograd::record;
using kernels::Elementwise;
using kernels::Reduction;

// The shapes of a reduction.
struct Reduced {
  Reduced(const char* op, const Shape& from, const std::vector<int>& dims) : kept(from) {
    std::array<bool, Shape::max_rank> gone{};
    for (const int dim : dims) {
      bool& seen = gone[static_cast<std::size_t>(from.wrap(dim))];
      check(!seen, "{}() names dimension {} of {} twice", op, from.wrap(dim), from);
      seen = true;
    }
    for (int d = 0; d < from.rank(); ++d) {
      if (dims.empty() || gone[static_cast<std::size_t>(d)]) {
        kept[d] = 1;
        count *= from[d];
      } else {
        dropped = dropped.inserted(-1, from[d]);
      }
    }
  }
  const Shape& result(bool keep_dims) const { return keep_dims ? kept : dropped; }

  Shape kept;              // the reduced dimensions have size 1
  Shape dropped;           // the reduced dimensions are removed
  std::int64_t count = 1;  // number of elements that are reduced to one result
};

// x reduced to `kept`, not recorded.
Tensor reduced(Reduction reduction, const Tensor& x, const Shape& kept, float scale = 1) {
  Tensor result = Tensor::empty(kept, x.dtype());
  const std::array operands = {kernels::Operand{x.raw(), x.strides()}};
  kernels::reduce(reduction, operands, result.raw(), repeated_strides(kept, x.shape()), x.shape(), x.dtype(), scale);
  return result;
}

Tensor scaled_sum(const char* op, const Tensor& x, const Reduced& to, bool keep_dims, float scale) {
  check_floating(op, x);
  return record(op, reduced(Reduction::sum, x, to.kept, scale).reshape(to.result(keep_dims)), {&x},
                [dx = Gradient(x), kept = to.kept, scale](const Tensor& dy) {
                  dx.add(apply(Elementwise::affine, {dy.reshape(kept).expand(dx.shape())}, scale));
                });
}

Tensor extreme(const char* op, Reduction reduction, const Tensor& x, const std::vector<int>& dims, bool keep_dims) {
  check_floating(op, x);
  const Reduced to(op, x.shape(), dims);
  check(to.count > 0, "{}() over no elements of {} has no result", op, x.shape());
  const Tensor y = reduced(reduction, x, to.kept);
  return record(op, y.reshape(to.result(keep_dims)), {&x}, [dx = Gradient(x), x = x.detach(), y](const Tensor& dy) {
    const Tensor ties = sum_to(apply(Elementwise::equal, {x, y}), y.shape());
    const Tensor share = apply(Elementwise::divide, {dy.reshape(y.shape()), ties});
    dx.add(apply(Elementwise::where_equal, {share, x, y}));
  });
}

// Whether `x` takes the place of `best` as the largest: NaN counts as larger than anything, as in PyTorch.
template <class T>
bool beats(T x, T best) {
  if constexpr (std::is_same_v<T, bf16>) {
    return beats(static_cast<float>(x), static_cast<float>(best));
  } else if constexpr (std::is_floating_point_v<T>) {
    return x > best || (std::isnan(x) && !std::isnan(best));
  } else {
    return x > best;
  }
}

}  // namespace

Tensor sum(const Tensor& x, const std::vector<int>& dims, bool keep_dims) {
  return scaled_sum("sum", x, Reduced("sum", x.shape(), dims), keep_dims, 1);
}

Tensor mean(const Tensor& x, const std::vector<int>& dims, bool keep_dims) {
  const Reduced to("mean", x.shape(), dims);
  return scaled_sum("mean", x, to, keep_dims, 1.0F / static_cast<float>(to.count));
}

Tensor variance(const Tensor& x, const std::vector<int>& dims, bool keep_dims, bool unbiased) {
  check_floating("variance", x);
  const Reduced to("variance", x.shape(), dims);
  const Tensor values = cast(x.detach(), DType::f32);
  const Tensor mean = reduced(Reduction::sum, values, to.kept, 1.0F / static_cast<float>(to.count));
  const Tensor deviation = apply(Elementwise::subtract, {values, mean});
  const float scale = 1.0F / static_cast<float>(std::max<std::int64_t>(to.count - (unbiased ? 1 : 0), 0));
  const Tensor squares = sum_product_to(deviation, deviation, to.kept);
  const Tensor result = apply(Elementwise::affine, {squares}, scale);
  return record("variance", cast(result, x.dtype()).reshape(to.result(keep_dims)), {&x},
                [dx = Gradient(x), deviation, kept = to.kept, scale](const Tensor& dy) {
                  const Tensor wide = cast(dy.reshape(kept), DType::f32);
                  dx.add(cast(apply(Elementwise::multiply, {deviation, wide}, 2 * scale), dy.dtype()));
                });
}

Tensor amax(const Tensor& x, const std::vector<int>& dims, bool keep_dims) {
  return extreme("amax", Reduction::maximum, x, dims, keep_dims);
}

Tensor amin(const Tensor& x, const std::vector<int>& dims, bool keep_dims) {
  return extreme("amin", Reduction::minimum, x, dims, keep_dims);
}

Tensor argmax(const Tensor& x, int dim, bool keep_dims) {
  const Blocks blocks(x, dim);
  check(blocks.size > 0, "argmax() along the empty dimension {} of {} has no result", dim, x.shape());
  const Tensor dense = x.contiguous();
  Tensor result = Tensor::empty(keep_dims ? x.shape().with(dim, 1) : x.shape().removed(dim), DType::i64);
  auto* const out = result.data<std::int64_t>();
  visit(x.dtype(), [&]<class T>(T) {
    const T* const in = dense.data<T>();
    const std::int64_t grain = (1 << 14) / blocks.size + 1;
    kernels::parallel_for(blocks.outer * blocks.inner, grain, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* const row = in + i / blocks.inner * blocks.size * blocks.inner + i % blocks.inner;
        std::int64_t best = 0;
        for (std::int64_t k = 1; k < blocks.size; ++k) {
          best = beats(row[k * blocks.inner], row[best * blocks.inner]) ? k : best;
        }
        out[i] = best;
      }
    });
  });
  return result;
}

}  // namespace vitrail::ops
