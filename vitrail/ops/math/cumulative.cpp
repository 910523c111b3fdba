#include "vitrail/ops/math/cumulative.h"

#include <array>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/ops/math/blocks.h"
#include "vitrail/tensor/profile.h"

namespace vitrail::ops {
namespace {

constexpr std::int64_t columns_at_once = 32;

// The running sums of x [outer, size, inner], which is dense, from the first element or from the last one on.
template <class T, class Sum, class Result>
void running_sums(const T* x, const Blocks& blocks, bool from_the_end, Result* y) {
  const std::int64_t groups = (blocks.inner + columns_at_once - 1) / columns_at_once;
  const std::int64_t grain = kernels::rows_worth_a_thread(blocks.size * std::min(blocks.inner, columns_at_once));
  kernels::parallel_for(blocks.outer * groups, grain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % groups * columns_at_once;
      const std::int64_t columns = std::min(blocks.inner - first, columns_at_once);
      std::array<Sum, columns_at_once> sums{};
      for (std::int64_t k = 0; k < blocks.size; ++k) {
        const std::int64_t row = i / groups * blocks.size + (from_the_end ? blocks.size - 1 - k : k);
        const T* const in = x + row * blocks.inner + first;
        Result* const out = y + row * blocks.inner + first;
        for (std::int64_t c = 0; c < columns; ++c) {
          Sum& sum = sums[static_cast<std::size_t>(c)];
          if constexpr (std::is_same_v<T, bf16>) {
            sum += static_cast<Sum>(static_cast<float>(in[c]));
            out[c] = bf16(static_cast<float>(sum));
          } else {
            sum += static_cast<Sum>(in[c]);
            out[c] = static_cast<Result>(sum);
          }
        }
      }
    }
  });
}

Tensor running_sums(const Tensor& x, int dim, bool from_the_end) {
  const Tensor dense = x.contiguous();
  const Blocks blocks(x, dim);
  Tensor y = Tensor::empty(x.shape(), is_floating(x.dtype()) ? x.dtype() : DType::i64);
  Profile::traffic(x.numel(), x.dtype(), 2);
  visit(x.dtype(), [&]<class T>(T) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, bf16>) {
      running_sums<T, double>(dense.data<T>(), blocks, from_the_end, y.data<T>());
    } else {
      running_sums<T, std::int64_t>(dense.data<T>(), blocks, from_the_end, y.data<std::int64_t>());
    }
  });
  return y;
}

}  // namespace

Tensor cumsum(const Tensor& x, int dim) {
  Tensor y = running_sums(x, dim, false);
  if (!is_floating(x.dtype())) {
    return y;
  }
  return autograd::record("cumsum", y, {&x},
                          [dx = autograd::Gradient(x), dim](const Tensor& dy) { dx.add(running_sums(dy, dim, true)); });
}

}  // namespace vitrail::ops
