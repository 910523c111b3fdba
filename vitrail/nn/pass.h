/// \file
/// The state of a forward pass.
#pragma once

#include <string_view>

#include "vitrail/kernels/batch_norm.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/random.h"

namespace vitrail::nn {

/// What a forward pass needs besides its input. Layers take it by reference.
struct Pass {
  bool training = false;     ///< whether dropout, stochastic depth and batch statistics are on
  DType dtype = DType::f32;  ///< of activations and matrix products: f32 or bf16
  RandomStream random{0};    ///< for dropout and stochastic depth
  bool checkpoint = false;   ///< whether blocks keep only their input and are run again in backward
  bool again = false;        ///< whether a block with `checkpoint` runs again: running statistics stay as they are
  /// With it batch norms take their statistics over all processes that have a part of the batch.
  const kernels::BatchSum* batch_sum = nullptr;
  Recorder* recorder = nullptr;  ///< collects features and attention maps; null: nobody does

  bool wants_features() const { return recorder != nullptr && recorder->wants_features(); }
  bool wants_attention() const { return recorder != nullptr && recorder->wants_attention(); }
  bool traces(std::string_view layer) const { return recorder != nullptr && recorder->traces(layer); }
};

}  // namespace vitrail::nn
