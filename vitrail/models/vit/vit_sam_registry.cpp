// timm's Segment Anything's image encoders by name (timm 1.0.31). Written by tools/golden/registry.py.
#include "vitrail/models/vit/families.h"

namespace vitrail::models {

// A name, its family and its arguments; below, tags of its checkpoints with how their images are prepared, where that
// differs from PretrainedConfig's own values. The first tag is the default.
std::string_view vit_sam_table() {
  return R"(
samvit_base_patch16 (sam) patch_size=16 embed_dim=768 depth=12 num_heads=12 global_attn_indexes=[2,5,8,11] window_size=14 use_rel_pos=True img_size=1024
  sa1b: size=1024 crop_pct=1 normalization=imagenet num_classes=0
samvit_base_patch16_224 (sam) patch_size=16 embed_dim=768 depth=12 num_heads=12 global_attn_indexes=[2,5,8,11] window_size=14 use_rel_pos=True use_abs_pos=False img_size=224 neck_chans=None
  untrained: normalization=imagenet
samvit_huge_patch16 (sam) patch_size=16 embed_dim=1280 depth=32 num_heads=16 global_attn_indexes=[7,15,23,31] window_size=14 use_rel_pos=True img_size=1024
  sa1b: size=1024 crop_pct=1 normalization=imagenet num_classes=0
samvit_large_patch16 (sam) patch_size=16 embed_dim=1024 depth=24 num_heads=16 global_attn_indexes=[5,11,17,23] window_size=14 use_rel_pos=True img_size=1024
  sa1b: size=1024 crop_pct=1 normalization=imagenet num_classes=0
)";
}

}  // namespace vitrail::models
