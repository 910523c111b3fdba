/// \file
/// How the recurrences walk through packed rows. For this folder's sources only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "vitrail/kernels/gather.h"
#include "vitrail/ops/recurrent/sequences.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// The rows of one step, and where the states before it are.
struct Place {
  std::int64_t row;        ///< the first row
  std::int64_t count;      ///< rows of the step
  std::int64_t before;     ///< the first row of the step before
  std::int64_t continued;  ///< how many sequences had a step before; the states of the others are the initial ones

  /// The rows of this step among all packed rows.
  Tensor of(const Tensor& rows) const { return rows.narrow(0, row, count); }
  /// The states [count, D] before this step; `after` [rows, D] are those after each step, `initial` [B, D] those before
  /// all, in the same dtype.
  Tensor states_before(const Tensor& after, const Tensor& initial) const {
    if (continued == count) {
      return after.narrow(0, before, count);
    }
    if (continued == 0) {
      return initial.narrow(0, 0, count);
    }
    Tensor result = Tensor::empty({count, after.size(1)}, after.dtype());
    result.narrow(0, 0, continued).copy_from(after.narrow(0, before, continued));
    copy_initial(initial, result);
    return result;
  }
  /// Copies the initial states among them to `to` [count, D].
  void copy_initial(const Tensor& initial, const Tensor& to) const {
    if (continued < count) {
      to.narrow(0, continued, count - continued).copy_from(initial.narrow(0, continued, count - continued));
    }
  }
};

/// The steps in the order in which a recurrence takes them.
class Walk {
 public:
  Walk(std::shared_ptr<const Steps> steps, bool reverse) : steps_(std::move(steps)), reverse_(reverse) {}

  const Steps& steps() const { return *steps_; }
  std::int64_t count() const { return steps_->count(); }

  /// The step that is taken as number i.
  Place operator[](std::int64_t i) const {
    const std::int64_t t = reverse_ ? count() - 1 - i : i;
    if (i == 0) {
      return {steps_->offset(t), steps_->size(t), 0, 0};
    }
    const std::int64_t before = reverse_ ? t + 1 : t - 1;
    return {steps_->offset(t), steps_->size(t), steps_->offset(before),
            std::min(steps_->size(t), steps_->size(before))};
  }

  /// The states [rows, D] before each step.
  Tensor states_before(const Tensor& after, const Tensor& initial) const {
    std::vector<std::int64_t> sources(static_cast<std::size_t>(steps_->rows()), -1);
    for (std::int64_t i = 0; i < count(); ++i) {
      const Place place = (*this)[i];
      std::iota(sources.begin() + place.row, sources.begin() + place.row + place.continued, place.before);
    }
    Tensor result = Tensor::empty_like(after);
    kernels::gather_slices(after.raw(), 1, steps_->rows(),
                           static_cast<std::size_t>(after.size(1)) * size_of(after.dtype()), sources, result.raw());
    for (std::int64_t i = 0; i < count(); ++i) {
      (*this)[i].copy_initial(initial, (*this)[i].of(result));
    }
    return result;
  }

  /// The rows [B, D] of `after` [rows, D] at the last step that is taken of each sequence.
  Tensor last(const Tensor& after) const {
    Tensor result = Tensor::empty({steps_->batch, after.size(1)}, after.dtype());
    for (std::int64_t t = 0; t < (reverse_ ? 1 : count()); ++t) {
      const std::int64_t end = reverse_ || t + 1 == count() ? 0 : steps_->size(t + 1);
      const std::int64_t ending = steps_->size(t) - end;
      if (ending > 0) {
        result.narrow(0, end, ending).copy_from(after.narrow(0, steps_->offset(t) + end, ending));
      }
    }
    return result;
  }

 private:
  std::shared_ptr<const Steps> steps_;
  bool reverse_;
};

/// `state` [B, D] as `dtype`, detached; zeros if it is undefined.
Tensor state_or_zeros(const Tensor& state, const Shape& shape, DType dtype);
/// Error unless `tensor` has this shape and is f32; `what` names it.
void check_f32(const char* what, const Tensor& tensor, const Shape& shape);

}  // namespace vitrail::ops
