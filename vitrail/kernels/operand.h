// The elements of a tensor as a kernel reads them.
#pragma once

#include "vitrail/tensor/shape.h"

namespace vitrail::kernels {

struct Operand {
  const void* data;
  Shape strides;  // in elements; 0 repeats
};

}  // namespace vitrail::kernels
