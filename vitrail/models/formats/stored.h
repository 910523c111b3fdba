/// \file
/// In which dtype a file holds weights.
#pragma once

#include "vitrail/io/safetensors.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/tensor/error.h"

namespace vitrail::models {

/// The tensors as a file holds them: those in f32 in `dtype`, f32 or bf16 (else Error), the others as they are.
inline io::NamedTensors stored_as(io::NamedTensors tensors, DType dtype) {
  check(dtype == DType::f32 || dtype == DType::bf16, "weights are written in f32 or bf16, not in {}", name_of(dtype));
  for (auto& [name, tensor] : tensors) {
    if (tensor.dtype() == DType::f32 && dtype != DType::f32) {
      tensor = ops::cast(tensor.detach(), dtype);
    }
  }
  return tensors;
}

}  // namespace vitrail::models
