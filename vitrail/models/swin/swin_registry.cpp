// timm's Swin Transformers by name (timm 1.0.31). Written by tools/golden/registry.py.
#include "vitrail/models/swin/families.h"

namespace vitrail::models {

// A name, its family and its arguments; below, tags of its checkpoints with how their images are prepared, where that
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
swinv2_base_window12_192 (swin_v2) window_size=12 embed_dim=128 depths=(2,2,18,2) num_heads=(4,8,16,32)
  ms_in22k: size=192 normalization=imagenet num_classes=21841
swinv2_base_window12to16_192to256 (swin_v2) window_size=16 embed_dim=128 depths=(2,2,18,2) num_heads=(4,8,16,32) pretrained_window_sizes=(12,12,12,6)
  ms_in22k_ft_in1k: size=256 normalization=imagenet
swinv2_base_window12to24_192to384 (swin_v2) window_size=24 embed_dim=128 depths=(2,2,18,2) num_heads=(4,8,16,32) pretrained_window_sizes=(12,12,12,6)
  ms_in22k_ft_in1k: size=384 crop_pct=1 normalization=imagenet
swinv2_base_window16_256 (swin_v2) window_size=16 embed_dim=128 depths=(2,2,18,2) num_heads=(4,8,16,32)
  ms_in1k: size=256 normalization=imagenet
swinv2_base_window8_256 (swin_v2) window_size=8 embed_dim=128 depths=(2,2,18,2) num_heads=(4,8,16,32)
  ms_in1k: size=256 normalization=imagenet
swinv2_cr_base_224 (swin_v2_cr) embed_dim=128 depths=(2,2,18,2) num_heads=(4,8,16,32)
  untrained: normalization=imagenet
swinv2_cr_base_384 (swin_v2_cr) embed_dim=128 depths=(2,2,18,2) num_heads=(4,8,16,32)
  untrained: size=384 crop_pct=1 normalization=imagenet
swinv2_cr_base_ns_224 (swin_v2_cr) embed_dim=128 depths=(2,2,18,2) num_heads=(4,8,16,32) extra_norm_stage=True
  untrained: normalization=imagenet
swinv2_cr_giant_224 (swin_v2_cr) embed_dim=512 depths=(2,2,42,2) num_heads=(16,32,64,128) extra_norm_period=6
  untrained: normalization=imagenet
swinv2_cr_giant_384 (swin_v2_cr) embed_dim=512 depths=(2,2,42,2) num_heads=(16,32,64,128) extra_norm_period=6
  untrained: size=384 crop_pct=1 normalization=imagenet
swinv2_cr_huge_224 (swin_v2_cr) embed_dim=352 depths=(2,2,18,2) num_heads=(8,16,32,64) extra_norm_period=6
  untrained: normalization=imagenet
swinv2_cr_huge_384 (swin_v2_cr) embed_dim=352 depths=(2,2,18,2) num_heads=(11,22,44,88) extra_norm_period=6
  untrained: size=384 crop_pct=1 normalization=imagenet
swinv2_cr_large_224 (swin_v2_cr) embed_dim=192 depths=(2,2,18,2) num_heads=(6,12,24,48)
  untrained: normalization=imagenet
swinv2_cr_large_384 (swin_v2_cr) embed_dim=192 depths=(2,2,18,2) num_heads=(6,12,24,48)
  untrained: size=384 crop_pct=1 normalization=imagenet
swinv2_cr_small_224 (swin_v2_cr) embed_dim=96 depths=(2,2,18,2) num_heads=(3,6,12,24)
  sw_in1k: normalization=imagenet
swinv2_cr_small_384 (swin_v2_cr) embed_dim=96 depths=(2,2,18,2) num_heads=(3,6,12,24)
  untrained: size=384 crop_pct=1 normalization=imagenet
swinv2_cr_small_ns_224 (swin_v2_cr) embed_dim=96 depths=(2,2,18,2) num_heads=(3,6,12,24) extra_norm_stage=True
  sw_in1k: normalization=imagenet
swinv2_cr_small_ns_256 (swin_v2_cr) embed_dim=96 depths=(2,2,18,2) num_heads=(3,6,12,24) extra_norm_stage=True
  untrained: size=256 crop_pct=1 normalization=imagenet
swinv2_cr_tiny_224 (swin_v2_cr) embed_dim=96 depths=(2,2,6,2) num_heads=(3,6,12,24)
  untrained: normalization=imagenet
swinv2_cr_tiny_384 (swin_v2_cr) embed_dim=96 depths=(2,2,6,2) num_heads=(3,6,12,24)
  untrained: size=384 crop_pct=1 normalization=imagenet
swinv2_cr_tiny_ns_224 (swin_v2_cr) embed_dim=96 depths=(2,2,6,2) num_heads=(3,6,12,24) extra_norm_stage=True
  sw_in1k: normalization=imagenet
swinv2_large_window12_192 (swin_v2) window_size=12 embed_dim=192 depths=(2,2,18,2) num_heads=(6,12,24,48)
  ms_in22k: size=192 normalization=imagenet num_classes=21841
swinv2_large_window12to16_192to256 (swin_v2) window_size=16 embed_dim=192 depths=(2,2,18,2) num_heads=(6,12,24,48) pretrained_window_sizes=(12,12,12,6)
  ms_in22k_ft_in1k: size=256 normalization=imagenet
swinv2_large_window12to24_192to384 (swin_v2) window_size=24 embed_dim=192 depths=(2,2,18,2) num_heads=(6,12,24,48) pretrained_window_sizes=(12,12,12,6)
  ms_in22k_ft_in1k: size=384 crop_pct=1 normalization=imagenet
swinv2_small_window16_256 (swin_v2) window_size=16 embed_dim=96 depths=(2,2,18,2) num_heads=(3,6,12,24)
  ms_in1k: size=256 normalization=imagenet
swinv2_small_window8_256 (swin_v2) window_size=8 embed_dim=96 depths=(2,2,18,2) num_heads=(3,6,12,24)
  ms_in1k: size=256 normalization=imagenet
swinv2_tiny_window16_256 (swin_v2) window_size=16 embed_dim=96 depths=(2,2,6,2) num_heads=(3,6,12,24)
  ms_in1k: size=256 normalization=imagenet
swinv2_tiny_window8_256 (swin_v2) window_size=8 embed_dim=96 depths=(2,2,6,2) num_heads=(3,6,12,24)
  ms_in1k: size=256 normalization=imagenet
)";
}

}  // namespace vitrail::models
