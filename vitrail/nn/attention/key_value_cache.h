/// \file
/// The keys and values of tokens that attention has seen already.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "vitrail/kernels/cached_attention.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// Where the tokens of several texts lie in the memory of KeyValueCaches: each token has a slot, the same one in the
/// caches of all layers. Texts that begin alike, such as the beams of a search, share the slots of their beginning, and
/// texts may be of any lengths (vLLM's paged attention with pages of one token: Kwon et al. 2023).
class TextSlots {
 public:
  std::int64_t texts() const { return std::ssize(slots_); }
  std::int64_t length(std::int64_t text) const { return std::ssize(slots_[static_cast<std::size_t>(text)]); }
  std::int64_t length() const;                      ///< of the longest text
  std::int64_t added() const { return added_; }     ///< tokens that the last extend() has added to each text
  std::int64_t slots() const { return capacity_; }  ///< all slots have lower numbers
  /// Whether there were tokens before the last extend(), which added so few that all keys are best read as they lie.
  bool reads_back() const { return added_ <= most_queries && length() > added_; }

  /// Adds `tokens` tokens to each of the texts, of which there must be `texts`; if there are none, they begin.
  void extend(std::int64_t texts, std::int64_t tokens);
  /// Keeps the texts at `indices`, in this order; a text may come several times. Without a token there are none to
  /// keep.
  void select(const std::vector<std::int64_t>& indices);
  /// Forgets the last `tokens` tokens of each text.
  void drop_last(std::int64_t tokens);
  /// Adds the texts of `other` behind these. Returns for each slot of `other` the slot here, or -1 if it is not used.
  std::vector<std::int32_t> join(const TextSlots& other);

  /// The slot of token i of text b, at place (b, i) of [B, length()] i32; behind the end of a text 0.
  Tensor table() const;
  Tensor lengths() const;  ///< [B] i64
  std::int32_t slot(std::int64_t text, std::int64_t token) const {
    return slots_[static_cast<std::size_t>(text)][static_cast<std::size_t>(token)];
  }

 private:
  static constexpr std::int64_t most_queries = 16;
  std::int32_t take();
  void find_free();

  std::vector<std::vector<std::int32_t>> slots_;  // of each text
  std::vector<std::int32_t> free_;                // below capacity_, the lowest last
  std::int64_t capacity_ = 0;
  std::int64_t added_ = 0;
};

/// The keys and values of one attention layer for the tokens of texts, so that a model that continues them computes
/// those of new tokens alone. The memory grows by a quarter at a time. Not for training.
class KeyValueCache {
 public:
  /// For the tokens of `texts`, which must outlive the cache. They are held in `dtype`: f32, bf16, or i8 with a scale
  /// for each token and head; unset: as they are given.
  explicit KeyValueCache(const TextSlots& texts, std::optional<DType> dtype = std::nullopt)
      : texts_(&texts), dtype_(dtype) {}

  /// Adds the keys [B, G, N, d] and values [B, G, N, e] of the N tokens that TextSlots::extend() has added to each
  /// text. Throws Error if their number, heads or widths are others.
  void append(const Tensor& keys, const Tensor& values);
  /// Takes over what `other` holds of the texts that TextSlots::join() has added, which returned `slots`.
  void join(const KeyValueCache& other, const std::vector<std::int32_t>& slots);

  const TextSlots& texts() const { return *texts_; }
  kernels::CachedRows keys() const { return shown(keys_); }      ///< [B, G, slots, d]: token i lies in its slot
  kernels::CachedRows values() const { return shown(values_); }  ///< [B, G, slots, e]
  /// All keys and values, copied one after the other as `dtype`: [B, G, length, d] and [B, G, length, e]. Throws Error
  /// if the texts differ in length.
  std::pair<Tensor, Tensor> gathered(DType dtype) const;
  std::size_t bytes() const;  ///< memory that is held

 private:
  // Rows [G, capacity, d], and of i8 scales [G, capacity].
  struct Rows {
    Tensor rows;
    Tensor scales;
  };
  void grow(Rows& rows, std::int64_t heads, std::int64_t width, DType dtype) const;
  void store(Rows& rows, const Tensor& x) const;
  Tensor gathered(const Rows& rows, DType dtype) const;
  kernels::CachedRows shown(const Rows& rows) const;

  const TextSlots* texts_;
  std::optional<DType> dtype_;
  Rows keys_;
  Rows values_;
};

}  // namespace vitrail::nn
