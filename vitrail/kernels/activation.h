// Elementwise non-linearities and their derivatives.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

enum class Activation { identity, relu, gelu, gelu_tanh, quick_gelu, silu, tanh, sigmoid };

// Whether the derivative is worked out from the output y rather than from the input x.
bool backward_from_output(Activation activation);

// y[i] = f(x[i]), n elements of `dtype` (f32 or bf16); x and y may be the same.
void activation_forward(Activation activation, const void* x, void* y, std::int64_t n, DType dtype);
// dx[i] = dy[i] f'(…[i]) where `saved` is x or y, as backward_from_output() says; dx and dy may be the same.
void activation_backward(Activation activation, const void* saved, const void* dy, void* dx, std::int64_t n,
                         DType dtype);

}  // namespace vitrail::kernels
