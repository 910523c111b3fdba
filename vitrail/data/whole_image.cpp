#include "vitrail/data/whole_image.h"

#include <algorithm>

#include "vitrail/data/resize.h"
#include "vitrail/data/transforms.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {

io::Image whole_part(const io::Image& image, const ImageConfig& config, std::int64_t multiple, std::int64_t shorter) {
  check(multiple > 0 && shorter >= 0, "an image has no sides of {} and multiples of {} pixels", shorter, multiple);
  const std::int64_t least = std::min(image.width, image.height);
  std::int64_t width = image.width;
  std::int64_t height = image.height;
  if (shorter > 0) {
    width = image.width <= image.height ? shorter : shorter * image.width / least;
    height = image.width <= image.height ? shorter * image.height / least : shorter;
  }
  const Region kept = {0, 0, width - width % multiple, height - height % multiple};
  check(kept.width > 0 && kept.height > 0, "an image of {} x {} pixels has no patch of {} x {}", width, height,
        multiple, multiple);
  return resize_window(image, width, height, kept, interpolation_named(config.interpolation));
}

Tensor whole_image(const io::Image& image, const ImageConfig& config, std::int64_t multiple, std::int64_t shorter) {
  const io::Image part = whole_part(image, config, multiple, shorter);
  ImageConfig whole = config;
  whole.width = part.width;
  whole.height = part.height;
  whole.crop_pct = 1;
  whole.crop_mode = "squash";
  whole.processor.reset();
  return eval_transform(whole)(part);
}

}  // namespace vitrail::data
