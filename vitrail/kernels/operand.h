/// \file
/// The elements of a tensor as a kernel reads them.
#pragma once

#include "vitrail/tensor/shape.h"

namespace vitrail::kernels {

/// An operand of a kernel; its shape is that over which the kernel works.
struct Operand {
  const void* data;
  Shape strides;  ///< in elements; 0 repeats an element
};

}  // namespace vitrail::kernels
