#include "vitrail/nn/attention/key_value_cache.h"

#include <algorithm>
#include <cstring>

#include "vitrail/kernels/int8.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::nn {
namespace {

constexpr std::int64_t least_capacity = 64;

// The row of a tensor [G, capacity, …] at (head, slot).
std::byte* row_at(const Tensor& x, std::int64_t head, std::int64_t slot) {
  const std::int64_t width = x.rank() == 3 ? x.size(2) : 1;
  return x.raw() + static_cast<std::size_t>((head * x.size(1) + slot) * width) * size_of(x.dtype());
}

std::size_t row_bytes(const Tensor& x) {
  return static_cast<std::size_t>(x.rank() == 3 ? x.size(2) : 1) * size_of(x.dtype());
}

// x [G, capacity, …] with room for `capacity` slots.
Tensor enlarged(const Tensor& x, std::int64_t capacity) {
  const Tensor larger = Tensor::empty(x.shape().with(1, capacity), x.dtype());
  larger.narrow(1, 0, x.size(1)).copy_from(x);
  return larger;
}

}  // namespace

std::int64_t TextSlots::length() const {
  std::int64_t longest = 0;
  for (std::int64_t text = 0; text < texts(); ++text) {
    longest = std::max(longest, length(text));
  }
  return longest;
}

std::int32_t TextSlots::take() {
  if (free_.empty()) {
    return static_cast<std::int32_t>(capacity_++);
  }
  const std::int32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void TextSlots::find_free() {
  std::vector<bool> used(static_cast<std::size_t>(capacity_), false);
  for (const auto& text : slots_) {
    for (const std::int32_t slot : text) {
      used[static_cast<std::size_t>(slot)] = true;
    }
  }
  free_.clear();
  for (std::int64_t slot = capacity_ - 1; slot >= 0; --slot) {
    if (!used[static_cast<std::size_t>(slot)]) {
      free_.push_back(static_cast<std::int32_t>(slot));
    }
  }
}

void TextSlots::extend(std::int64_t count, std::int64_t tokens) {
  if (slots_.empty()) {
    slots_.resize(static_cast<std::size_t>(count));
  }
  check(count == texts(), "the cache holds {} texts, to which tokens of {} cannot be added", texts(), count);
  for (auto& text : slots_) {
    for (std::int64_t i = 0; i < tokens; ++i) {
      text.push_back(take());
    }
  }
  added_ = tokens;
}

void TextSlots::select(const std::vector<std::int64_t>& indices) {
  if (slots_.empty()) {  // texts of which nothing has been read: extend() says how many there are
    return;
  }
  std::vector<std::vector<std::int32_t>> chosen;
  chosen.reserve(indices.size());
  for (const std::int64_t index : indices) {
    chosen.push_back(slots_.at(static_cast<std::size_t>(index)));
  }
  slots_ = std::move(chosen);
  find_free();
}

void TextSlots::drop_last(std::int64_t tokens) {
  for (auto& text : slots_) {
    check(tokens >= 0 && tokens <= std::ssize(text), "the cache holds {} tokens of a text, not {}", text.size(),
          tokens);
    text.resize(text.size() - static_cast<std::size_t>(tokens));
  }
  find_free();
}

std::vector<std::int32_t> TextSlots::join(const TextSlots& other) {
  std::vector<std::int32_t> here(static_cast<std::size_t>(other.capacity_), -1);
  for (const auto& text : other.slots_) {
    auto& own = slots_.emplace_back();
    for (const std::int32_t slot : text) {
      std::int32_t& to = here[static_cast<std::size_t>(slot)];
      to = to < 0 ? take() : to;
      own.push_back(to);
    }
  }
  return here;
}

Tensor TextSlots::table() const {
  const Tensor result = Tensor::zeros({texts(), length()}, DType::i32);
  for (std::int64_t text = 0; text < texts(); ++text) {
    std::ranges::copy(slots_[static_cast<std::size_t>(text)], result.data<std::int32_t>() + text * result.size(1));
  }
  return result;
}

Tensor TextSlots::lengths() const {
  const Tensor result = Tensor::empty({texts()}, DType::i64);
  for (std::int64_t text = 0; text < texts(); ++text) {
    result.data<std::int64_t>()[text] = length(text);
  }
  return result;
}

void KeyValueCache::grow(Rows& rows, std::int64_t heads, std::int64_t width, DType dtype) const {
  const std::int64_t held = rows.rows.defined() ? rows.rows.size(1) : 0;
  if (held >= texts_->slots() && held > 0) {
    return;
  }
  const std::int64_t capacity = std::max({texts_->slots(), least_capacity, held + held / 4});
  if (held == 0) {
    rows.rows = Tensor::empty({heads, capacity, width}, dtype);
    rows.scales = dtype == DType::i8 ? Tensor::empty({heads, capacity}) : Tensor();
    return;
  }
  rows.rows = enlarged(rows.rows, capacity);
  rows.scales = rows.scales.defined() ? enlarged(rows.scales, capacity) : Tensor();
}

void KeyValueCache::store(Rows& rows, const Tensor& x) const {
  const std::int64_t heads = x.size(1), tokens = x.size(2), width = x.size(3);
  check(x.size(0) == texts_->texts() && tokens == texts_->added() &&
            (!rows.rows.defined() || (rows.rows.size(0) == heads && rows.rows.size(2) == width)),
        "the cache of {} texts holds rows {}, to which {} cannot be added", texts_->texts(),
        rows.rows.defined() ? rows.rows.shape() : Shape{}, x.shape());
  grow(rows, heads, width, dtype_.value_or(x.dtype()));
  const Tensor dense = x.detach().contiguous();
  const bool rounds = rows.rows.dtype() == DType::i8;
  const Tensor scales = rounds ? Tensor::empty({dense.numel() / width}) : Tensor();
  const Tensor held = rounds ? Tensor::empty({dense.numel() / width, width}, DType::i8)
                             : ops::cast(dense, rows.rows.dtype()).reshape({dense.numel() / width, width});
  if (rounds) {
    kernels::quantize_rows(dense.reshape(held.shape()), {}, held, scales);
  }
  const std::byte* from = held.raw();
  std::int64_t row = 0;
  for (std::int64_t text = 0; text < x.size(0); ++text) {
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t i = 0; i < tokens; ++i, ++row, from += row_bytes(rows.rows)) {
        const std::int64_t slot = texts_->slot(text, texts_->length(text) - tokens + i);
        std::memcpy(row_at(rows.rows, head, slot), from, row_bytes(rows.rows));
        if (rounds) {
          std::memcpy(row_at(rows.scales, head, slot), scales.data<float>() + row, sizeof(float));
        }
      }
    }
  }
}

