#include "vitrail/nn/attention/key_value_cache.h"

#include <algorithm>

namespace vitrail::nn {
namespace {

constexpr std::int64_t least_capacity = 64;

// A tensor like `held`, or for rows like `added` if there is none, with room for `capacity` tokens and the first
// `length` of them copied.
Tensor with_capacity(const Tensor& held, const Tensor& added, std::int64_t capacity, std::int64_t length) {
  const Tensor larger = Tensor::empty(added.shape().with(2, capacity), added.dtype());
  if (length > 0) {
    larger.narrow(2, 0, length).copy_from(held.narrow(2, 0, length));
  }
  return larger;
}

Tensor selected(const Tensor& held, const std::vector<std::int64_t>& indices, std::int64_t length) {
  const Tensor result = Tensor::empty(held.shape().with(0, std::ssize(indices)), held.dtype());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const Tensor from = held.narrow(0, indices[i], 1).narrow(2, 0, length);
    result.narrow(0, static_cast<std::int64_t>(i), 1).narrow(2, 0, length).copy_from(from);
  }
  return result;
}

}  // namespace

std::pair<Tensor, Tensor> KeyValueCache::append(const Tensor& keys, const Tensor& values) {
  const std::int64_t total = length_ + keys.size(2);
  if (keys_.defined()) {
    const auto agree = [](const Tensor& held, const Tensor& added) {
      return held.dtype() == added.dtype() && held.shape() == added.shape().with(2, held.size(2));
    };
    check(agree(keys_, keys) && agree(values_, values), "the cache holds keys {} {}, to which {} {} cannot be added",
          keys_.shape(), name_of(keys_.dtype()), keys.shape(), name_of(keys.dtype()));
  }
  if (!keys_.defined() || keys_.size(2) < total) {
    const std::int64_t capacity = std::max({total, least_capacity, keys_.defined() ? 2 * keys_.size(2) : 0});
    keys_ = with_capacity(keys_, keys, capacity, length_);
    values_ = with_capacity(values_, values, capacity, length_);
  }
  keys_.narrow(2, length_, keys.size(2)).copy_from(keys.detach());
  values_.narrow(2, length_, values.size(2)).copy_from(values.detach());
  length_ = total;
  return {keys_.narrow(2, 0, total), values_.narrow(2, 0, total)};
}

void KeyValueCache::select(const std::vector<std::int64_t>& indices) {
  if (keys_.defined()) {
    keys_ = selected(keys_, indices, length_);
    values_ = selected(values_, indices, length_);
  }
}

void KeyValueCache::truncate(std::int64_t length) {
  check(length >= 0 && length <= length_, "the cache holds {} tokens, not {}", length_, length);
  length_ = length;
}

}  // namespace vitrail::nn
