#include "vitrail/ops/math/multinomial.h"

#include <algorithm>
#include <cmath>

#include "vitrail/kernels/choice.h"
#include "vitrail/kernels/parallel.h"

namespace vitrail::ops {

Tensor multinomial(const Tensor& weights, std::int64_t num_samples, bool replacement, const Philox& draws) {
  check((weights.rank() == 1 || weights.rank() == 2) && weights.dtype() == DType::f32 && weights.size(-1) > 0,
        "multinomial() needs weights [N, C] or [C] f32, not {} {}", weights.shape(), name_of(weights.dtype()));
  check(num_samples >= 1, "multinomial() draws at least one index, not {}", num_samples);
  const Tensor dense = weights.contiguous();
  const std::int64_t categories = weights.size(-1);
  const std::int64_t rows = weights.rank() == 2 ? weights.size(0) : 1;
  const auto row_of = [&](std::int64_t row) {
    return dense.span<float>().subspan(static_cast<std::size_t>(row * categories),
                                       static_cast<std::size_t>(categories));
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t possible = 0;
    for (const float weight : row_of(row)) {
      check(std::isfinite(weight) && weight >= 0, "multinomial(): row {} has the weight {}", row, weight);
      possible += weight > 0 ? 1 : 0;
    }
    check(possible > 0, "multinomial(): all weights of row {} are 0", row);
    check(replacement || num_samples <= possible,
          "multinomial(): {} of the {} indices of row {} that have a weight cannot be drawn without replacement",
          num_samples, possible, row);
  }
  Tensor result = Tensor::empty(weights.shape().with(-1, num_samples), DType::i64);
  const std::int64_t numbers = replacement || num_samples == 1 ? num_samples : categories;  // of a row
  kernels::parallel_for(
      rows, kernels::rows_worth_a_thread(categories), [&](std::int64_t begin, std::int64_t end, int /*thread*/) {
        for (std::int64_t row = begin; row < end; ++row) {
          kernels::draw_many(row_of(row), replacement, draws, static_cast<std::uint64_t>(row * numbers),
                             {result.data<std::int64_t>() + row * num_samples, static_cast<std::size_t>(num_samples)});
        }
      });
  return result;
}

}  // namespace vitrail::ops
