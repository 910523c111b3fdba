#include "vitrail/models/text/token_ids.h"

#include <algorithm>

#include "vitrail/ops/shape/embedding.h"
#include "vitrail/tensor/error.h"

namespace vitrail::models {

Tensor places_in_texts(const Tensor& offsets) {
  const Tensor dense = offsets.contiguous();
  const std::span<const std::int64_t> at = dense.span<std::int64_t>();
  Tensor places = Tensor::empty({at.back()}, DType::i64);
  for (std::size_t s = 0; s + 1 < at.size(); ++s) {
    for (std::int64_t i = at[s]; i < at[s + 1]; ++i) {
      places.data<std::int64_t>()[i] = i - at[s];
    }
  }
  return places;
}

std::int64_t longest_text(const Texts& texts) {
  if (!texts.offsets.defined()) {
    return texts.ids.size(1);
  }
  const Tensor dense = texts.offsets.contiguous();
  const std::span<const std::int64_t> at = dense.span<std::int64_t>();
  std::int64_t longest = 0;
  for (std::size_t s = 0; s + 1 < at.size(); ++s) {
    longest = std::max(longest, at[s + 1] - at[s]);
  }
  return longest;
}

Tensor vectors_of_places(const nn::TokenPositions& positions, std::int64_t begin, std::int64_t count,
                         const Tensor& offsets) {
  if (!offsets.defined()) {
    return positions(begin, count);
  }
  const Tensor table = positions(0, longest_text({.ids = {}, .offsets = offsets}));
  return table.defined() ? ops::index_select(table, 0, places_in_texts(offsets)) : table;
}

void check_token_ids(const Tensor& ids, std::int64_t vocab_size) {
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
