/// \file
/// Reductions of rows that follow each other, such as the tokens of texts in one row.
#pragma once

#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// What becomes of the rows of a segment: their sum, their mean, or the largest of each element.
enum class SegmentReduction : std::uint8_t { sum, mean, max };

/// The rows of segments of x [N, D] f32, reduced: [S, D] f32, as torch.segment_reduce. Segment s has the rows from
/// offsets[s] up to offsets[s + 1]; the offsets [S + 1] i64 begin with 0, rise, and end with N. The gradient of the
/// largest goes to the first of equal elements.
Tensor segment_reduce(const Tensor& x, SegmentReduction reduction, const Tensor& offsets);

}  // namespace vitrail::ops