void KeyValueCache::append(const Tensor& keys, const Tensor& values) {
  store(keys_, keys);
  store(values_, values);
}

void KeyValueCache::join(const KeyValueCache& other, const std::vector<std::int32_t>& slots) {
  for (const auto& [to, from] : {std::pair(&keys_, &other.keys_), {&values_, &other.values_}}) {
    if (!from->rows.defined()) {
      continue;
    }
    check(!to->rows.defined() || to->rows.shape().with(1, 0) == from->rows.shape().with(1, 0),
          "a cache of rows {} cannot take over those of rows {}", to->rows.shape(), from->rows.shape());
    grow(*to, from->rows.size(0), from->rows.size(2), from->rows.dtype());
    for (std::int64_t head = 0; head < from->rows.size(0); ++head) {
      for (std::int64_t slot = 0; slot < std::ssize(slots); ++slot) {
        const std::int64_t here = slots[static_cast<std::size_t>(slot)];
        if (here < 0) {
          continue;
        }
        std::memcpy(row_at(to->rows, head, here), row_at(from->rows, head, slot), row_bytes(to->rows));
        if (to->scales.defined()) {
          std::memcpy(row_at(to->scales, head, here), row_at(from->scales, head, slot), sizeof(float));
        }
      }
    }
  }
}

kernels::CachedRows KeyValueCache::shown(const Rows& rows) const {
  const std::int64_t texts = texts_->texts();
  const Tensor scales = rows.scales.defined() ? rows.scales.expand(rows.scales.shape().inserted(0, texts)) : Tensor();
  return {rows.rows.expand(rows.rows.shape().inserted(0, texts)), scales};
}

Tensor KeyValueCache::gathered(const Rows& rows, DType dtype) const {
  const std::int64_t texts = texts_->texts(), length = texts_->length();
  const std::int64_t heads = rows.rows.size(0), width = rows.rows.size(2);
  const Tensor all = Tensor::empty({texts, heads, length, width}, rows.rows.dtype());
  const Tensor scales = rows.scales.defined() ? Tensor::empty({texts, heads, length, 1}) : Tensor();
  std::byte* to = all.raw();
  std::int64_t row = 0;
  for (std::int64_t text = 0; text < texts; ++text) {
    check(texts_->length(text) == length, "the cache holds texts of {} and of {} tokens, which are no batch",
          texts_->length(text), length);
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t i = 0; i < length; ++i, ++row, to += row_bytes(rows.rows)) {
        const std::int64_t slot = texts_->slot(text, i);
        std::memcpy(to, row_at(rows.rows, head, slot), row_bytes(rows.rows));
        if (scales.defined()) {
          std::memcpy(scales.data<float>() + row, row_at(rows.scales, head, slot), sizeof(float));
        }
      }
    }
  }
  return ops::cast(scales.defined() ? ops::multiply(ops::cast(all, DType::f32), scales) : all, dtype);
}

std::pair<Tensor, Tensor> KeyValueCache::gathered(DType dtype) const {
  return {gathered(keys_, dtype), gathered(values_, dtype)};
}

std::size_t KeyValueCache::bytes() const {
  std::size_t total = 0;
  for (const Tensor* x : {&keys_.rows, &keys_.scales, &values_.rows, &values_.scales}) {
    total += x->defined() ? x->bytes() : 0;
  }
  return total;
}

}  // namespace vitrail::nn
