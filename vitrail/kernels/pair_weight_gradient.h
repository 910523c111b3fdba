/// \file
/// The gradients of a linear map's parameters in bf16, by products of pairs of bf16 (see cpu/products/tile_products.h).
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::kernels {

/// dweight [N, K] = dyᵀ x and, if dbias [N] is defined, dbias = the sum of dy's rows, both f32 and contiguous. x [M, K]
/// and dy [M, N] are bf16, contiguous and not empty. The result is bit for bit the same for any number of threads.
/// Requires has_pair_products().
void pair_weight_gradient(const Tensor& x, const Tensor& dy, const Tensor& dweight, const Tensor& dbias);

}  // namespace vitrail::kernels
