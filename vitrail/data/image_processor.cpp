#include "vitrail/data/image_processor.h"

#include <algorithm>

#include "vitrail/data/rounding.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {

ImageProcessor ImageProcessor::scaled_to(std::int64_t new_height, std::int64_t new_width) const {
  const auto scaled = [](std::int64_t side, std::int64_t to, std::int64_t from) {
    return std::max<std::int64_t>(1, side * to / from);
  };
  check(crop_height > 0 && crop_width > 0 && (resize == Resize::none || (height > 0 && width > 0)),
        "an image processor has sizes of at least 1, not {} x {} and a crop of {} x {}", height, width, crop_height,
        crop_width);
  ImageProcessor result = *this;
  result.crop_height = new_height;
  result.crop_width = new_width;
  if (resize == Resize::shorter_side) {
    result.height = scaled(height, std::max(new_height, new_width), std::max(crop_height, crop_width));
    result.width = result.height;
  } else if (resize == Resize::both) {
    result.height = scaled(height, new_height, crop_height);
    result.width = scaled(width, new_width, crop_width);
  }
  return result;
}

std::pair<std::int64_t, std::int64_t> ImageProcessor::resized(std::int64_t image_width,
                                                              std::int64_t image_height) const {
  switch (resize) {
    case Resize::none:
      return {image_width, image_height};
    case Resize::both:
      return {width, height};
    case Resize::shorter_side:
      break;
  }
  return shorter_side_size(image_width, image_height, height);
}

std::int64_t ImageProcessor::center_offset(std::int64_t resized, std::int64_t size) {
  return resized >= size ? (resized - size) / 2 : -((size - resized + 1) / 2);
}

}  // namespace vitrail::data
