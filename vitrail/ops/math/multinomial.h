/// \file
/// Drawing in proportion to weights.
#pragma once

#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// num_samples indices (i64) for each row of weights [N, C] or [C] f32, drawn in proportion to them, with replacement
/// or without, as by torch.multinomial: [N, num_samples] or [num_samples]. The weights need not add up to 1. What is
/// drawn depends on `draws` alone. Throws Error, naming the row, if a weight is negative or not finite, if all are 0,
/// or if without replacement there are too few above 0.
Tensor multinomial(const Tensor& weights, std::int64_t num_samples, bool replacement, const Philox& draws);

}  // namespace vitrail::ops
