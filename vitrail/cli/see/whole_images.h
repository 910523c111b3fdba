/// \file
/// Models on whole images of any size.
#pragma once

#include <cstdint>

#include "vitrail/cli/flags.h"
#include "vitrail/data/whole_image.h"
#include "vitrail/models/model.h"

namespace vitrail::cli {

/// A model that takes images of every size.
struct WholeImageModel {
  models::Model model;
  std::int64_t patch = 0;    ///< pixels of its side
  std::int64_t shorter = 0;  ///< --img-size: the shorter side to which images are brought; 0: they stay as they are

  Tensor input(const io::Image& image) const {  ///< [1, C, H, W]
    return data::whole_image(image, model.pretrained, patch, shorter).unsqueeze(0);
  }
  /// The part of an image that the model sees, in its pixels.
  io::Image seen(const io::Image& image) const { return data::whole_part(image, model.pretrained, patch, shorter); }
  /// The same part of a mask, whose numbers are not mixed.
  io::Image seen_by_nearest(const io::Image& mask) const {
    data::ImageConfig config;
    config.interpolation = "nearest";
    return data::whole_part(mask, config, patch, shorter);
  }
};

/// Opens the model so that it takes whole images, of which --img-size says the shorter side. Throws Error if the model
/// takes images of its own size alone.
WholeImageModel open_for_whole_images(const ModelFlags& flags);

}  // namespace vitrail::cli
