/// \file
/// Models whose weights have diverged, which give NaN where numbers were expected.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::train {

/// Throws Error if a value of `outputs` f32, which a model gives, is NaN or infinite.
void check_finite(const Tensor& outputs);
/// Throws Error if the loss of a model is NaN.
void check_finite(double loss);

}  // namespace vitrail::train
