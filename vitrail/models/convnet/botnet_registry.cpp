// timm's Bottleneck Transformers by name (timm 1.0.31). Written by tools/golden/registry.py.
#include "vitrail/models/convnet/families.h"

namespace vitrail::models {

// A name, its family and its arguments; below, tags of its checkpoints with how their images are prepared, where that
// differs from PretrainedConfig's own values. The first tag is the default.
std::string_view botnet_table() {
  return R"(
botnet26t_256 (botnet) img_size=256
  c1_in1k: size=256 crop_pct=0.95 normalization=imagenet
)";
}

}  // namespace vitrail::models
