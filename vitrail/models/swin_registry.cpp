// timm's Swin Transformers by name (timm 1.0.31). Written by tools/golden/registry.py.
#include "vitrail/models/family.h"

namespace vitrail::models {

// A name, its family and its arguments; below, tags of its checkpoints with how their pictures are prepared, where that
// differs from PretrainedConfig's own values. The first tag is the default.
std::string_view swin_table() {
  return R"(
swin_base_patch4_window12_384 (swin) patch_size=4 window_size=12 embed_dim=128 depths=(2,2,18,2) num_heads=(4,8,16,32)
  ms_in22k_ft_in1k ms_in1k: size=384 crop_pct=1 normalization=imagenet
  ms_in22k: size=384 crop_pct=1 normalization=imagenet num_classes=21841
swin_base_patch4_window7_224 (swin) patch_size=4 window_size=7 embed_dim=128 depths=(2,2,18,2) num_heads=(4,8,16,32)
  ms_in22k_ft_in1k ms_in1k: normalization=imagenet
  ms_in22k: normalization=imagenet num_classes=21841
swin_large_patch4_window12_384 (swin) patch_size=4 window_size=12 embed_dim=192 depths=(2,2,18,2) num_heads=(6,12,24,48)
  ms_in22k_ft_in1k: size=384 crop_pct=1 normalization=imagenet
  ms_in22k: size=384 crop_pct=1 normalization=imagenet num_classes=21841
swin_large_patch4_window7_224 (swin) patch_size=4 window_size=7 embed_dim=192 depths=(2,2,18,2) num_heads=(6,12,24,48)
  ms_in22k_ft_in1k: normalization=imagenet
  ms_in22k: normalization=imagenet num_classes=21841
swin_s3_base_224 (swin) patch_size=4 window_size=(7,7,14,7) embed_dim=96 depths=(2,2,30,2) num_heads=(3,6,12,24)
  ms_in1k: normalization=imagenet
swin_s3_small_224 (swin) patch_size=4 window_size=(14,14,14,7) embed_dim=96 depths=(2,2,18,2) num_heads=(3,6,12,24)
  ms_in1k: normalization=imagenet
swin_s3_tiny_224 (swin) patch_size=4 window_size=(7,7,14,7) embed_dim=96 depths=(2,2,6,2) num_heads=(3,6,12,24)
  ms_in1k: normalization=imagenet
swin_small_patch4_window7_224 (swin) patch_size=4 window_size=7 embed_dim=96 depths=(2,2,18,2) num_heads=(3,6,12,24)
  ms_in22k_ft_in1k ms_in1k: normalization=imagenet
  ms_in22k: normalization=imagenet num_classes=21841
swin_tiny_patch4_window7_224 (swin) patch_size=4 window_size=7 embed_dim=96 depths=(2,2,6,2) num_heads=(3,6,12,24)
  ms_in1k ms_in22k_ft_in1k: normalization=imagenet
  ms_in22k: normalization=imagenet num_classes=21841
)";
}

}  // namespace vitrail::models
