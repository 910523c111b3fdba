// What one forward pass needs beside its input.
#pragma once

#include "vitrail/nn/recorder.h"
#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/random.h"

namespace vitrail::nn {

struct Pass {
  bool training = false;         // dropout, stochastic depth and batch statistics are on
  DType dtype = DType::f32;      // activations and matrix products: f32 or bf16
  RandomStream random{0};        // for dropout and stochastic depth
  bool checkpoint = false;       // blocks keep only their input and are run again in backward
  bool again = false;            // the second run of a block with `checkpoint`: statistics are not followed twice
  Recorder* recorder = nullptr;  // gathers features and attention maps if present
};

}  // namespace vitrail::nn
