// timm's Residual networks by name (timm 1.0.31). Written by tools/golden/registry.py.
#include "vitrail/models/convnet/families.h"

namespace vitrail::models {

// A name, its family and its arguments; below, tags of its checkpoints with how their images are prepared, where that
// differs from PretrainedConfig's own values. The first tag is the default.
std::string_view resnet_table() {
  return R"(
resnet101 (resnet) block=bottleneck layers=(3,4,23,3)
  a1h_in1k a1_in1k a2_in1k: crop_pct=0.95 normalization=imagenet fixed_input_size=False
  a3_in1k: size=160 crop_pct=0.95 normalization=imagenet fixed_input_size=False
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
  tv2_in1k: size=176 crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
  tv_in1k: crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
resnet101c (resnet) block=bottleneck layers=(3,4,23,3) stem_width=32 stem_type=deep
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet101d (resnet) block=bottleneck layers=(3,4,23,3) stem_width=32 stem_type=deep avg_down=True
  ra2_in1k: size=256 crop_pct=0.95 normalization=imagenet fixed_input_size=False
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet101s (resnet) block=bottleneck layers=(3,4,23,3) stem_width=64 stem_type=deep
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet10t (resnet) block=basicblock layers=(1,1,1,1) stem_width=32 stem_type=deep_tiered avg_down=True
  c3_in1k: size=176 crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet14t (resnet) block=bottleneck layers=(1,1,1,1) stem_width=32 stem_type=deep_tiered avg_down=True
  c3_in1k: size=176 crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet152 (resnet) block=bottleneck layers=(3,8,36,3)
  a1h_in1k a1_in1k a2_in1k: crop_pct=0.95 normalization=imagenet fixed_input_size=False
  a3_in1k: size=160 crop_pct=0.95 normalization=imagenet fixed_input_size=False
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
  tv2_in1k: size=176 crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
  tv_in1k: crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
resnet152c (resnet) block=bottleneck layers=(3,8,36,3) stem_width=32 stem_type=deep
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet152d (resnet) block=bottleneck layers=(3,8,36,3) stem_width=32 stem_type=deep avg_down=True
  ra2_in1k: size=256 crop_pct=0.95 normalization=imagenet fixed_input_size=False
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet152s (resnet) block=bottleneck layers=(3,8,36,3) stem_width=64 stem_type=deep
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet18 (resnet) block=basicblock layers=(2,2,2,2)
  a1_in1k a2_in1k: crop_pct=0.95 normalization=imagenet fixed_input_size=False
  a3_in1k: size=160 crop_pct=0.95 normalization=imagenet fixed_input_size=False
  fb_ssl_yfcc100m_ft_in1k fb_swsl_ig1b_ft_in1k tv_in1k: crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet18d (resnet) block=basicblock layers=(2,2,2,2) stem_width=32 stem_type=deep avg_down=True
  ra2_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
  ra4_e3600_r224_in1k: fixed_input_size=False
resnet200 (resnet) block=bottleneck layers=(3,24,36,3)
  untrained: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet200d (resnet) block=bottleneck layers=(3,24,36,3) stem_width=32 stem_type=deep avg_down=True
  ra2_in1k: size=256 crop_pct=0.95 normalization=imagenet fixed_input_size=False
resnet26 (resnet) block=bottleneck layers=(2,2,2,2)
  bt_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet26d (resnet) block=bottleneck layers=(2,2,2,2) stem_width=32 stem_type=deep avg_down=True
  bt_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet26t (resnet) block=bottleneck layers=(2,2,2,2) stem_width=32 stem_type=deep_tiered avg_down=True
  ra2_in1k: size=256 crop_pct=0.94 normalization=imagenet fixed_input_size=False
resnet34 (resnet) block=basicblock layers=(3,4,6,3)
  a1_in1k a2_in1k: crop_pct=0.95 normalization=imagenet fixed_input_size=False
  a3_in1k: size=160 crop_pct=0.95 normalization=imagenet fixed_input_size=False
  bt_in1k gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
  ra4_e3600_r224_in1k: fixed_input_size=False
  tv_in1k: crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
resnet34d (resnet) block=basicblock layers=(3,4,6,3) stem_width=32 stem_type=deep avg_down=True
  ra2_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet50 (resnet) block=bottleneck layers=(3,4,6,3)
  a1_in1k a2_in1k b1k_in1k b2k_in1k c1_in1k c2_in1k d_in1k: crop_pct=0.95 normalization=imagenet fixed_input_size=False
  a1h_in1k: size=176 normalization=imagenet fixed_input_size=False
  a3_in1k: size=160 crop_pct=0.95 normalization=imagenet fixed_input_size=False
  am_in1k bt_in1k gluon_in1k ra_in1k ram_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
  bamboo: crop_pct=1 normalization=imagenet num_classes=0 fixed_input_size=False
  fb_ssl_yfcc100m_ft_in1k fb_swsl_ig1b_ft_in1k tv_in1k: crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
  tv2_in1k: size=176 crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
resnet50c (resnet) block=bottleneck layers=(3,4,6,3) stem_width=32 stem_type=deep
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet50d (resnet) block=bottleneck layers=(3,4,6,3) stem_width=32 stem_type=deep avg_down=True
  ra2_in1k gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
  a1_in1k a2_in1k: crop_pct=0.95 normalization=imagenet fixed_input_size=False
  a3_in1k: size=160 crop_pct=0.95 normalization=imagenet fixed_input_size=False
  ra4_e3600_r224_in1k: crop_pct=0.95 fixed_input_size=False
resnet50s (resnet) block=bottleneck layers=(3,4,6,3) stem_width=64 stem_type=deep
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnet50t (resnet) block=bottleneck layers=(3,4,6,3) stem_width=32 stem_type=deep_tiered avg_down=True
  untrained: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnext101_32x16d (resnet) block=bottleneck layers=(3,4,23,3) cardinality=32 base_width=16
  fb_wsl_ig1b_ft_in1k fb_ssl_yfcc100m_ft_in1k fb_swsl_ig1b_ft_in1k: crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
resnext101_32x32d (resnet) block=bottleneck layers=(3,4,23,3) cardinality=32 base_width=32
  fb_wsl_ig1b_ft_in1k: crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
resnext101_32x4d (resnet) block=bottleneck layers=(3,4,23,3) cardinality=32 base_width=4
  fb_ssl_yfcc100m_ft_in1k fb_swsl_ig1b_ft_in1k: crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
resnext101_32x8d (resnet) block=bottleneck layers=(3,4,23,3) cardinality=32 base_width=8
  tv_in1k fb_ssl_yfcc100m_ft_in1k fb_swsl_ig1b_ft_in1k fb_wsl_ig1b_ft_in1k: crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
  tv2_in1k: size=176 crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
resnext101_64x4d (resnet) block=bottleneck layers=(3,4,23,3) cardinality=64 base_width=4
  c1_in1k: crop_pct=0.95 normalization=imagenet fixed_input_size=False
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
  tv_in1k: crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
resnext50_32x4d (resnet) block=bottleneck layers=(3,4,6,3) cardinality=32 base_width=4
  a1h_in1k a1_in1k a2_in1k: crop_pct=0.95 normalization=imagenet fixed_input_size=False
  a3_in1k: size=160 crop_pct=0.95 normalization=imagenet fixed_input_size=False
  fb_ssl_yfcc100m_ft_in1k fb_swsl_ig1b_ft_in1k tv_in1k: crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
  gluon_in1k ra_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
  tv2_in1k: size=176 crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
resnext50d_32x4d (resnet) block=bottleneck layers=(3,4,6,3) cardinality=32 base_width=4 stem_width=32 stem_type=deep avg_down=True
  bt_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
senet154 (resnet) block=bottleneck layers=(3,8,36,3) cardinality=64 base_width=4 stem_type=deep down_kernel_size=3 block_reduce_first=2 block_args={attn_layer:se}
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
seresnet101 (resnet) block=bottleneck layers=(3,4,23,3) block_args={attn_layer:se}
  untrained: crop_pct=0.875 normalization=imagenet fixed_input_size=False
seresnet152 (resnet) block=bottleneck layers=(3,8,36,3) block_args={attn_layer:se}
  untrained: crop_pct=0.875 normalization=imagenet fixed_input_size=False
seresnet152d (resnet) block=bottleneck layers=(3,8,36,3) stem_width=32 stem_type=deep avg_down=True block_args={attn_layer:se}
  ra2_in1k: size=256 crop_pct=0.95 normalization=imagenet fixed_input_size=False
seresnet18 (resnet) block=basicblock layers=(2,2,2,2) block_args={attn_layer:se}
  untrained: crop_pct=0.875 normalization=imagenet fixed_input_size=False
seresnet200d (resnet) block=bottleneck layers=(3,24,36,3) stem_width=32 stem_type=deep avg_down=True block_args={attn_layer:se}
  untrained: size=256 crop_pct=0.875 normalization=imagenet fixed_input_size=False
seresnet269d (resnet) block=bottleneck layers=(3,30,48,8) stem_width=32 stem_type=deep avg_down=True block_args={attn_layer:se}
  untrained: size=256 crop_pct=0.875 normalization=imagenet fixed_input_size=False
seresnet34 (resnet) block=basicblock layers=(3,4,6,3) block_args={attn_layer:se}
  untrained: crop_pct=0.875 normalization=imagenet fixed_input_size=False
seresnet50 (resnet) block=bottleneck layers=(3,4,6,3) block_args={attn_layer:se}
  a1_in1k a2_in1k: crop_pct=0.95 normalization=imagenet fixed_input_size=False
  a3_in1k: size=160 crop_pct=0.95 normalization=imagenet fixed_input_size=False
  ra2_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
seresnet50t (resnet) block=bottleneck layers=(3,4,6,3) stem_width=32 stem_type=deep_tiered avg_down=True block_args={attn_layer:se}
  untrained: crop_pct=0.875 normalization=imagenet fixed_input_size=False
seresnext101_32x4d (resnet) block=bottleneck layers=(3,4,23,3) cardinality=32 base_width=4 block_args={attn_layer:se}
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
seresnext101_32x8d (resnet) block=bottleneck layers=(3,4,23,3) cardinality=32 base_width=8 block_args={attn_layer:se}
  ah_in1k: crop_pct=0.95 normalization=imagenet fixed_input_size=False
seresnext101_64x4d (resnet) block=bottleneck layers=(3,4,23,3) cardinality=64 base_width=4 block_args={attn_layer:se}
  gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
seresnext101d_32x8d (resnet) block=bottleneck layers=(3,4,23,3) cardinality=32 base_width=8 stem_width=32 stem_type=deep avg_down=True block_args={attn_layer:se}
  ah_in1k: crop_pct=0.95 normalization=imagenet fixed_input_size=False
seresnext26d_32x4d (resnet) block=bottleneck layers=(2,2,2,2) cardinality=32 base_width=4 stem_width=32 stem_type=deep avg_down=True block_args={attn_layer:se}
  bt_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
seresnext26t_32x4d (resnet) block=bottleneck layers=(2,2,2,2) cardinality=32 base_width=4 stem_width=32 stem_type=deep_tiered avg_down=True block_args={attn_layer:se}
  bt_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
seresnext50_32x4d (resnet) block=bottleneck layers=(3,4,6,3) cardinality=32 base_width=4 block_args={attn_layer:se}
  racm_in1k gluon_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
wide_resnet101_2 (resnet) block=bottleneck layers=(3,4,23,3) base_width=128
  tv_in1k: crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
  tv2_in1k: size=176 crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
wide_resnet50_2 (resnet) block=bottleneck layers=(3,4,6,3) base_width=128
  racm_in1k: crop_pct=0.875 normalization=imagenet fixed_input_size=False
  tv2_in1k: size=176 crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
  tv_in1k: crop_pct=0.875 interpolation=bilinear normalization=imagenet fixed_input_size=False
)";
}

}  // namespace vitrail::models
