// timm's EVA and Vision Transformers with rotary positions by name (timm 1.0.31). Written by tools/golden/registry.py.
#include "vitrail/models/vit/families.h"

namespace vitrail::models {

// A name, its family and its arguments; below, tags of its checkpoints with how their images are prepared, where that
// differs from PretrainedConfig's own values. The first tag is the default.
std::string_view eva_table() {
  return R"(
eva02_base_patch14_224 (eva) img_size=224 patch_size=14 embed_dim=768 depth=12 num_heads=12 qkv_fused=False mlp_ratio=2.6666666666666665 swiglu_mlp=True scale_mlp=True use_rot_pos_emb=True ref_feat_shape=(16,16)
  mim_in22k: normalization=clip num_classes=0
eva02_base_patch14_448 (eva) img_size=448 patch_size=14 embed_dim=768 depth=12 num_heads=12 qkv_fused=False mlp_ratio=2.6666666666666665 swiglu_mlp=True scale_mlp=True use_rot_pos_emb=True ref_feat_shape=(16,16)
  mim_in22k_ft_in22k_in1k: size=448 crop_pct=1 crop_mode=squash normalization=clip
  mim_in22k_ft_in1k: size=448 crop_pct=1 normalization=clip
  mim_in22k_ft_in22k: size=448 crop_pct=1 crop_mode=squash normalization=clip num_classes=21841
eva02_base_patch16_clip_224 (eva) img_size=224 patch_size=16 embed_dim=768 depth=12 num_heads=12 qkv_fused=False mlp_ratio=2.6666666666666665 swiglu_mlp=True scale_mlp=True scale_attn_inner=True use_rot_pos_emb=True ref_feat_shape=(16,16) global_pool=token
  merged2b: normalization=clip num_classes=512
eva02_enormous_patch14_clip_224 (eva) img_size=224 patch_size=14 embed_dim=1792 depth=64 num_heads=16 mlp_ratio=8.571428571428571 use_post_norm=True global_pool=token
  laion2b laion2b_plus: normalization=clip num_classes=1024
eva02_large_patch14_224 (eva) img_size=224 patch_size=14 embed_dim=1024 depth=24 num_heads=16 mlp_ratio=2.6666666666666665 qkv_fused=False swiglu_mlp=True scale_mlp=True use_rot_pos_emb=True ref_feat_shape=(16,16)
  mim_in22k mim_m38m: normalization=clip num_classes=0
eva02_large_patch14_448 (eva) img_size=448 patch_size=14 embed_dim=1024 depth=24 num_heads=16 mlp_ratio=2.6666666666666665 qkv_fused=False swiglu_mlp=True scale_mlp=True use_rot_pos_emb=True ref_feat_shape=(16,16)
  mim_in22k_ft_in22k_in1k mim_m38m_ft_in22k_in1k: size=448 crop_pct=1 crop_mode=squash normalization=clip
  mim_in22k_ft_in1k mim_m38m_ft_in1k: size=448 crop_pct=1 normalization=clip
  mim_in22k_ft_in22k mim_m38m_ft_in22k: size=448 crop_pct=1 crop_mode=squash normalization=clip num_classes=21841
eva02_large_patch14_clip_224 (eva) img_size=224 patch_size=14 embed_dim=1024 depth=24 num_heads=16 mlp_ratio=2.6666666666666665 qkv_fused=False swiglu_mlp=True scale_mlp=True scale_attn_inner=True use_rot_pos_emb=True ref_feat_shape=(16,16) global_pool=token
  merged2b: normalization=clip num_classes=768
eva02_large_patch14_clip_336 (eva) img_size=336 patch_size=14 embed_dim=1024 depth=24 num_heads=16 mlp_ratio=2.6666666666666665 qkv_fused=False swiglu_mlp=True scale_mlp=True scale_attn_inner=True use_rot_pos_emb=True ref_feat_shape=(16,16) global_pool=token
  merged2b: size=336 crop_pct=1 normalization=clip num_classes=768
eva02_small_patch14_224 (eva) img_size=224 patch_size=14 embed_dim=384 depth=12 num_heads=6 mlp_ratio=2.6666666666666665 swiglu_mlp=True use_rot_pos_emb=True ref_feat_shape=(16,16)
  mim_in22k: normalization=clip num_classes=0
eva02_small_patch14_336 (eva) img_size=336 patch_size=14 embed_dim=384 depth=12 num_heads=6 mlp_ratio=2.6666666666666665 swiglu_mlp=True use_rot_pos_emb=True ref_feat_shape=(16,16)
  mim_in22k_ft_in1k: size=336 crop_pct=1 normalization=clip
eva02_tiny_patch14_224 (eva) img_size=224 patch_size=14 embed_dim=192 depth=12 num_heads=3 mlp_ratio=2.6666666666666665 swiglu_mlp=True use_rot_pos_emb=True ref_feat_shape=(16,16)
  mim_in22k: normalization=clip num_classes=0
eva02_tiny_patch14_336 (eva) img_size=336 patch_size=14 embed_dim=192 depth=12 num_heads=3 mlp_ratio=2.6666666666666665 swiglu_mlp=True use_rot_pos_emb=True ref_feat_shape=(16,16)
  mim_in22k_ft_in1k: size=336 crop_pct=1 normalization=clip
eva_giant_patch14_224 (eva) patch_size=14 embed_dim=1408 depth=40 num_heads=16 mlp_ratio=4.363636363636363
  clip_ft_in1k: normalization=clip
eva_giant_patch14_336 (eva) patch_size=14 embed_dim=1408 depth=40 num_heads=16 mlp_ratio=4.363636363636363
  clip_ft_in1k: size=336 crop_pct=1 crop_mode=squash normalization=clip
  m30m_ft_in22k_in1k: size=336 crop_pct=1 crop_mode=squash normalization=imagenet
eva_giant_patch14_560 (eva) patch_size=14 embed_dim=1408 depth=40 num_heads=16 mlp_ratio=4.363636363636363
  m30m_ft_in22k_in1k: size=560 crop_pct=1 crop_mode=squash normalization=imagenet
eva_giant_patch14_clip_224 (eva) patch_size=14 embed_dim=1408 depth=40 num_heads=16 mlp_ratio=4.363636363636363 global_pool=token
  laion400m merged2b: normalization=clip num_classes=1024
vit_7b_patch16_dinov3 (eva) patch_size=16 dynamic_img_size=True embed_dim=4096 depth=40 num_heads=32 qkv_bias=False mlp_ratio=2 init_values=1e-05 rope_type=dinov3 rope_temperature=100 use_rot_pos_emb=True use_abs_pos_emb=False rope_rotate_half=True swiglu_mlp=True swiglu_align_to=64 num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  lvd1689m: size=256 crop_pct=1 normalization=imagenet num_classes=0
  sat493m: size=256 crop_pct=1 normalization=satellite num_classes=0
vit_base_patch16_dinov3 (eva) patch_size=16 dynamic_img_size=True embed_dim=768 depth=12 num_heads=12 qkv_bias=False init_values=1e-05 rope_type=dinov3 rope_temperature=100 rope_rotate_half=True use_rot_pos_emb=True use_abs_pos_emb=False num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  lvd1689m: size=256 crop_pct=1 normalization=imagenet num_classes=0
vit_base_patch16_dinov3_qkvb (eva) patch_size=16 dynamic_img_size=True embed_dim=768 depth=12 num_heads=12 qkv_bias=True init_values=1e-05 rope_type=dinov3 rope_temperature=100 rope_rotate_half=True use_rot_pos_emb=True use_abs_pos_emb=False num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  lvd1689m eupe_lvd1689m: size=256 crop_pct=1 normalization=imagenet num_classes=0
vit_base_patch16_lingbot (eva) patch_size=16 dynamic_img_size=True embed_dim=768 depth=12 num_heads=12 qkv_bias=True global_pool=token init_values=1e-05 rope_type=dinov3 rope_temperature=100 rope_rotate_half=True use_rot_pos_emb=True use_abs_pos_emb=False num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  robbyant: size=512 crop_pct=1 interpolation=bilinear crop_mode=squash normalization=imagenet num_classes=0
vit_base_patch16_rope_224 (eva) patch_size=16 embed_dim=768 depth=12 num_heads=12 mlp_ratio=4 attn_type=rope use_fc_norm=False qkv_bias=True init_values=1e-05 class_token=True global_pool=token use_abs_pos_emb=False use_rot_pos_emb=True rope_grid_indexing=xy rope_temperature=100
  naver_in1k: normalization=imagenet
vit_base_patch16_rope_ape_224 (eva) patch_size=16 embed_dim=768 depth=12 num_heads=12 mlp_ratio=4 attn_type=rope qkv_bias=True init_values=1e-05 class_token=True global_pool=token no_embed_class=True use_abs_pos_emb=True use_rot_pos_emb=True rope_grid_indexing=xy rope_temperature=100
  naver_in1k: normalization=imagenet
vit_base_patch16_rope_mixed_224 (eva) patch_size=16 embed_dim=768 depth=12 num_heads=12 mlp_ratio=4 qkv_bias=True attn_type=rope init_values=1e-05 class_token=True global_pool=token use_abs_pos_emb=False use_rot_pos_emb=True rope_grid_indexing=xy rope_temperature=10 rope_type=mixed
  naver_in1k: normalization=imagenet
vit_base_patch16_rope_mixed_ape_224 (eva) patch_size=16 embed_dim=768 depth=12 num_heads=12 mlp_ratio=4 attn_type=rope qkv_bias=True init_values=1e-05 class_token=True global_pool=token no_embed_class=True use_abs_pos_emb=True use_rot_pos_emb=True rope_grid_indexing=xy rope_temperature=10 rope_type=mixed
  naver_in1k: normalization=imagenet
vit_base_patch16_rope_reg1_gap_256 (eva) img_size=256 patch_size=16 embed_dim=768 depth=12 num_heads=12 qkv_fused=True qkv_bias=True init_values=1e-05 class_token=False num_reg_tokens=1 use_rot_pos_emb=True use_abs_pos_emb=False ref_feat_shape=(16,16)
  sbb_in1k: size=256 crop_pct=0.95
vit_betwixt_patch16_rope_reg4_gap_256 (eva) img_size=256 patch_size=16 embed_dim=640 depth=12 num_heads=10 qkv_fused=True qkv_bias=True init_values=1e-05 class_token=False num_reg_tokens=4 use_rot_pos_emb=True use_abs_pos_emb=False ref_feat_shape=(16,16)
  sbb_in1k: size=256 crop_pct=0.95 normalization=clip
vit_giant_patch16_lingbot (eva) patch_size=16 dynamic_img_size=True embed_dim=1536 depth=40 num_heads=24 qkv_bias=False global_pool=token mlp_ratio=2.6666666666666665 init_values=1e-05 rope_type=dinov3 rope_temperature=100 use_rot_pos_emb=True use_abs_pos_emb=False rope_rotate_half=True swiglu_mlp=True swiglu_align_to=8 num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  robbyant: size=512 crop_pct=1 interpolation=bilinear crop_mode=squash normalization=imagenet num_classes=0
vit_huge_plus_patch16_dinov3 (eva) patch_size=16 dynamic_img_size=True embed_dim=1280 depth=32 num_heads=20 qkv_bias=False init_values=1e-05 rope_type=dinov3 rope_temperature=100 use_rot_pos_emb=True use_abs_pos_emb=False rope_rotate_half=True swiglu_mlp=True swiglu_align_to=8 num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  lvd1689m: size=256 crop_pct=1 normalization=imagenet num_classes=0
vit_huge_plus_patch16_dinov3_qkvb (eva) patch_size=16 dynamic_img_size=True embed_dim=1280 depth=32 num_heads=20 qkv_bias=True init_values=1e-05 rope_type=dinov3 rope_temperature=100 use_rot_pos_emb=True use_abs_pos_emb=False rope_rotate_half=True swiglu_mlp=True swiglu_align_to=8 num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  lvd1689m: size=256 crop_pct=1 normalization=imagenet num_classes=0
vit_large_patch16_dinov3 (eva) patch_size=16 dynamic_img_size=True embed_dim=1024 depth=24 num_heads=16 qkv_bias=False init_values=1e-05 rope_type=dinov3 rope_temperature=100 use_rot_pos_emb=True use_abs_pos_emb=False rope_rotate_half=True num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  lvd1689m: size=256 crop_pct=1 normalization=imagenet num_classes=0
  sat493m: size=256 crop_pct=1 normalization=satellite num_classes=0
vit_large_patch16_dinov3_qkvb (eva) patch_size=16 dynamic_img_size=True embed_dim=1024 depth=24 num_heads=16 qkv_bias=True init_values=1e-05 rope_type=dinov3 rope_temperature=100 use_rot_pos_emb=True use_abs_pos_emb=False rope_rotate_half=True num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  lvd1689m: size=256 crop_pct=1 normalization=imagenet num_classes=0
  sat493m: size=256 crop_pct=1 normalization=satellite num_classes=0
vit_large_patch16_lingbot (eva) patch_size=16 dynamic_img_size=True embed_dim=1024 depth=24 num_heads=16 qkv_bias=True global_pool=token init_values=1e-05 rope_type=dinov3 rope_temperature=100 rope_rotate_half=True use_rot_pos_emb=True use_abs_pos_emb=False num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  robbyant: size=512 crop_pct=1 interpolation=bilinear crop_mode=squash normalization=imagenet num_classes=0
vit_large_patch16_rope_224 (eva) patch_size=16 embed_dim=1024 depth=24 num_heads=16 mlp_ratio=4 attn_type=rope qkv_bias=True init_values=1e-05 class_token=True global_pool=token use_abs_pos_emb=False use_rot_pos_emb=True rope_grid_indexing=xy rope_temperature=100
  naver_in1k: normalization=imagenet
vit_large_patch16_rope_ape_224 (eva) patch_size=16 embed_dim=1024 depth=24 num_heads=16 mlp_ratio=4 attn_type=rope qkv_bias=True init_values=1e-05 class_token=True global_pool=token no_embed_class=True use_abs_pos_emb=True use_rot_pos_emb=True rope_grid_indexing=xy rope_temperature=100
  naver_in1k: normalization=imagenet
vit_large_patch16_rope_mixed_224 (eva) patch_size=16 embed_dim=1024 depth=24 num_heads=16 mlp_ratio=4 attn_type=rope qkv_bias=True init_values=1e-05 class_token=True global_pool=token use_abs_pos_emb=False use_rot_pos_emb=True rope_grid_indexing=xy rope_temperature=10 rope_type=mixed
  naver_in1k: normalization=imagenet
vit_large_patch16_rope_mixed_ape_224 (eva) patch_size=16 embed_dim=1024 depth=24 num_heads=16 mlp_ratio=4 attn_type=rope qkv_bias=True init_values=1e-05 class_token=True global_pool=token no_embed_class=True use_abs_pos_emb=True use_rot_pos_emb=True rope_grid_indexing=xy rope_temperature=10 rope_type=mixed
  naver_in1k: normalization=imagenet
vit_medium_patch16_rope_reg1_gap_256 (eva) img_size=256 patch_size=16 embed_dim=512 depth=12 num_heads=8 qkv_fused=True qkv_bias=True init_values=1e-05 class_token=False num_reg_tokens=1 use_rot_pos_emb=True use_abs_pos_emb=False ref_feat_shape=(16,16)
  sbb_in1k: size=256 crop_pct=0.95
vit_mediumd_patch16_rope_reg1_gap_256 (eva) img_size=256 patch_size=16 embed_dim=512 depth=20 num_heads=8 qkv_fused=True qkv_bias=False init_values=1e-05 class_token=False num_reg_tokens=1 use_rot_pos_emb=True use_abs_pos_emb=False ref_feat_shape=(16,16)
  sbb_in1k: size=256 crop_pct=0.95
vit_pe_core_base_patch16_224 (eva) patch_size=16 embed_dim=768 depth=12 num_heads=12 mlp_ratio=4 global_pool=map attn_type=rope use_pre_transformer_norm=True use_rot_pos_emb=True ref_feat_shape=(14,14) rope_grid_offset=1 rope_grid_indexing=xy attn_pool_num_heads=8 attn_pool_mlp_ratio=4 norm_layer=(layernorm,1e-05)
  fb: crop_pct=1 num_classes=1024
vit_pe_core_gigantic_patch14_448 (eva) patch_size=14 embed_dim=1536 depth=50 num_heads=16 mlp_ratio=5.833333333333333 global_pool=map attn_type=rope class_token=False use_pre_transformer_norm=True use_rot_pos_emb=True ref_feat_shape=(32,32) rope_grid_indexing=xy attn_pool_num_heads=8 attn_pool_mlp_ratio=4 norm_layer=(layernorm,1e-05)
  fb: size=448 crop_pct=1 num_classes=1280
vit_pe_core_large_patch14_336 (eva) patch_size=14 embed_dim=1024 depth=24 num_heads=16 mlp_ratio=4 global_pool=map attn_type=rope use_pre_transformer_norm=True use_rot_pos_emb=True ref_feat_shape=(24,24) rope_grid_offset=1 rope_grid_indexing=xy attn_pool_num_heads=8 attn_pool_mlp_ratio=4 norm_layer=(layernorm,1e-05)
  fb: size=336 crop_pct=1 num_classes=1024
vit_pe_core_small_patch16_384 (eva) patch_size=16 embed_dim=384 depth=12 num_heads=6 mlp_ratio=4 global_pool=map attn_type=rope use_pre_transformer_norm=True use_rot_pos_emb=True ref_feat_shape=(24,24) rope_grid_offset=1 rope_grid_indexing=xy attn_pool_num_heads=8 attn_pool_mlp_ratio=4 norm_layer=(layernorm,1e-05)
  fb: size=384 crop_pct=1 num_classes=512
vit_pe_core_tiny_patch16_384 (eva) patch_size=16 embed_dim=192 depth=12 num_heads=3 mlp_ratio=4 global_pool=map attn_type=rope use_pre_transformer_norm=True use_rot_pos_emb=True ref_feat_shape=(24,24) rope_grid_offset=1 rope_grid_indexing=xy attn_pool_num_heads=8 attn_pool_mlp_ratio=4 norm_layer=(layernorm,1e-05)
  fb: size=384 crop_pct=1 num_classes=512
vit_pe_lang_gigantic_patch14_448 (eva) patch_size=14 embed_dim=1536 depth=47 num_heads=16 mlp_ratio=5.833333333333333 attn_type=rope class_token=False use_rot_pos_emb=True ref_feat_shape=(32,32) rope_grid_indexing=xy use_pre_transformer_norm=True use_post_transformer_norm=False use_fc_norm=False init_values=0.1 norm_layer=(layernorm,1e-05)
  fb fb_tiling: size=448 crop_pct=1 num_classes=0
vit_pe_lang_large_patch14_448 (eva) patch_size=14 embed_dim=1024 depth=23 num_heads=16 mlp_ratio=4 attn_type=rope class_token=True use_rot_pos_emb=True ref_feat_shape=(32,32) rope_grid_offset=1 rope_grid_indexing=xy use_pre_transformer_norm=True use_post_transformer_norm=False use_fc_norm=False init_values=0.1 norm_layer=(layernorm,1e-05)
  fb fb_tiling: size=448 crop_pct=1 num_classes=0
vit_pe_spatial_base_patch16_512 (eva) patch_size=16 embed_dim=768 depth=12 num_heads=12 mlp_ratio=4 attn_type=rope use_pre_transformer_norm=True use_post_transformer_norm=False use_fc_norm=False use_rot_pos_emb=True ref_feat_shape=(32,32) rope_grid_offset=1 rope_grid_indexing=xy norm_layer=(layernorm,1e-05)
  fb: size=512 crop_pct=1 num_classes=0
vit_pe_spatial_gigantic_patch14_448 (eva) patch_size=14 embed_dim=1536 depth=50 num_heads=16 mlp_ratio=5.833333333333333 attn_type=rope class_token=False use_rot_pos_emb=True ref_feat_shape=(32,32) rope_grid_indexing=xy use_pre_transformer_norm=True use_post_transformer_norm=False use_fc_norm=False init_values=0.1 norm_layer=(layernorm,1e-05)
  fb: size=448 crop_pct=1 num_classes=0
vit_pe_spatial_large_patch14_448 (eva) patch_size=14 embed_dim=1024 depth=24 num_heads=16 mlp_ratio=4 attn_type=rope use_pre_transformer_norm=True use_post_transformer_norm=False use_fc_norm=False use_rot_pos_emb=True ref_feat_shape=(32,32) rope_grid_offset=1 rope_grid_indexing=xy norm_layer=(layernorm,1e-05)
  fb: size=448 crop_pct=1 num_classes=0
vit_pe_spatial_small_patch16_512 (eva) patch_size=16 embed_dim=384 depth=12 num_heads=6 mlp_ratio=4 attn_type=rope use_pre_transformer_norm=True use_post_transformer_norm=False use_fc_norm=False use_rot_pos_emb=True ref_feat_shape=(32,32) rope_grid_offset=1 rope_grid_indexing=xy norm_layer=(layernorm,1e-05)
  fb: size=512 crop_pct=1 num_classes=0
vit_pe_spatial_tiny_patch16_512 (eva) patch_size=16 embed_dim=192 depth=12 num_heads=3 mlp_ratio=4 attn_type=rope use_pre_transformer_norm=True use_post_transformer_norm=False use_fc_norm=False use_rot_pos_emb=True ref_feat_shape=(32,32) rope_grid_offset=1 rope_grid_indexing=xy norm_layer=(layernorm,1e-05)
  fb: size=512 crop_pct=1 num_classes=0
vit_small_patch16_dinov3 (eva) patch_size=16 dynamic_img_size=True embed_dim=384 depth=12 num_heads=6 qkv_bias=False init_values=1e-05 rope_type=dinov3 rope_temperature=100 rope_rotate_half=True use_rot_pos_emb=True use_abs_pos_emb=False num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  lvd1689m: size=256 crop_pct=1 normalization=imagenet num_classes=0
vit_small_patch16_dinov3_qkvb (eva) patch_size=16 dynamic_img_size=True embed_dim=384 depth=12 num_heads=6 qkv_bias=True init_values=1e-05 rope_type=dinov3 rope_temperature=100 rope_rotate_half=True use_rot_pos_emb=True use_abs_pos_emb=False num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  lvd1689m eupe_lvd1689m: size=256 crop_pct=1 normalization=imagenet num_classes=0
vit_small_patch16_lingbot (eva) patch_size=16 dynamic_img_size=True embed_dim=384 depth=12 num_heads=6 qkv_bias=True global_pool=token init_values=1e-05 rope_type=dinov3 rope_temperature=100 rope_rotate_half=True use_rot_pos_emb=True use_abs_pos_emb=False num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  robbyant: size=512 crop_pct=1 interpolation=bilinear crop_mode=squash normalization=imagenet num_classes=0
vit_small_patch16_rope_224 (eva) patch_size=16 embed_dim=384 depth=12 num_heads=6 mlp_ratio=4 attn_type=rope qkv_bias=True init_values=1e-05 class_token=True global_pool=token use_abs_pos_emb=False use_rot_pos_emb=True rope_grid_indexing=xy rope_temperature=100
  naver_in1k: normalization=imagenet
vit_small_patch16_rope_ape_224 (eva) patch_size=16 embed_dim=384 depth=12 num_heads=6 mlp_ratio=4 attn_type=rope qkv_bias=True init_values=1e-05 class_token=True global_pool=token no_embed_class=True use_abs_pos_emb=True use_rot_pos_emb=True rope_grid_indexing=xy rope_temperature=100
  naver_in1k: normalization=imagenet
vit_small_patch16_rope_mixed_224 (eva) patch_size=16 embed_dim=384 depth=12 num_heads=6 mlp_ratio=4 attn_type=rope qkv_bias=True init_values=1e-05 class_token=True global_pool=token use_abs_pos_emb=False use_rot_pos_emb=True rope_grid_indexing=xy rope_temperature=10 rope_type=mixed
  naver_in1k: normalization=imagenet
vit_small_patch16_rope_mixed_ape_224 (eva) patch_size=16 embed_dim=384 depth=12 num_heads=6 mlp_ratio=4 attn_type=rope qkv_bias=True init_values=1e-05 class_token=True global_pool=token no_embed_class=True use_abs_pos_emb=True use_rot_pos_emb=True rope_grid_indexing=xy rope_temperature=10 rope_type=mixed
  naver_in1k: normalization=imagenet
vit_small_plus_patch16_dinov3 (eva) patch_size=16 dynamic_img_size=True embed_dim=384 depth=12 num_heads=6 qkv_bias=False init_values=1e-05 rope_type=dinov3 rope_temperature=100 rope_rotate_half=True use_rot_pos_emb=True use_abs_pos_emb=False swiglu_mlp=True swiglu_align_to=8 num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  lvd1689m: size=256 crop_pct=1 normalization=imagenet num_classes=0
vit_small_plus_patch16_dinov3_qkvb (eva) patch_size=16 dynamic_img_size=True embed_dim=384 depth=12 num_heads=6 qkv_bias=True init_values=1e-05 rope_type=dinov3 rope_temperature=100 rope_rotate_half=True use_rot_pos_emb=True use_abs_pos_emb=False swiglu_mlp=True swiglu_align_to=8 num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  lvd1689m: size=256 crop_pct=1 normalization=imagenet num_classes=0
vit_tiny_patch16_dinov3_qkvb (eva) patch_size=16 dynamic_img_size=True embed_dim=192 depth=12 num_heads=3 qkv_bias=True init_values=1e-05 rope_type=dinov3 rope_temperature=100 rope_rotate_half=True use_rot_pos_emb=True use_abs_pos_emb=False num_reg_tokens=4 use_fc_norm=False norm_layer=(layernorm,1e-05)
  eupe_lvd1689m: size=256 crop_pct=1 normalization=imagenet num_classes=0
)";
}

}  // namespace vitrail::models
