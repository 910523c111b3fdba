// timm's hybrid Vision Transformers by name (timm 1.0.31). Written by tools/golden/registry.py.
#include "vitrail/models/vit/families.h"

namespace vitrail::models {

// A name, its family and its arguments; below, tags of its checkpoints with how their images are prepared, where that
// differs from PretrainedConfig's own values. The first tag is the default.
std::string_view vit_hybrid_table() {
  return R"(
vit_base_mci_224 (vit_hybrid) backbone=convstem embed_dim=768 depth=12 num_heads=12 no_embed_class=True patch_size=1
  apple_mclip_lt apple_mclip apple_mclip2_dfndr2b: normalization=none num_classes=512
vit_base_r26_s32_224 (vit_hybrid) backbone_layers=(2,2,2,2) embed_dim=768 depth=12 num_heads=12 patch_size=1
  untrained:
vit_base_r50_s16_224 (vit_hybrid) backbone_layers=(3,4,9) embed_dim=768 depth=12 num_heads=12 patch_size=1
  orig_in21k: num_classes=0
vit_base_r50_s16_384 (vit_hybrid) backbone_layers=(3,4,9) embed_dim=768 depth=12 num_heads=12 patch_size=1
  orig_in21k_ft_in1k: size=384 crop_pct=1
vit_base_resnet26d_224 (vit_hybrid) backbone=resnetd backbone_layers=(2,2,2,2) embed_dim=768 depth=12 num_heads=12 patch_size=1
  untrained: normalization=imagenet
vit_base_resnet50d_224 (vit_hybrid) backbone=resnetd backbone_layers=(3,4,6,3) embed_dim=768 depth=12 num_heads=12 patch_size=1
  untrained: normalization=imagenet
vit_large_r50_s32_224 (vit_hybrid) backbone_layers=(3,4,6,3) embed_dim=1024 depth=24 num_heads=16 patch_size=1
  augreg_in21k_ft_in1k:
  augreg_in21k: num_classes=21843
vit_large_r50_s32_384 (vit_hybrid) backbone_layers=(3,4,6,3) embed_dim=1024 depth=24 num_heads=16 patch_size=1
  augreg_in21k_ft_in1k: size=384 crop_pct=1
vit_small_r26_s32_224 (vit_hybrid) backbone_layers=(2,2,2,2) embed_dim=384 depth=12 num_heads=6 patch_size=1
  augreg_in21k_ft_in1k:
  augreg_in21k: num_classes=21843
vit_small_r26_s32_384 (vit_hybrid) backbone_layers=(2,2,2,2) embed_dim=384 depth=12 num_heads=6 patch_size=1
  augreg_in21k_ft_in1k: size=384 crop_pct=1
vit_small_resnet26d_224 (vit_hybrid) backbone=resnetd backbone_layers=(2,2,2,2) embed_dim=768 depth=8 num_heads=8 mlp_ratio=3 patch_size=1
  untrained: normalization=imagenet
vit_small_resnet50d_s16_224 (vit_hybrid) backbone=resnetd backbone_layers=(3,4,6) embed_dim=768 depth=8 num_heads=8 mlp_ratio=3 patch_size=1
  untrained: normalization=imagenet
vit_tiny_r_s16_p8_224 (vit_hybrid) backbone_layers=() patch_size=8 embed_dim=192 depth=12 num_heads=3
  augreg_in21k_ft_in1k:
  augreg_in21k: num_classes=21843
vit_tiny_r_s16_p8_384 (vit_hybrid) backbone_layers=() patch_size=8 embed_dim=192 depth=12 num_heads=3
  augreg_in21k_ft_in1k: size=384 crop_pct=1
)";
}

}  // namespace vitrail::models
