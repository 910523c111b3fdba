/// \file
/// Elementwise arithmetic with NumPy broadcasting, and casts.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// The operands of these functions must have the same dtype (cast() one of them if not) and shapes that broadcast; the
// result is contiguous. Of f32 and bf16 the gradient of a broadcast operand is summed over the dimensions in which it
// was repeated. Functions of two tensors but divide() also take integers, i32 or i64, which wrap around.

Tensor add(const Tensor& a, const Tensor& b);       ///< a + b
Tensor subtract(const Tensor& a, const Tensor& b);  ///< a - b
Tensor multiply(const Tensor& a, const Tensor& b);  ///< a · b, element by element
Tensor divide(const Tensor& a, const Tensor& b);    ///< a / b
/// ⌊a / b⌋ of integers, as torch.floor_divide. Throws Error for a division by zero.
Tensor floor_divide(const Tensor& a, const Tensor& b);
/// a - b ⌊a / b⌋ of integers, which has the sign of b, as torch.remainder. Throws Error for a division by zero.
Tensor remainder(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);  ///< the gradient is halved between equal elements, as in PyTorch
Tensor minimum(const Tensor& a, const Tensor& b);

Tensor add(const Tensor& a, float b);
Tensor multiply(const Tensor& a, float b);
Tensor negative(const Tensor& x);
Tensor power(const Tensor& x, float exponent);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);  ///< 1 / sqrt(x)
Tensor abs(const Tensor& x);
Tensor clamp(const Tensor& x, float low, float high);

/// x converted to another dtype: between all pairs of dtypes, differentiable between f32 and bf16.
Tensor cast(const Tensor& x, DType dtype);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return subtract(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return multiply(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return divide(a, b); }
inline Tensor operator*(const Tensor& a, float b) { return multiply(a, b); }
inline Tensor operator+(const Tensor& a, float b) { return add(a, b); }

}  // namespace vitrail::ops

// The operators are declared in the namespace of Tensor as well, so that a + b finds them from any namespace.

namespace vitrail {
using ops::operator+;
using ops::operator-;
using ops::operator*;
using ops::operator/;
}  // namespace vitrail
