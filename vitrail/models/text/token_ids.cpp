#include "vitrail/models/text/token_ids.h"

#include <algorithm>

#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/error.h"

namespace vitrail::models {
namespace {

// The states [K, D] of the tokens at `places` of all tokens, one text behind the other.
Tensor states_at(const Tensor& states, const Tensor& places) {
  return ops::index_select(ops::reshape(states, {-1, states.size(2)}), 0, places);
}

}  // namespace

void TextRow::add(std::span<const std::int64_t> text) {
  ids_.insert(ids_.end(), text.begin(), text.end());
  offsets_.push_back(std::ssize(ids_));
}

Texts TextRow::texts() const {
  return {Tensor::from(ids_, {1, std::ssize(ids_)}), {}, Tensor::from(offsets_, {std::ssize(offsets_)})};
}

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

Tensor lengths_side_by_side(const Texts& texts) {
  if (!texts.offsets.defined()) {
    return texts.lengths;
  }
  const Tensor dense = texts.offsets.contiguous();
  const std::span<const std::int64_t> at = dense.span<std::int64_t>();
  Tensor lengths = Tensor::empty({std::ssize(at) - 1}, DType::i64);
  for (std::size_t s = 0; s + 1 < at.size(); ++s) {
    lengths.data<std::int64_t>()[s] = at[s + 1] - at[s];
  }
  return lengths;
}

Tensor places_side_by_side(const Texts& row) {
  Tensor places = places_in_texts(row.offsets);
  const Tensor dense = row.offsets.contiguous();
  const std::span<const std::int64_t> at = dense.span<std::int64_t>();
  const std::int64_t longest = longest_text(row);
  for (std::size_t s = 0; s + 1 < at.size(); ++s) {
    for (std::int64_t i = at[s]; i < at[s + 1]; ++i) {
      places.data<std::int64_t>()[i] += static_cast<std::int64_t>(s) * longest;
    }
  }
  return places;
}

Tensor ids_side_by_side(const Texts& texts) {
  if (!texts.offsets.defined()) {
    return texts.ids;
  }
  const Tensor places = places_side_by_side(texts);
  const Tensor row = texts.ids.contiguous();
  Tensor result = Tensor::zeros({texts.offsets.size(0) - 1, longest_text(texts)}, DType::i64);
  for (std::int64_t i = 0; i < places.size(0); ++i) {
    result.data<std::int64_t>()[places.data<std::int64_t>()[i]] = row.data<std::int64_t>()[i];
  }
  return result;
}

Tensor states_side_by_side(const Tensor& states, const Texts& row) {
  const Tensor dense = row.offsets.contiguous();
  const std::span<const std::int64_t> at = dense.span<std::int64_t>();
  const std::int64_t count = std::ssize(at) - 1;
  const std::int64_t longest = longest_text(row);
  Tensor places = Tensor::empty({count * longest}, DType::i64);
  std::int64_t* out = places.data<std::int64_t>();
  for (std::size_t s = 0; s + 1 < at.size(); ++s) {
    for (std::int64_t n = 0; n < longest; ++n) {
      *out++ = std::min(at[s] + n, at[s + 1] - 1);
    }
  }
  return ops::reshape(states_at(states, places), {count, longest, states.size(2)});
}

Tensor in_own_form(const Tensor& side_by_side, const Texts& texts) {
  return texts.offsets.defined() ? ops::unsqueeze(states_at(side_by_side, places_side_by_side(texts)), 0)
                                 : side_by_side;
}

Tensor first_states(const Tensor& states, const Texts& texts) {
  return texts.offsets.defined() ? states_at(states, texts.offsets.narrow(0, 0, texts.offsets.size(0) - 1))
                                 : ops::select(states, 1, 0);
}

Tensor last_states(const Tensor& states, const Texts& texts) {
  const bool in_a_row = texts.offsets.defined();
  const std::int64_t count = in_a_row ? texts.offsets.size(0) - 1 : states.size(0);
  const std::int64_t width = states.size(1);
  const Tensor ends = in_a_row ? texts.offsets.contiguous() : texts.lengths;
  Tensor places = Tensor::empty({count}, DType::i64);
  for (std::int64_t s = 0; s < count; ++s) {
    std::int64_t& place = places.data<std::int64_t>()[s];
    if (in_a_row) {
      place = ends.data<std::int64_t>()[s + 1] - 1;
      continue;
    }
    const std::int64_t real = ends.defined() ? ends.data<std::int64_t>()[s] : width;
    check(real >= 1 && real <= width, "text {} has {} of {} tokens", s, real, width);
    place = s * width + real - 1;
  }
  return states_at(states, places);
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
