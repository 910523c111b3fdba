/// \file
/// Elementwise activation functions, differentiable.
#pragma once

#include <string_view>

#include "vitrail/kernels/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

Tensor relu(const Tensor& x);        ///< max(0, x)
Tensor gelu(const Tensor& x);        ///< x Φ(x), by erf (Hendrycks & Gimpel 2016)
Tensor gelu_tanh(const Tensor& x);   ///< x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))
Tensor quick_gelu(const Tensor& x);  ///< x σ(1.702 x)
Tensor silu(const Tensor& x);        ///< x σ(x)
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);  ///< σ(x) = 1 / (1 + e⁻ˣ)

using kernels::Activation;  // identity, relu, gelu, gelu_tanh, quick_gelu, silu, tanh, sigmoid
/// The activation of x, f32 or bf16; for the identity, x itself.
Tensor activate(const Tensor& x, Activation activation);
Activation activation_named(std::string_view name);  ///< by timm's names ("gelu", "swish" …); Error if unknown

}  // namespace vitrail::ops
