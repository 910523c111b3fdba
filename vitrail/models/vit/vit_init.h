/// \file
/// The initialization of the parameters of a Vision Transformer.
#pragma once

#include <string>
#include <string_view>

#include "vitrail/io/json.h"
#include "vitrail/models/vit/vit.h"
#include "vitrail/nn/parameters.h"

namespace vitrail::models {

/// The rule of timm's VisionTransformer.init_weights in the mode config.weight_init:
///
/// ```text
/// timm   linear weights from N(0, 0.02²) cut off at ±2, their biases 0; the patch embedding as torch's Conv2d
/// jax    linear weights Xavier-uniform, biases 0 (in Mlps N(0, 1e-6²)); the patch embedding LeCun-normal; the head 0,
///        and with jax_nlhb its bias -log(num_classes)
/// moco   linear weights Xavier-uniform, q, k and v each for itself; biases 0
/// reset  everything as torch's layers start
/// ```
///
/// or of the code of He et al. for masked autoencoders (models_mae.py):
///
/// ```text
/// mae    linear weights Xavier-uniform, the patch embedding's flattened; biases 0; the class token N(0, 0.02²)
/// ```
///
/// In all modes but `reset`, the gate of a gated Mlp starts near 1 (weight N(0, 1e-6²), bias 1).
nn::InitRule vit_init_rule(const VitConfig& config);

/// The rule for the backbone of a hybrid: timm calls the backbone's init_weights again, with the last norm of each
/// block starting from zero.
nn::InitRule hybrid_init_rule(const ResNetV2Config& backbone);

/// What timm's weight_init "moco" begins the weight of a linear layer with: Xavier's uniform distribution, of
/// "…qkv.weight" as of the three maps that it is.
nn::Init moco_init(std::string_view name, const Shape& shape);
/// Reads `weight_init` in timm's spelling; as in timm, "skip" leaves every layer to its own initialization, as "reset"
/// does.
VitConfig::WeightInit read_weight_init(io::Fields& fields, const std::string& fallback);

}  // namespace vitrail::models
