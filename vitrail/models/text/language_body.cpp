#include "vitrail/models/text/language_body.h"

#include <cstddef>
#include <span>

#include "vitrail/tensor/error.h"

namespace vitrail::models {

void check_ids(const Tensor& ids, std::int64_t vocab_size) {
  check(ids.rank() == 2 && ids.dtype() == DType::i64, "the model takes token ids [B, N] i64, not {} {}", ids.shape(),
        name_of(ids.dtype()));
  const Tensor dense = ids.contiguous();
  const std::span<const std::int64_t> values = dense.span<std::int64_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto length = static_cast<std::size_t>(ids.size(1));
    check(values[i] >= 0 && values[i] < vocab_size, "token {} of text {} is {}, but the vocabulary has the ids 0 … {}",
          i % length, i / length, values[i], vocab_size - 1);
  }
}

}  // namespace vitrail::models
