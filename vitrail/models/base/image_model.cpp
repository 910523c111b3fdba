#include "vitrail/models/base/image_model.h"

namespace vitrail::models {

Shape input_shape(const Model& model) {
  const PretrainedConfig& p = model.pretrained;
  const std::int64_t frames = model.net->frames();
  return frames == 0 ? Shape{p.channels, p.height, p.width} : Shape{p.channels, frames, p.height, p.width};
}

void check_takes_images(const Model& model) {
  check(model.net->frames() == 0,
        "'{}' takes clips of {} frames, not images: vitrail forward, info and bench are the commands for it",
        model.architecture, model.net->frames());
}

}  // namespace vitrail::models
