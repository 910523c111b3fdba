/// \file
/// Arithmetic of integers with broadcasting, of which ops are made. Nothing here is recorded on the tape.
#pragma once

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

/// Functions of two integers. Results that do not fit wrap around.
enum class IntegerFunction : std::uint8_t {
  add,
  subtract,
  multiply,
  floor_divide,  ///< ⌊a / b⌋
  remainder,     ///< a - b ⌊a / b⌋, which has the sign of b
  maximum,
  minimum
};

/// function(a, b) over the shape to which the operands broadcast, both i32 or both i64. Throws Error for a division by
/// zero.
Tensor of_integers(IntegerFunction function, const Tensor& a, const Tensor& b);

}  // namespace vitrail::ops
