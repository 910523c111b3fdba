/// \file
/// Whole images for models that take every size.
#pragma once

#include <cstdint>

#include "vitrail/data/image_config.h"
#include "vitrail/io/image.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::data {

/// The part of an image that whole_image() keeps: brought to `shorter` pixels on the shorter side by the config's
/// interpolation (0: as it is), the other side in proportion and rounded down, then cut at the right and at the bottom,
/// so that both sides are multiples of `multiple`: torchvision's Resize(shorter), and what facebookresearch/dino's
/// visualize_attention.py does then. Throws Error if nothing is left.
io::Image whole_part(const io::Image& image, const ImageConfig& config, std::int64_t multiple,
                     std::int64_t shorter = 0);

/// whole_part() of an image as a model's input [C, H, W], normalized as `config` says, without its crop.
Tensor whole_image(const io::Image& image, const ImageConfig& config, std::int64_t multiple, std::int64_t shorter = 0);

}  // namespace vitrail::data
