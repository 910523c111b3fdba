// timm's BEiT by name (timm 1.0.31). Written by tools/golden/registry.py.
#include "vitrail/models/vit/families.h"

namespace vitrail::models {

// A name, its family and its arguments; below, tags of its checkpoints with how their images are prepared, where that
// differs from PretrainedConfig's own values. The first tag is the default.
std::string_view beit_table() {
  return R"(
beit_base_patch16_224 (beit) patch_size=16 embed_dim=768 depth=12 num_heads=12 mlp_ratio=4 use_abs_pos_emb=False use_rel_pos_bias=True init_values=0.1
  in22k_ft_in22k_in1k:
  in22k_ft_in22k: num_classes=21841
beit_base_patch16_384 (beit) img_size=384 patch_size=16 embed_dim=768 depth=12 num_heads=12 use_abs_pos_emb=False use_rel_pos_bias=True init_values=0.1
  in22k_ft_in22k_in1k: size=384 crop_pct=1
beit_large_patch16_224 (beit) patch_size=16 embed_dim=1024 depth=24 num_heads=16 use_abs_pos_emb=False use_rel_pos_bias=True init_values=1e-05
  in22k_ft_in22k_in1k:
  in22k_ft_in22k: num_classes=21841
beit_large_patch16_384 (beit) img_size=384 patch_size=16 embed_dim=1024 depth=24 num_heads=16 use_abs_pos_emb=False use_rel_pos_bias=True init_values=1e-05
  in22k_ft_in22k_in1k: size=384 crop_pct=1
beit_large_patch16_512 (beit) img_size=512 patch_size=16 embed_dim=1024 depth=24 num_heads=16 use_abs_pos_emb=False use_rel_pos_bias=True init_values=1e-05
  in22k_ft_in22k_in1k: size=512 crop_pct=1
beitv2_base_patch16_224 (beit) patch_size=16 embed_dim=768 depth=12 num_heads=12 mlp_ratio=4 use_abs_pos_emb=False use_rel_pos_bias=True init_values=1e-05
  in1k_ft_in22k_in1k in1k_ft_in1k: normalization=imagenet
  in1k_ft_in22k: normalization=imagenet num_classes=21841
beitv2_large_patch16_224 (beit) patch_size=16 embed_dim=1024 depth=24 num_heads=16 use_abs_pos_emb=False use_rel_pos_bias=True init_values=1e-05
  in1k_ft_in22k_in1k in1k_ft_in1k: crop_pct=0.95 normalization=imagenet
  in1k_ft_in22k: normalization=imagenet num_classes=21841
)";
}

}  // namespace vitrail::models
