/// \file
/// How the recurrences walk through packed rows. For this folder's sources only.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

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
    copy_before(after, initial, result);
    return result;
  }
  /// Copies them.
  void copy_before(const Tensor& after, const Tensor& initial, const Tensor& to) const {
    if (continued > 0) {
      to.narrow(0, 0, continued).copy_from(after.narrow(0, before, continued));
    }
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
    Tensor result = Tensor::empty_like(after);
    for (std::int64_t i = 0; i < count(); ++i) {
      (*this)[i].copy_before(after, initial, (*this)[i].of(result));
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
