/// \file
/// Elementwise activation functions and their derivatives.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

enum class Activation { identity, relu, gelu, gelu_tanh, quick_gelu, silu, tanh, sigmoid };

/// Whether the derivative is computed from the output y rather than from the input x.
bool backward_from_output(Activation activation);

/// y[i] = f(x[i]) for n elements of `dtype` (f32 or bf16); x and y may be the same memory. The activation must not be
/// the identity.
void activation_forward(Activation activation, const void* x, void* y, std::int64_t n, DType dtype);
/// dx[i] = dy[i] f'(x[i]) for n elements of `dtype`, where `saved` is y if backward_from_output(activation), else x; dx
/// and dy may be the same memory. The activation must not be the identity.
void activation_backward(Activation activation, const void* saved, const void* dy, void* dx, std::int64_t n,
                         DType dtype);

}  // namespace vitrail::kernels
