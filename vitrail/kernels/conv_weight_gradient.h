/// \file
/// The gradient of a convolution's weight in f32, by a kernel of our own: oneDNN's is slow where the stride is not 1.
#pragma once

#include "vitrail/kernels/conv.h"

namespace vitrail::kernels {

/// dweight [O, C, kH, kW] as by convolution_weight_gradient(), but only in f32, for one group and without the bias.
void one_group_weight_gradient(const Tensor& x, const Tensor& dy, const ConvGeometry& geometry, const Tensor& dweight);

}  // namespace vitrail::kernels
