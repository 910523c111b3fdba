// timm's Multiscale Vision Transformers by name (timm 1.0.31). Written by tools/golden/registry.py.
#include "vitrail/models/mvit/families.h"

namespace vitrail::models {

// A name, its family and its arguments; below, tags of its checkpoints with how their images are prepared, where that
// differs from PretrainedConfig's own values. The first tag is the default.
std::string_view mvit_table() {
  return R"(
mvitv2_base (mvit)
  fb_in1k: normalization=imagenet
mvitv2_base_cls (mvit) use_cls_token=True
  fb_inw21k: normalization=imagenet num_classes=19168
mvitv2_huge_cls (mvit) depths=(4,8,60,8) embed_dim=(192,384,768,1536) num_heads=(3,6,12,24) use_cls_token=True
  fb_inw21k: normalization=imagenet num_classes=19168
mvitv2_large (mvit) depths=(2,6,36,4) embed_dim=(144,288,576,1152) num_heads=(2,4,8,16) expand_attn=False
  fb_in1k: normalization=imagenet
mvitv2_large_cls (mvit) depths=(2,6,36,4) embed_dim=(144,288,576,1152) num_heads=(2,4,8,16) use_cls_token=True
  fb_inw21k: normalization=imagenet num_classes=19168
mvitv2_small (mvit) depths=(1,2,11,2)
  fb_in1k: normalization=imagenet
mvitv2_small_cls (mvit) depths=(1,2,11,2) use_cls_token=True
  untrained: normalization=imagenet
mvitv2_tiny (mvit) depths=(1,2,5,2)
  fb_in1k: normalization=imagenet
)";
}

}  // namespace vitrail::models
