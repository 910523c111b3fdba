/// \file
/// Sequences of unequal length, packed step by step so that no padding is computed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// The steps of a batch of sequences, as in torch's PackedSequence: the sequences are sorted by length, the longest
/// first, so that step t works on the first sizes[t] of them. Rows are packed step by step.
struct Steps {
  std::int64_t batch;                 ///< number of sequences
  std::int64_t time;                  ///< size of the dimension of time, with padding
  std::vector<std::int64_t> order;    ///< [batch]: which sequence is the first, the second …
  std::vector<std::int64_t> sizes;    ///< how many sequences have a step t, for all t that any has
  std::vector<std::int64_t> offsets;  ///< the first row of step t, and behind the last one the number of rows

  std::int64_t count() const { return static_cast<std::int64_t>(sizes.size()); }
  std::int64_t rows() const { return offsets.back(); }
  std::int64_t size(std::int64_t t) const { return sizes[static_cast<std::size_t>(t)]; }
  std::int64_t offset(std::int64_t t) const { return offsets[static_cast<std::size_t>(t)]; }
  bool equal() const { return rows() == batch * time; }  ///< whether no sequence has padding
  /// order, or its inverse, as indices for index_select().
  Tensor sorting() const;
  Tensor unsorting() const;
};

/// The steps of `batch` sequences in a dimension of `time`, both at least 1. `lengths` [batch] i64 in 1 … time, or
/// undefined: all are as long as `time`. The Error names the first length that is not.
std::shared_ptr<const Steps> steps_of(std::int64_t batch, std::int64_t time, const Tensor& lengths = {});

/// Which dimension of sequences comes first.
enum class Layout { batch_first, time_first };

/// The rows [rows, D] of sequences x [B, T, D] or [T, B, D].
Tensor pack(const Tensor& x, const std::shared_ptr<const Steps>& steps, Layout layout = Layout::batch_first);
/// The sequences [B, T, D] or [T, B, D] of rows [rows, D]; 0 behind the end of each.
Tensor unpack(const Tensor& rows, const std::shared_ptr<const Steps>& steps, Layout layout = Layout::batch_first);

}  // namespace vitrail::ops
