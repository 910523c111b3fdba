// timm's token-mixing MLPs by name (timm 1.0.31). Written by tools/golden/registry.py.
#include "vitrail/models/mlp/families.h"

namespace vitrail::models {

// A name, its family and its arguments; below, tags of its checkpoints with how their images are prepared, where that
// differs from PretrainedConfig's own values. The first tag is the default.
std::string_view mlp_mixer_table() {
  return R"(
gmixer_12_224 (mlp_mixer) patch_size=16 num_blocks=12 embed_dim=384 mlp_ratio=(1.0,4.0) mlp_layer=glumlp act_layer=silu
  untrained: crop_pct=0.875 normalization=imagenet
gmixer_24_224 (mlp_mixer) patch_size=16 num_blocks=24 embed_dim=384 mlp_ratio=(1.0,4.0) mlp_layer=glumlp act_layer=silu
  ra3_in1k: crop_pct=0.875 normalization=imagenet
gmlp_b16_224 (mlp_mixer) patch_size=16 num_blocks=30 embed_dim=512 mlp_ratio=6 block_layer=spatialgatingblock mlp_layer=gatedmlp
  untrained: crop_pct=0.875
gmlp_s16_224 (mlp_mixer) patch_size=16 num_blocks=30 embed_dim=256 mlp_ratio=6 block_layer=spatialgatingblock mlp_layer=gatedmlp
  ra3_in1k: crop_pct=0.875
gmlp_ti16_224 (mlp_mixer) patch_size=16 num_blocks=30 embed_dim=128 mlp_ratio=6 block_layer=spatialgatingblock mlp_layer=gatedmlp
  untrained: crop_pct=0.875
mixer_b16_224 (mlp_mixer) patch_size=16 num_blocks=12 embed_dim=768
  goog_in21k_ft_in1k: crop_pct=0.875
  goog_in21k: crop_pct=0.875 num_classes=21843
  miil_in21k: crop_pct=0.875 interpolation=bilinear normalization=none num_classes=11221
  miil_in21k_ft_in1k: crop_pct=0.875 interpolation=bilinear normalization=none
mixer_b32_224 (mlp_mixer) patch_size=32 num_blocks=12 embed_dim=768
  untrained: crop_pct=0.875
mixer_l16_224 (mlp_mixer) patch_size=16 num_blocks=24 embed_dim=1024
  goog_in21k_ft_in1k: crop_pct=0.875
  goog_in21k: crop_pct=0.875 num_classes=21843
mixer_l32_224 (mlp_mixer) patch_size=32 num_blocks=24 embed_dim=1024
  untrained: crop_pct=0.875
mixer_s16_224 (mlp_mixer) patch_size=16 num_blocks=8 embed_dim=512
  untrained: crop_pct=0.875
mixer_s32_224 (mlp_mixer) patch_size=32 num_blocks=8 embed_dim=512
  untrained: crop_pct=0.875
resmlp_12_224 (mlp_mixer) patch_size=16 num_blocks=12 embed_dim=384 mlp_ratio=4 block_layer=resblock norm_layer=affine
  fb_in1k fb_dino fb_distilled_in1k: crop_pct=0.875 normalization=imagenet
resmlp_24_224 (mlp_mixer) patch_size=16 num_blocks=24 embed_dim=384 mlp_ratio=4 block_layer=(resblock,1e-05) norm_layer=affine
  fb_in1k fb_dino fb_distilled_in1k: crop_pct=0.875 normalization=imagenet
resmlp_36_224 (mlp_mixer) patch_size=16 num_blocks=36 embed_dim=384 mlp_ratio=4 block_layer=(resblock,1e-06) norm_layer=affine
  fb_in1k fb_distilled_in1k: crop_pct=0.875 normalization=imagenet
resmlp_big_24_224 (mlp_mixer) patch_size=8 num_blocks=24 embed_dim=768 mlp_ratio=4 block_layer=(resblock,1e-06) norm_layer=affine
  fb_in1k fb_distilled_in1k fb_in22k_ft_in1k: crop_pct=0.875 normalization=imagenet
)";
}

}  // namespace vitrail::models
