// The gradient of a linear map's parameters in bf16, by products of pairs.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

// dweight [N, K] = dyᵀ x and, if dbias [N] is defined, dbias = the sum of dy's rows, both f32 and contiguous. x [M, K]
// and dy [M, N] bf16, contiguous, not empty. The same bits for any number of threads. Only where has_pair_products().
void pair_weight_gradient(const Tensor& x, const Tensor& dy, const Tensor& dweight, const Tensor& dbias);

}  // namespace vitrail::kernels
