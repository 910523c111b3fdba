// How the parameters of a Vision Transformer start.
#pragma once

#include <string>

#include "vitrail/io/json.h"
#include "vitrail/models/vit.h"
#include "vitrail/nn/parameters.h"

namespace vitrail::models {

// timm's VisionTransformer.init_weights in the mode config.weight_init:
//   timm   linear weights from N(0, 0.02²) cut off at ±2, their biases 0; the patch embedding as torch's Conv2d
//   jax    linear weights Xavier-uniform, biases 0 (in Mlps N(0, 1e-6²)); the patch embedding LeCun-normal; the head 0,
//          and with jax_nlhb its bias -log(num_classes)
//   moco   linear weights Xavier-uniform, q, k and v each for itself; biases 0
//   reset  everything as torch's layers start
// In all but `reset` the gate of a gated Mlp starts near 1 (weight N(0, 1e-6²), bias 1).
nn::InitRule vit_init_rule(const VitConfig& config);

// `weight_init` in timm's spelling; "skip", as there, leaves the layers to start on their own, as "reset" does.
VitConfig::Start read_weight_init(io::Fields& fields, const std::string& fallback);

}  // namespace vitrail::models
