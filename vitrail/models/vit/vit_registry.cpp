// timm's Vision Transformers by name (timm 1.0.31). Written by tools/golden/registry.py.
#include "vitrail/models/vit/families.h"

namespace vitrail::models {

// A name, its family and its arguments; below, tags of its checkpoints with how their images are prepared, where that
// differs from PretrainedConfig's own values. The first tag is the default.
std::string_view vit_table() {
  return R"(
aimv2_1b_patch14_224 (vit) patch_size=14 embed_dim=2048 depth=24 num_heads=16 class_token=False fc_norm=False mlp_ratio=2.75 global_pool=avg qkv_bias=False proj_bias=False act_layer=silu norm_layer=(rmsnorm,1e-05) embed_norm_layer=(rmsnorm,1e-05) mlp_layer=swiglu
  apple_pt: crop_pct=1 normalization=clip num_classes=0
aimv2_1b_patch14_336 (vit) patch_size=14 embed_dim=2048 depth=24 num_heads=16 class_token=False fc_norm=False mlp_ratio=2.75 global_pool=avg qkv_bias=False proj_bias=False act_layer=silu norm_layer=(rmsnorm,1e-05) embed_norm_layer=(rmsnorm,1e-05) mlp_layer=swiglu
  apple_pt: size=336 crop_pct=1 normalization=clip num_classes=0
aimv2_1b_patch14_448 (vit) patch_size=14 embed_dim=2048 depth=24 num_heads=16 class_token=False fc_norm=False mlp_ratio=2.75 global_pool=avg qkv_bias=False proj_bias=False act_layer=silu norm_layer=(rmsnorm,1e-05) embed_norm_layer=(rmsnorm,1e-05) mlp_layer=swiglu
  apple_pt: size=448 crop_pct=1 normalization=clip num_classes=0
aimv2_3b_patch14_224 (vit) patch_size=14 embed_dim=3072 depth=24 num_heads=24 class_token=False fc_norm=False mlp_ratio=2.6667 global_pool=avg qkv_bias=False proj_bias=False act_layer=silu norm_layer=(rmsnorm,1e-05) embed_norm_layer=(rmsnorm,1e-05) mlp_layer=swiglu
  apple_pt: crop_pct=1 normalization=clip num_classes=0
aimv2_3b_patch14_336 (vit) patch_size=14 embed_dim=3072 depth=24 num_heads=24 class_token=False fc_norm=False mlp_ratio=2.6667 global_pool=avg qkv_bias=False proj_bias=False act_layer=silu norm_layer=(rmsnorm,1e-05) embed_norm_layer=(rmsnorm,1e-05) mlp_layer=swiglu
  apple_pt: size=336 crop_pct=1 normalization=clip num_classes=0
aimv2_3b_patch14_448 (vit) patch_size=14 embed_dim=3072 depth=24 num_heads=24 class_token=False fc_norm=False mlp_ratio=2.6667 global_pool=avg qkv_bias=False proj_bias=False act_layer=silu norm_layer=(rmsnorm,1e-05) embed_norm_layer=(rmsnorm,1e-05) mlp_layer=swiglu
  apple_pt: size=448 crop_pct=1 normalization=clip num_classes=0
aimv2_huge_patch14_224 (vit) patch_size=14 embed_dim=1536 depth=24 num_heads=12 class_token=False fc_norm=False mlp_ratio=2.6667 global_pool=avg qkv_bias=False proj_bias=False act_layer=silu norm_layer=(rmsnorm,1e-05) embed_norm_layer=(rmsnorm,1e-05) mlp_layer=swiglu
  apple_pt: crop_pct=1 normalization=clip num_classes=0
aimv2_huge_patch14_336 (vit) patch_size=14 embed_dim=1536 depth=24 num_heads=12 class_token=False fc_norm=False mlp_ratio=2.6667 global_pool=avg qkv_bias=False proj_bias=False act_layer=silu norm_layer=(rmsnorm,1e-05) embed_norm_layer=(rmsnorm,1e-05) mlp_layer=swiglu
  apple_pt: size=336 crop_pct=1 normalization=clip num_classes=0
aimv2_huge_patch14_448 (vit) patch_size=14 embed_dim=1536 depth=24 num_heads=12 class_token=False fc_norm=False mlp_ratio=2.6667 global_pool=avg qkv_bias=False proj_bias=False act_layer=silu norm_layer=(rmsnorm,1e-05) embed_norm_layer=(rmsnorm,1e-05) mlp_layer=swiglu
  apple_pt: size=448 crop_pct=1 normalization=clip num_classes=0
aimv2_large_patch14_224 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=8 class_token=False fc_norm=False mlp_ratio=2.75 global_pool=avg qkv_bias=False proj_bias=False act_layer=silu norm_layer=(rmsnorm,1e-05) embed_norm_layer=(rmsnorm,1e-05) mlp_layer=swiglu
  apple_pt apple_pt_dist: crop_pct=1 normalization=clip num_classes=0
aimv2_large_patch14_336 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=8 class_token=False fc_norm=False mlp_ratio=2.75 global_pool=avg qkv_bias=False proj_bias=False act_layer=silu norm_layer=(rmsnorm,1e-05) embed_norm_layer=(rmsnorm,1e-05) mlp_layer=swiglu
  apple_pt apple_pt_dist: size=336 crop_pct=1 normalization=clip num_classes=0
aimv2_large_patch14_448 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=8 class_token=False fc_norm=False mlp_ratio=2.75 global_pool=avg qkv_bias=False proj_bias=False act_layer=silu norm_layer=(rmsnorm,1e-05) embed_norm_layer=(rmsnorm,1e-05) mlp_layer=swiglu
  apple_pt: size=448 crop_pct=1 normalization=clip num_classes=0
beit3_base_patch16_224 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 mlp_ratio=4 scale_attn_norm=True scale_mlp_norm=True class_token=True global_pool=avg norm_layer=(layernorm,1e-05)
  in22k_ft_in1k indomain_in22k_ft_in1k: crop_pct=1 normalization=imagenet
  indomain_pt pt: crop_pct=1 normalization=imagenet num_classes=0
beit3_giant_patch14_224 (vit) patch_size=14 embed_dim=1408 depth=40 num_heads=16 mlp_ratio=4.3637 scale_attn_norm=True scale_mlp_norm=True class_token=True global_pool=avg norm_layer=(layernorm,1e-05)
  untrained: crop_pct=1 normalization=imagenet
beit3_giant_patch14_336 (vit) img_size=336 patch_size=14 embed_dim=1408 depth=40 num_heads=16 mlp_ratio=4.3637 scale_attn_norm=True scale_mlp_norm=True class_token=True global_pool=avg norm_layer=(layernorm,1e-05)
  untrained: size=336 crop_pct=1 normalization=imagenet
beit3_large_patch16_224 (vit) patch_size=16 embed_dim=1024 depth=24 num_heads=16 mlp_ratio=4 scale_attn_norm=True scale_mlp_norm=True class_token=True global_pool=avg norm_layer=(layernorm,1e-05)
  in22k_ft_in1k indomain_in22k_ft_in1k: crop_pct=1 normalization=imagenet
  indomain_pt pt: crop_pct=1 normalization=imagenet num_classes=0
deit3_base_patch16_224 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 no_embed_class=True init_values=1e-06
  fb_in1k: normalization=imagenet
  fb_in22k_ft_in1k: crop_pct=1 normalization=imagenet
deit3_base_patch16_384 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 no_embed_class=True init_values=1e-06
  fb_in1k fb_in22k_ft_in1k: size=384 crop_pct=1 normalization=imagenet
deit3_huge_patch14_224 (vit) patch_size=14 embed_dim=1280 depth=32 num_heads=16 no_embed_class=True init_values=1e-06
  fb_in1k: normalization=imagenet
  fb_in22k_ft_in1k: crop_pct=1 normalization=imagenet
deit3_large_patch16_224 (vit) patch_size=16 embed_dim=1024 depth=24 num_heads=16 no_embed_class=True init_values=1e-06
  fb_in1k: normalization=imagenet
  fb_in22k_ft_in1k: crop_pct=1 normalization=imagenet
deit3_large_patch16_384 (vit) patch_size=16 embed_dim=1024 depth=24 num_heads=16 no_embed_class=True init_values=1e-06
  fb_in1k fb_in22k_ft_in1k: size=384 crop_pct=1 normalization=imagenet
deit3_medium_patch16_224 (vit) patch_size=16 embed_dim=512 depth=12 num_heads=8 no_embed_class=True init_values=1e-06
  fb_in1k: normalization=imagenet
  fb_in22k_ft_in1k: crop_pct=1 normalization=imagenet
deit3_small_patch16_224 (vit) patch_size=16 embed_dim=384 depth=12 num_heads=6 no_embed_class=True init_values=1e-06
  fb_in1k: normalization=imagenet
  fb_in22k_ft_in1k: crop_pct=1 normalization=imagenet
deit3_small_patch16_384 (vit) patch_size=16 embed_dim=384 depth=12 num_heads=6 no_embed_class=True init_values=1e-06
  fb_in1k fb_in22k_ft_in1k: size=384 crop_pct=1 normalization=imagenet
deit_base_distilled_patch16_224 (vit_distilled) patch_size=16 embed_dim=768 depth=12 num_heads=12
  fb_in1k: normalization=imagenet
deit_base_distilled_patch16_384 (vit_distilled) patch_size=16 embed_dim=768 depth=12 num_heads=12
  fb_in1k: size=384 crop_pct=1 normalization=imagenet
deit_base_patch16_224 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12
  fb_in1k: normalization=imagenet
deit_base_patch16_384 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12
  fb_in1k: size=384 crop_pct=1 normalization=imagenet
deit_small_distilled_patch16_224 (vit_distilled) patch_size=16 embed_dim=384 depth=12 num_heads=6
  fb_in1k: normalization=imagenet
deit_small_patch16_224 (vit) patch_size=16 embed_dim=384 depth=12 num_heads=6
  fb_in1k: normalization=imagenet
deit_tiny_distilled_patch16_224 (vit_distilled) patch_size=16 embed_dim=192 depth=12 num_heads=3
  fb_in1k: normalization=imagenet
deit_tiny_patch16_224 (vit) patch_size=16 embed_dim=192 depth=12 num_heads=3
  fb_in1k: normalization=imagenet
eva_large_patch14_196 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=16 global_pool=avg
  in22k_ft_in22k_in1k in22k_ft_in1k: size=196 crop_pct=1 normalization=clip
eva_large_patch14_336 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=16 global_pool=avg
  in22k_ft_in22k_in1k in22k_ft_in1k: size=336 crop_pct=1 crop_mode=squash normalization=clip
flexivit_base (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 no_embed_class=True
  1200ep_in1k 300ep_in1k 600ep_in1k: size=240 crop_pct=0.95
  300ep_in21k 1000ep_in21k patch16_in21k patch30_in21k: size=240 crop_pct=0.95 num_classes=21843
flexivit_large (vit) patch_size=16 embed_dim=1024 depth=24 num_heads=16 no_embed_class=True
  1200ep_in1k 300ep_in1k 600ep_in1k: size=240 crop_pct=0.95
flexivit_small (vit) patch_size=16 embed_dim=384 depth=12 num_heads=6 no_embed_class=True
  1200ep_in1k 300ep_in1k 600ep_in1k: size=240 crop_pct=0.95
test_vit (vit) patch_size=16 embed_dim=64 depth=6 num_heads=2 mlp_ratio=3 dynamic_img_size=True
  r160_in1k: size=160 crop_pct=0.95
test_vit2 (vit) patch_size=16 embed_dim=64 depth=8 num_heads=2 mlp_ratio=3 class_token=False reg_tokens=1 global_pool=avg init_values=1e-05 dynamic_img_size=True
  r160_in1k: size=160 crop_pct=0.95
test_vit3 (vit) patch_size=16 embed_dim=96 depth=9 num_heads=3 mlp_ratio=2 class_token=False reg_tokens=1 global_pool=map pool_include_prefix=True init_values=1e-05
  r160_in1k: size=160 crop_pct=0.95
test_vit4 (vit) patch_size=16 embed_dim=96 depth=9 num_heads=3 mlp_ratio=3 class_token=False reg_tokens=1 global_pool=avg init_values=1e-05 dynamic_img_size=True norm_layer=rmsnorm
  r160_in1k: size=160 crop_pct=0.95
test_vit_relpos (vit_relpos) patch_size=16 embed_dim=96 depth=9 num_heads=3 mlp_ratio=2 qkv_bias=False fc_norm=True
  untrained: size=160 crop_pct=0.95
vit_base_patch14_dinov2 (vit) patch_size=14 embed_dim=768 depth=12 num_heads=12 init_values=1e-05
  lvd142m: size=518 crop_pct=1 normalization=imagenet num_classes=0
vit_base_patch14_reg1_tipsv2 (vit) patch_size=14 embed_dim=768 depth=12 num_heads=12 init_values=1 reg_tokens=1 no_embed_class=True
  webli: size=448 crop_pct=1 normalization=none num_classes=0
vit_base_patch14_reg4_dinov2 (vit) patch_size=14 embed_dim=768 depth=12 num_heads=12 init_values=1e-05 reg_tokens=4 no_embed_class=True
  lvd142m: size=518 crop_pct=1 normalization=imagenet num_classes=0
vit_base_patch16_18x2_224 (vit) patch_size=16 embed_dim=768 depth=18 num_heads=12 init_values=1e-05 block_fn=parallelthingsblock
  untrained:
vit_base_patch16_224 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12
  augreg2_in21k_ft_in1k augreg_in1k augreg_in21k_ft_in1k orig_in21k_ft_in1k sam_in1k:
  augreg_in21k: num_classes=21843
  bamboo: crop_pct=1 normalization=clip num_classes=115217
  dino mae: normalization=imagenet num_classes=0
  orig_in21k: num_classes=0
vit_base_patch16_224_miil (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 qkv_bias=False
  in21k: crop_pct=0.875 interpolation=bilinear normalization=none num_classes=11221
  in21k_ft_in1k: crop_pct=0.875 interpolation=bilinear normalization=none
vit_base_patch16_384 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12
  augreg_in21k_ft_in1k augreg_in1k orig_in21k_ft_in1k: size=384 crop_pct=1
vit_base_patch16_clip_224 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 pre_norm=True norm_layer=(layernorm,1e-05)
  laion2b_ft_in12k_in1k openai_ft_in12k_in1k: crop_pct=0.95 normalization=clip
  datacompxl dfn2b laion2b laion400m_e32 metaclip_2pt5b metaclip_400m: crop_pct=1 normalization=clip num_classes=512
  laion2b_ft_in1k: crop_pct=1 normalization=clip
  laion2b_ft_in12k openai_ft_in12k: normalization=clip num_classes=11821
  openai: normalization=clip num_classes=512
  openai_ft_in1k: normalization=clip
vit_base_patch16_clip_384 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 pre_norm=True norm_layer=(layernorm,1e-05)
  laion2b_ft_in12k_in1k laion2b_ft_in1k openai_ft_in1k: size=384 crop_pct=1 crop_mode=squash normalization=clip
  openai_ft_in12k_in1k: size=384 crop_pct=0.95 crop_mode=squash normalization=clip
vit_base_patch16_clip_quickgelu_224 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 pre_norm=True norm_layer=(layernorm,1e-05) act_layer=quick_gelu
  metaclip_2pt5b metaclip_400m: crop_pct=1 normalization=clip num_classes=512
  openai: normalization=clip num_classes=512
vit_base_patch16_gap_224 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=16 class_token=False global_pool=avg fc_norm=False
  untrained:
vit_base_patch16_plus_240 (vit) patch_size=16 embed_dim=896 depth=12 num_heads=14 init_values=1e-05
  untrained: size=240 crop_pct=0.95
vit_base_patch16_plus_clip_240 (vit) patch_size=16 embed_dim=896 depth=12 num_heads=14 pre_norm=True norm_layer=(layernorm,1e-05)
  laion400m_e32: size=240 crop_pct=1 normalization=clip num_classes=640
vit_base_patch16_radio_v3 (vit) img_size=512 patch_size=16 embed_dim=768 depth=12 num_heads=12 init_values=1e-05 reg_tokens=7 no_embed_class=True final_norm=False
  c_radio: size=512 crop_pct=1 normalization=clip num_classes=0
vit_base_patch16_reg4_gap_256 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 class_token=False no_embed_class=True global_pool=avg reg_tokens=4
  untrained: size=256
vit_base_patch16_rpn_224 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 qkv_bias=False init_values=1e-05 class_token=False block_fn=respostblock global_pool=avg
  sw_in1k:
vit_base_patch16_siglip_224 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 class_token=False global_pool=map
  v2_webli webli: num_classes=0
vit_base_patch16_siglip_256 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 class_token=False global_pool=map
  v2_webli webli webli_i18n: size=256 num_classes=0
vit_base_patch16_siglip_384 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 class_token=False global_pool=map
  v2_webli webli: size=384 num_classes=0
vit_base_patch16_siglip_512 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 class_token=False global_pool=map
  v2_webli webli: size=512 num_classes=0
vit_base_patch16_siglip_gap_224 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 class_token=False global_pool=avg fc_norm=False
  v2_webli webli: num_classes=0
vit_base_patch16_siglip_gap_256 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 class_token=False global_pool=avg fc_norm=False
  v2_webli webli webli_i18n: size=256 num_classes=0
vit_base_patch16_siglip_gap_384 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 class_token=False global_pool=avg fc_norm=False
  v2_webli webli: size=384 num_classes=0
vit_base_patch16_siglip_gap_512 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 class_token=False global_pool=avg fc_norm=False
  v2_webli webli: size=512 num_classes=0
vit_base_patch16_xp_224 (vit) patch_size=16 embed_dim=768 depth=12 num_heads=12 pre_norm=True no_embed_class=True norm_layer=rmsnorm block_fn=parallelscalingblock qkv_bias=False qk_norm=True
  untrained:
vit_base_patch32_224 (vit) patch_size=32 embed_dim=768 depth=12 num_heads=12
  augreg_in21k_ft_in1k augreg_in1k sam_in1k:
  augreg_in21k: num_classes=21843
  orig_in21k: num_classes=0
vit_base_patch32_384 (vit) patch_size=32 embed_dim=768 depth=12 num_heads=12
  augreg_in21k_ft_in1k augreg_in1k: size=384 crop_pct=1
vit_base_patch32_clip_224 (vit) patch_size=32 embed_dim=768 depth=12 num_heads=12 pre_norm=True norm_layer=(layernorm,1e-05)
  laion2b_ft_in12k_in1k laion2b_ft_in1k openai_ft_in1k: normalization=clip
  datacompxl metaclip_2pt5b metaclip_400m: crop_pct=1 normalization=clip num_classes=512
  laion2b laion400m_e32 openai: normalization=clip num_classes=512
vit_base_patch32_clip_256 (vit) patch_size=32 embed_dim=768 depth=12 num_heads=12 pre_norm=True norm_layer=(layernorm,1e-05)
  datacompxl: size=256 crop_pct=1 normalization=clip num_classes=512
vit_base_patch32_clip_384 (vit) patch_size=32 embed_dim=768 depth=12 num_heads=12 pre_norm=True norm_layer=(layernorm,1e-05)
  laion2b_ft_in12k_in1k: size=384 crop_pct=1 normalization=clip
  openai_ft_in12k_in1k: size=384 crop_pct=0.95 crop_mode=squash normalization=clip
vit_base_patch32_clip_448 (vit) patch_size=32 embed_dim=768 depth=12 num_heads=12 pre_norm=True norm_layer=(layernorm,1e-05)
  laion2b_ft_in12k_in1k: size=448 crop_pct=1 normalization=clip
vit_base_patch32_clip_quickgelu_224 (vit) patch_size=32 embed_dim=768 depth=12 num_heads=12 pre_norm=True norm_layer=(layernorm,1e-05) act_layer=quick_gelu
  laion400m_e32 openai: normalization=clip num_classes=512
  metaclip_2pt5b metaclip_400m: crop_pct=1 normalization=clip num_classes=512
vit_base_patch32_plus_256 (vit) patch_size=32 embed_dim=896 depth=12 num_heads=14 init_values=1e-05
  untrained: size=256 crop_pct=0.95
vit_base_patch32_siglip_256 (vit) patch_size=32 embed_dim=768 depth=12 num_heads=12 class_token=False global_pool=map act_layer=gelu_tanh
  v2_webli: size=256 num_classes=0
vit_base_patch32_siglip_gap_256 (vit) patch_size=32 embed_dim=768 depth=12 num_heads=12 class_token=False global_pool=avg fc_norm=False act_layer=gelu_tanh
  v2_webli: size=256 num_classes=0
vit_base_patch8_224 (vit) patch_size=8 embed_dim=768 depth=12 num_heads=12
  augreg2_in21k_ft_in1k augreg_in21k_ft_in1k:
  augreg_in21k: num_classes=21843
  dino: normalization=imagenet num_classes=0
vit_betwixt_patch16_gap_256 (vit) patch_size=16 embed_dim=640 depth=12 num_heads=10 class_token=False global_pool=avg qkv_bias=False init_values=1e-06 fc_norm=False
  untrained: size=256 crop_pct=0.95
vit_betwixt_patch16_reg1_gap_256 (vit) patch_size=16 embed_dim=640 depth=12 num_heads=10 init_values=1e-05 class_token=False no_embed_class=True reg_tokens=1 global_pool=avg
  sbb_in1k: size=256 crop_pct=0.95
vit_betwixt_patch16_reg4_gap_256 (vit) patch_size=16 embed_dim=640 depth=12 num_heads=10 init_values=1e-05 class_token=False no_embed_class=True reg_tokens=4 global_pool=avg
  sbb2_e200_in12k_ft_in1k sbb_in1k sbb_in12k_ft_in1k: size=256 crop_pct=0.95
  sbb2_e200_in12k sbb_in12k: size=256 crop_pct=0.95 num_classes=11821
vit_betwixt_patch16_reg4_gap_384 (vit) patch_size=16 embed_dim=640 depth=12 num_heads=10 init_values=1e-05 class_token=False no_embed_class=True reg_tokens=4 global_pool=avg
  sbb2_e200_in12k_ft_in1k: size=384 crop_pct=1
vit_betwixt_patch32_clip_224 (vit) patch_size=32 embed_dim=640 depth=12 num_heads=10 pre_norm=True norm_layer=(layernorm,1e-05)
  tinyclip_laion400m: normalization=clip num_classes=512
vit_dlittle_patch16_reg1_gap_256 (vit) patch_size=16 embed_dim=320 depth=14 num_heads=5 init_values=1e-05 mlp_ratio=5.6 class_token=False no_embed_class=True reg_tokens=1 global_pool=avg attn_layer=diff
  sbb_nadamuon_in1k: size=256 crop_pct=0.95
vit_dpwee_patch16_reg1_gap_256 (vit) patch_size=16 embed_dim=256 depth=16 num_heads=4 init_values=1e-05 mlp_ratio=5 class_token=False no_embed_class=True reg_tokens=1 global_pool=avg block_fn=diffparallelscalingblock
  sbb_nadamuon_in1k sbb_in1k: size=256 crop_pct=0.95
vit_dwee_patch16_reg1_gap_256 (vit) patch_size=16 embed_dim=256 depth=14 num_heads=4 init_values=1e-05 mlp_ratio=5 class_token=False no_embed_class=True reg_tokens=1 global_pool=avg attn_layer=diff
  sbb_nadamuon_in1k sbb_in1k: size=256 crop_pct=0.95
vit_giant_patch14_224 (vit) patch_size=14 embed_dim=1408 mlp_ratio=4.363636363636363 depth=40 num_heads=16
  untrained:
vit_giant_patch14_clip_224 (vit) patch_size=14 embed_dim=1408 mlp_ratio=4.363636363636363 depth=40 num_heads=16 pre_norm=True norm_layer=(layernorm,1e-05)
  laion2b: crop_pct=1 normalization=clip num_classes=1024
vit_giant_patch14_dinov2 (vit) patch_size=14 embed_dim=1536 depth=40 num_heads=24 init_values=1e-05 mlp_ratio=5.33334 mlp_layer=swiglupacked act_layer=silu
  lvd142m: size=518 crop_pct=1 normalization=imagenet num_classes=0
vit_giant_patch14_reg1_tipsv2 (vit) patch_size=14 embed_dim=1536 depth=40 num_heads=24 init_values=1 mlp_ratio=5.33334 mlp_layer=swiglupacked act_layer=silu reg_tokens=1 no_embed_class=True
  webli: size=448 crop_pct=1 normalization=none num_classes=0
vit_giant_patch14_reg4_dinov2 (vit) patch_size=14 embed_dim=1536 depth=40 num_heads=24 init_values=1e-05 mlp_ratio=5.33334 mlp_layer=swiglupacked act_layer=silu reg_tokens=4 no_embed_class=True
  lvd142m: size=518 crop_pct=1 normalization=imagenet num_classes=0
vit_giant_patch16_gap_224 (vit) patch_size=16 embed_dim=1408 depth=40 num_heads=16 mlp_ratio=4.363636363636363 class_token=False global_pool=avg fc_norm=False
  in22k_ijepa: normalization=imagenet num_classes=0
vit_giant_patch16_radio_v3 (vit) img_size=512 patch_size=16 embed_dim=1536 depth=40 num_heads=24 reg_tokens=7 no_embed_class=True final_norm=False
  c_radio: size=512 crop_pct=1 normalization=clip num_classes=0
vit_giantopt_patch16_siglip_256 (vit) patch_size=16 embed_dim=1536 depth=40 num_heads=16 class_token=False global_pool=map act_layer=gelu_tanh
  v2_webli: size=256 num_classes=0
vit_giantopt_patch16_siglip_384 (vit) patch_size=16 embed_dim=1536 depth=40 num_heads=16 class_token=False global_pool=map act_layer=gelu_tanh
  v2_webli: size=384 num_classes=0
vit_giantopt_patch16_siglip_gap_256 (vit) patch_size=16 embed_dim=1536 depth=40 num_heads=16 class_token=False global_pool=avg fc_norm=False act_layer=gelu_tanh
  v2_webli: size=256 num_classes=0
vit_giantopt_patch16_siglip_gap_384 (vit) patch_size=16 embed_dim=1536 depth=40 num_heads=16 class_token=False global_pool=avg fc_norm=False act_layer=gelu_tanh
  v2_webli: size=384 num_classes=0
vit_gigantic_patch14_224 (vit) patch_size=14 embed_dim=1664 mlp_ratio=4.923076923076923 depth=48 num_heads=16
  untrained:
vit_gigantic_patch14_clip_224 (vit) patch_size=14 embed_dim=1664 mlp_ratio=4.923076923076923 depth=48 num_heads=16 pre_norm=True norm_layer=(layernorm,1e-05)
  laion2b metaclip2_worldwide metaclip_2pt5b: crop_pct=1 normalization=clip num_classes=1280
vit_gigantic_patch14_clip_378 (vit) patch_size=14 embed_dim=1664 mlp_ratio=4.923076923076923 depth=48 num_heads=16 pre_norm=True norm_layer=(layernorm,1e-05)
  metaclip2_worldwide: size=378 crop_pct=1 crop_mode=squash normalization=clip num_classes=1280
vit_gigantic_patch14_clip_quickgelu_224 (vit) patch_size=14 embed_dim=1664 mlp_ratio=4.923076923076923 depth=48 num_heads=16 pre_norm=True norm_layer=(layernorm,1e-05) act_layer=quick_gelu
  metaclip_2pt5b: crop_pct=1 normalization=clip num_classes=1280
vit_huge_patch14_224 (vit) patch_size=14 embed_dim=1280 depth=32 num_heads=16
  orig_in21k: num_classes=0
  mae: normalization=imagenet num_classes=0
vit_huge_patch14_clip_224 (vit) patch_size=14 embed_dim=1280 depth=32 num_heads=16 pre_norm=True norm_layer=(layernorm,1e-05)
  laion2b_ft_in12k_in1k laion2b_ft_in1k: crop_pct=1 normalization=clip
  dfn5b laion2b metaclip2_worldwide metaclip_2pt5b metaclip_altogether: crop_pct=1 normalization=clip num_classes=1024
  laion2b_ft_in12k: crop_pct=1 normalization=clip num_classes=11821
vit_huge_patch14_clip_336 (vit) patch_size=14 embed_dim=1280 depth=32 num_heads=16 pre_norm=True norm_layer=(layernorm,1e-05)
  laion2b_ft_in12k_in1k: size=336 crop_pct=1 crop_mode=squash normalization=clip
vit_huge_patch14_clip_378 (vit) patch_size=14 embed_dim=1280 depth=32 num_heads=16 pre_norm=True norm_layer=(layernorm,1e-05)
  dfn5b: size=378 crop_pct=1 normalization=clip num_classes=1024
  metaclip2_worldwide: size=378 crop_pct=1 crop_mode=squash normalization=clip num_classes=1024
vit_huge_patch14_clip_quickgelu_224 (vit) patch_size=14 embed_dim=1280 depth=32 num_heads=16 pre_norm=True norm_layer=(layernorm,1e-05) act_layer=quick_gelu
  dfn5b metaclip2_worldwide metaclip_2pt5b: crop_pct=1 normalization=clip num_classes=1024
vit_huge_patch14_clip_quickgelu_378 (vit) patch_size=14 embed_dim=1280 depth=32 num_heads=16 pre_norm=True norm_layer=(layernorm,1e-05) act_layer=quick_gelu
  dfn5b: size=378 crop_pct=1 normalization=clip num_classes=1024
vit_huge_patch14_gap_224 (vit) patch_size=14 embed_dim=1280 depth=32 num_heads=16 class_token=False global_pool=avg fc_norm=False
  in1k_ijepa in22k_ijepa: normalization=imagenet num_classes=0
vit_huge_patch14_xp_224 (vit) patch_size=14 embed_dim=1280 depth=32 num_heads=16 pre_norm=True no_embed_class=True norm_layer=rmsnorm block_fn=parallelscalingblock qkv_bias=False qk_norm=True
  untrained:
vit_huge_patch16_gap_448 (vit) patch_size=16 embed_dim=1280 depth=32 num_heads=16 class_token=False global_pool=avg fc_norm=False
  in1k_ijepa: size=448 crop_pct=1 normalization=imagenet num_classes=0
vit_huge_patch16_radio_v3 (vit) img_size=512 patch_size=16 embed_dim=1280 depth=32 num_heads=16 reg_tokens=7 no_embed_class=True final_norm=False
  c_radio: size=512 crop_pct=1 normalization=clip num_classes=0
vit_huge_patch16_radio_v4 (vit) img_size=512 patch_size=16 embed_dim=1280 depth=32 num_heads=16 reg_tokens=9 no_embed_class=True final_norm=False
  c_radio: size=512 crop_pct=1 normalization=clip num_classes=0
vit_intern300m_patch14_448 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=16 init_values=0.1 final_norm=False dynamic_img_size=True
  ogvl_dist ogvl_2pt5: size=448 crop_pct=1 normalization=imagenet num_classes=0
vit_large_patch14_224 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=16
  untrained:
vit_large_patch14_clip_224 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=16 pre_norm=True norm_layer=(layernorm,1e-05)
  laion2b_ft_in12k_in1k laion2b_ft_in1k: crop_pct=1
  apple_mclip2_dfndr2b datacompxl dfn2b dfn2b_s39b laion400m_e32 metaclip_2pt5b metaclip_400m openai: crop_pct=1 normalization=clip num_classes=768
  laion2b: crop_pct=1 num_classes=768
  laion2b_ft_in12k: crop_pct=1 num_classes=11821
  openai_ft_in1k openai_ft_in12k_in1k: crop_pct=1 normalization=clip
  openai_ft_in12k: crop_pct=1 normalization=clip num_classes=11821
vit_large_patch14_clip_336 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=16 pre_norm=True norm_layer=(layernorm,1e-05)
  laion2b_ft_in12k_in1k laion2b_ft_in1k: size=336 crop_pct=1 crop_mode=squash
  openai: size=336 crop_pct=1 normalization=clip num_classes=768
  openai_ft_in12k_in1k: size=336 crop_pct=1 crop_mode=squash normalization=clip
vit_large_patch14_clip_quickgelu_224 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=16 pre_norm=True norm_layer=(layernorm,1e-05) act_layer=quick_gelu
  dfn2b metaclip_2pt5b metaclip_400m openai: crop_pct=1 normalization=clip num_classes=768
vit_large_patch14_clip_quickgelu_336 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=16 pre_norm=True norm_layer=(layernorm,1e-05) act_layer=quick_gelu
  openai: size=336 crop_pct=1 normalization=clip num_classes=768
vit_large_patch14_dinov2 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=16 init_values=1e-05
  lvd142m: size=518 crop_pct=1 normalization=imagenet num_classes=0
vit_large_patch14_reg1_tipsv2 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=16 init_values=1 reg_tokens=1 no_embed_class=True
  webli: size=448 crop_pct=1 normalization=none num_classes=0
vit_large_patch14_reg4_dinov2 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=16 init_values=1e-05 reg_tokens=4 no_embed_class=True
  lvd142m: size=518 crop_pct=1 normalization=imagenet num_classes=0
vit_large_patch14_xp_224 (vit) patch_size=14 embed_dim=1024 depth=24 num_heads=16 pre_norm=True no_embed_class=True norm_layer=rmsnorm block_fn=parallelscalingblock qkv_bias=False qk_norm=True
  untrained:
vit_large_patch16_224 (vit) patch_size=16 embed_dim=1024 depth=24 num_heads=16
  augreg_in21k_ft_in1k:
  augreg_in21k: num_classes=21843
  mae: normalization=imagenet num_classes=0
  orig_in21k: num_classes=0
vit_large_patch16_384 (vit) patch_size=16 embed_dim=1024 depth=24 num_heads=16
  augreg_in21k_ft_in1k: size=384 crop_pct=1
vit_large_patch16_radio_v3 (vit) img_size=512 patch_size=16 embed_dim=1024 depth=24 num_heads=16 init_values=1e-05 reg_tokens=7 no_embed_class=True final_norm=False
  c_radio: size=512 crop_pct=1 normalization=clip num_classes=0
vit_large_patch16_siglip_256 (vit) patch_size=16 embed_dim=1024 depth=24 num_heads=16 class_token=False global_pool=map
  v2_webli webli: size=256 num_classes=0
vit_large_patch16_siglip_384 (vit) patch_size=16 embed_dim=1024 depth=24 num_heads=16 class_token=False global_pool=map
  v2_webli webli: size=384 num_classes=0
vit_large_patch16_siglip_512 (vit) patch_size=16 embed_dim=1024 depth=24 num_heads=16 class_token=False global_pool=map act_layer=gelu_tanh
  v2_webli: size=512 num_classes=0
vit_large_patch16_siglip_gap_256 (vit) patch_size=16 embed_dim=1024 depth=24 num_heads=16 class_token=False global_pool=avg fc_norm=False
  v2_webli webli: size=256 num_classes=0
vit_large_patch16_siglip_gap_384 (vit) patch_size=16 embed_dim=1024 depth=24 num_heads=16 class_token=False global_pool=avg fc_norm=False
  v2_webli webli: size=384 num_classes=0
vit_large_patch16_siglip_gap_512 (vit) patch_size=16 embed_dim=1024 depth=24 num_heads=16 class_token=False global_pool=avg fc_norm=False act_layer=gelu_tanh
  v2_webli: size=512 num_classes=0
vit_large_patch32_224 (vit) patch_size=32 embed_dim=1024 depth=24 num_heads=16
  orig_in21k: num_classes=0
vit_large_patch32_384 (vit) patch_size=32 embed_dim=1024 depth=24 num_heads=16
  orig_in21k_ft_in1k: size=384 crop_pct=1
vit_little_patch16_reg1_gap_256 (vit) patch_size=16 embed_dim=320 depth=14 num_heads=5 init_values=1e-05 mlp_ratio=5.6 class_token=False no_embed_class=True reg_tokens=1 global_pool=avg
  sbb_in12k_ft_in1k: size=256 crop_pct=0.95
  sbb_in12k: size=256 crop_pct=0.95 num_classes=11821
vit_little_patch16_reg4_gap_256 (vit) patch_size=16 embed_dim=320 depth=14 num_heads=5 init_values=1e-05 mlp_ratio=5.6 class_token=False no_embed_class=True reg_tokens=4 global_pool=avg
  sbb_in1k: size=256 crop_pct=0.95
vit_medium_patch16_clip_224 (vit) embed_dim=512 depth=12 num_heads=8 pre_norm=True norm_layer=(layernorm,1e-05)
  tinyclip_yfcc15m: normalization=clip num_classes=512
vit_medium_patch16_gap_240 (vit) patch_size=16 embed_dim=512 depth=12 num_heads=8 class_token=False global_pool=avg qkv_bias=False init_values=1e-06 fc_norm=False
  sw_in12k: size=240 crop_pct=0.95 num_classes=11821
vit_medium_patch16_gap_256 (vit) patch_size=16 embed_dim=512 depth=12 num_heads=8 class_token=False global_pool=avg qkv_bias=False init_values=1e-06 fc_norm=False
  sw_in12k_ft_in1k: size=256 crop_pct=0.95
vit_medium_patch16_gap_384 (vit) patch_size=16 embed_dim=512 depth=12 num_heads=8 class_token=False global_pool=avg qkv_bias=False init_values=1e-06 fc_norm=False
  sw_in12k_ft_in1k: size=384 crop_pct=0.95 crop_mode=squash
vit_medium_patch16_reg1_gap_256 (vit) patch_size=16 embed_dim=512 depth=12 num_heads=8 init_values=1e-05 class_token=False no_embed_class=True reg_tokens=1 global_pool=avg
  sbb_in1k: size=256 crop_pct=0.95
vit_medium_patch16_reg4_gap_256 (vit) patch_size=16 embed_dim=512 depth=12 num_heads=8 init_values=1e-05 class_token=False no_embed_class=True reg_tokens=4 global_pool=avg
  sbb_in12k_ft_in1k sbb_in1k: size=256 crop_pct=0.95
  sbb_in12k: size=256 crop_pct=0.95 num_classes=11821
vit_medium_patch32_clip_224 (vit) patch_size=32 embed_dim=512 depth=12 num_heads=8 pre_norm=True norm_layer=(layernorm,1e-05)
  tinyclip_laion400m: normalization=clip num_classes=512
vit_mediumd_patch16_reg4_gap_256 (vit) patch_size=16 embed_dim=512 depth=20 num_heads=8 init_values=1e-05 class_token=False no_embed_class=True reg_tokens=4 global_pool=avg
  sbb2_e200_in12k_ft_in1k sbb_in12k_ft_in1k: size=256 crop_pct=0.95
  sbb2_e200_in12k sbb_in12k: size=256 crop_pct=0.95 num_classes=11821
vit_mediumd_patch16_reg4_gap_384 (vit) patch_size=16 embed_dim=512 depth=20 num_heads=8 init_values=1e-05 class_token=False no_embed_class=True reg_tokens=4 global_pool=avg
  sbb2_e200_in12k_ft_in1k: size=384 crop_pct=1
vit_pwee_patch16_reg1_gap_256 (vit) patch_size=16 embed_dim=256 depth=16 num_heads=4 init_values=1e-05 mlp_ratio=5 class_token=False no_embed_class=True reg_tokens=1 global_pool=avg block_fn=parallelscalingblock
  sbb_in1k: size=256 crop_pct=0.95
vit_relpos_base_patch16_224 (vit_relpos) patch_size=16 embed_dim=768 depth=12 num_heads=12 qkv_bias=False fc_norm=True
  sw_in1k:
vit_relpos_base_patch16_cls_224 (vit_relpos) patch_size=16 embed_dim=768 depth=12 num_heads=12 qkv_bias=False class_token=True global_pool=token
  untrained:
vit_relpos_base_patch16_clsgap_224 (vit_relpos) patch_size=16 embed_dim=768 depth=12 num_heads=12 qkv_bias=False fc_norm=True class_token=True
  sw_in1k:
vit_relpos_base_patch16_plus_240 (vit_relpos) patch_size=16 embed_dim=896 depth=12 num_heads=14
  untrained: size=240
vit_relpos_base_patch16_rpn_224 (vit_relpos) patch_size=16 embed_dim=768 depth=12 num_heads=12 qkv_bias=False block_fn=respostrelposblock
  untrained:
vit_relpos_base_patch32_plus_rpn_256 (vit_relpos) patch_size=32 embed_dim=896 depth=12 num_heads=14 block_fn=respostrelposblock
  sw_in1k: size=256
vit_relpos_medium_patch16_224 (vit_relpos) patch_size=16 embed_dim=512 depth=12 num_heads=8 qkv_bias=False fc_norm=True
  sw_in1k:
vit_relpos_medium_patch16_cls_224 (vit_relpos) patch_size=16 embed_dim=512 depth=12 num_heads=8 qkv_bias=False fc_norm=False rel_pos_dim=256 class_token=True global_pool=token
  sw_in1k:
vit_relpos_medium_patch16_rpn_224 (vit_relpos) patch_size=16 embed_dim=512 depth=12 num_heads=8 qkv_bias=False block_fn=respostrelposblock
  sw_in1k:
vit_relpos_small_patch16_224 (vit_relpos) patch_size=16 embed_dim=384 depth=12 num_heads=6 qkv_bias=False fc_norm=True
  sw_in1k:
vit_relpos_small_patch16_rpn_224 (vit_relpos) patch_size=16 embed_dim=384 depth=12 num_heads=6 qkv_bias=False block_fn=respostrelposblock
  untrained:
vit_small_patch14_dinov2 (vit) patch_size=14 embed_dim=384 depth=12 num_heads=6 init_values=1e-05
  lvd142m: size=518 crop_pct=1 normalization=imagenet num_classes=0
vit_small_patch14_reg4_dinov2 (vit) patch_size=14 embed_dim=384 depth=12 num_heads=6 init_values=1e-05 reg_tokens=4 no_embed_class=True
  lvd142m: size=518 crop_pct=1 normalization=imagenet num_classes=0
vit_small_patch16_18x2_224 (vit) patch_size=16 embed_dim=384 depth=18 num_heads=6 init_values=1e-05 block_fn=parallelthingsblock
  untrained:
vit_small_patch16_224 (vit) patch_size=16 embed_dim=384 depth=12 num_heads=6
  augreg_in21k_ft_in1k augreg_in1k:
  augreg_in21k: num_classes=21843
  dino: normalization=imagenet num_classes=0
vit_small_patch16_36x1_224 (vit) patch_size=16 embed_dim=384 depth=36 num_heads=6 init_values=1e-05
  untrained:
vit_small_patch16_384 (vit) patch_size=16 embed_dim=384 depth=12 num_heads=6
  augreg_in21k_ft_in1k augreg_in1k: size=384 crop_pct=1
vit_small_patch32_224 (vit) patch_size=32 embed_dim=384 depth=12 num_heads=6
  augreg_in21k_ft_in1k:
  augreg_in21k: num_classes=21843
vit_small_patch32_384 (vit) patch_size=32 embed_dim=384 depth=12 num_heads=6
  augreg_in21k_ft_in1k: size=384 crop_pct=1
vit_small_patch8_224 (vit) patch_size=8 embed_dim=384 depth=12 num_heads=6
  dino: normalization=imagenet num_classes=0
vit_so150m2_patch16_reg1_gap_256 (vit) patch_size=16 embed_dim=832 depth=21 num_heads=13 mlp_ratio=2.6153846153846154 init_values=1e-05 qkv_bias=False class_token=False reg_tokens=1 global_pool=avg
  sbb_e200_in12k_ft_in1k: size=256 crop_pct=1
  sbb_e200_in12k: size=256 crop_pct=1 num_classes=11821
vit_so150m2_patch16_reg1_gap_384 (vit) patch_size=16 embed_dim=832 depth=21 num_heads=13 mlp_ratio=2.6153846153846154 init_values=1e-05 qkv_bias=False class_token=False reg_tokens=1 global_pool=avg
  sbb_e200_in12k_ft_in1k: size=384 crop_pct=1
vit_so150m2_patch16_reg1_gap_448 (vit) patch_size=16 embed_dim=832 depth=21 num_heads=13 mlp_ratio=2.6153846153846154 init_values=1e-05 qkv_bias=False class_token=False reg_tokens=1 global_pool=avg
  sbb_e200_in12k_ft_in1k: size=448 crop_pct=1 crop_mode=squash
vit_so150m_patch16_reg4_gap_256 (vit) patch_size=16 embed_dim=896 depth=18 num_heads=14 mlp_ratio=2.572 class_token=False reg_tokens=4 global_pool=avg fc_norm=False
  sbb_e250_in12k_ft_in1k: size=256 crop_pct=0.95
  sbb_e250_in12k: size=256 crop_pct=0.95 num_classes=11821
vit_so150m_patch16_reg4_gap_384 (vit) patch_size=16 embed_dim=896 depth=18 num_heads=14 mlp_ratio=2.572 class_token=False reg_tokens=4 global_pool=avg fc_norm=False
  sbb_e250_in12k_ft_in1k: size=384 crop_pct=1
vit_so150m_patch16_reg4_map_256 (vit) patch_size=16 embed_dim=896 depth=18 num_heads=14 mlp_ratio=2.572 class_token=False reg_tokens=4 global_pool=map
  untrained: size=256
vit_so400m_patch14_reg1_tipsv2 (vit) patch_size=14 embed_dim=1152 depth=27 num_heads=16 init_values=1 mlp_ratio=3.736111111111111 reg_tokens=1 no_embed_class=True
  webli: size=448 crop_pct=1 normalization=none num_classes=0
vit_so400m_patch14_siglip_224 (vit) patch_size=14 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=map
  v2_webli webli: num_classes=0
vit_so400m_patch14_siglip_378 (vit) patch_size=14 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=map
  v2_webli webli: size=378 num_classes=0
  webli_ft_in1k: size=378 crop_pct=1 crop_mode=squash
vit_so400m_patch14_siglip_384 (vit) patch_size=14 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=map
  webli: size=384 num_classes=0
vit_so400m_patch14_siglip_gap_224 (vit) patch_size=14 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=avg fc_norm=False
  v2_webli pali2_3b_pt pali2_10b_pt pali_mix pali_pt webli: num_classes=0
vit_so400m_patch14_siglip_gap_378 (vit) patch_size=14 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=avg fc_norm=False
  v2_webli: size=378 num_classes=0
  webli: size=378 crop_pct=1 num_classes=0
  webli_ft_in1k: size=378 crop_pct=1 crop_mode=squash
vit_so400m_patch14_siglip_gap_384 (vit) patch_size=14 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=avg fc_norm=False
  webli: size=384 crop_pct=1 num_classes=0
vit_so400m_patch14_siglip_gap_448 (vit) patch_size=14 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=avg fc_norm=False
  pali_mix pali2_3b_docci pali2_3b_pt pali2_10b_docci pali2_10b_pt pali_ocrvqa pali_pt pali_refcoco_seg: size=448 crop_pct=1 num_classes=0
vit_so400m_patch14_siglip_gap_896 (vit) patch_size=14 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=avg fc_norm=False
  pali_pt pali2_3b_pt pali2_10b_pt pali_ocrvqa pali_refcoco_seg: size=896 crop_pct=1 num_classes=0
vit_so400m_patch16_radio_v4 (vit) img_size=512 patch_size=16 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.736111111111111 reg_tokens=9 no_embed_class=True final_norm=False
  c_radio: size=512 crop_pct=1 normalization=clip num_classes=0
vit_so400m_patch16_siglip_256 (vit) patch_size=16 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=map act_layer=gelu_tanh
  v2_webli webli_i18n: size=256 num_classes=0
vit_so400m_patch16_siglip_384 (vit) patch_size=16 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=map act_layer=gelu_tanh
  v2_webli: size=384 num_classes=0
vit_so400m_patch16_siglip_512 (vit) patch_size=16 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=map act_layer=gelu_tanh
  v2_webli: size=512 num_classes=0
vit_so400m_patch16_siglip_gap_256 (vit) patch_size=16 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=avg fc_norm=False act_layer=gelu_tanh
  v2_webli webli_i18n: size=256 num_classes=0
vit_so400m_patch16_siglip_gap_384 (vit) patch_size=16 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=avg fc_norm=False act_layer=gelu_tanh
  v2_webli: size=384 num_classes=0
vit_so400m_patch16_siglip_gap_512 (vit) patch_size=16 embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.7362 class_token=False global_pool=avg fc_norm=False act_layer=gelu_tanh
  v2_webli: size=512 num_classes=0
vit_srelpos_medium_patch16_224 (vit_relpos) patch_size=16 embed_dim=512 depth=12 num_heads=8 qkv_bias=False fc_norm=False rel_pos_dim=512 shared_rel_pos=True
  sw_in1k:
vit_srelpos_small_patch16_224 (vit_relpos) patch_size=16 embed_dim=384 depth=12 num_heads=6 qkv_bias=False fc_norm=False rel_pos_dim=384 shared_rel_pos=True
  sw_in1k:
vit_tiny_patch16_224 (vit) patch_size=16 embed_dim=192 depth=12 num_heads=3
  augreg_in21k_ft_in1k:
  augreg_in21k: num_classes=21843
vit_tiny_patch16_384 (vit) patch_size=16 embed_dim=192 depth=12 num_heads=3
  augreg_in21k_ft_in1k: size=384 crop_pct=1
vit_wee_patch16_reg1_gap_256 (vit) patch_size=16 embed_dim=256 depth=14 num_heads=4 init_values=1e-05 mlp_ratio=5 class_token=False no_embed_class=True reg_tokens=1 global_pool=avg
  sbb_in1k: size=256 crop_pct=0.95
vit_xsmall_patch16_clip_224 (vit) embed_dim=256 depth=10 num_heads=4 pre_norm=True norm_layer=(layernorm,1e-05)
  tinyclip_yfcc15m: normalization=clip num_classes=512
)";
}

}  // namespace vitrail::models
