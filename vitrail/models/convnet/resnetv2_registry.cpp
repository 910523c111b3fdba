// timm's Residual networks with the norms in front by name (timm 1.0.31). Written by tools/golden/registry.py.
#include "vitrail/models/convnet/families.h"

namespace vitrail::models {

// A name, its family and its arguments; below, tags of its checkpoints with how their images are prepared, where that
// differs from PretrainedConfig's own values. The first tag is the default.
std::string_view resnetv2_table() {
  return R"(
resnetv2_101 (resnetv2) layers=[3,4,23,3] conv_layer=create_conv2d norm_layer=batchnormact2d
  a1h_in1k: crop_pct=0.95 fixed_input_size=False
resnetv2_101d (resnetv2) layers=[3,4,23,3] conv_layer=create_conv2d norm_layer=batchnormact2d stem_type=deep avg_down=True
  untrained: crop_pct=0.875 fixed_input_size=False
resnetv2_101x1_bit (resnetv2) stem_type=fixed conv_layer=(stdconv2d,1e-08) layers=[3,4,23,3] width_factor=1
  goog_in21k_ft_in1k: size=448 crop_pct=1 interpolation=bilinear fixed_input_size=False
  goog_in21k: crop_pct=0.875 interpolation=bilinear num_classes=21843 fixed_input_size=False
resnetv2_101x3_bit (resnetv2) stem_type=fixed conv_layer=(stdconv2d,1e-08) layers=[3,4,23,3] width_factor=3
  goog_in21k_ft_in1k: size=448 crop_pct=1 interpolation=bilinear fixed_input_size=False
  goog_in21k: crop_pct=0.875 interpolation=bilinear num_classes=21843 fixed_input_size=False
resnetv2_152 (resnetv2) layers=[3,8,36,3] conv_layer=create_conv2d norm_layer=batchnormact2d
  untrained: crop_pct=0.875 fixed_input_size=False
resnetv2_152d (resnetv2) layers=[3,8,36,3] conv_layer=create_conv2d norm_layer=batchnormact2d stem_type=deep avg_down=True
  untrained: crop_pct=0.875 fixed_input_size=False
resnetv2_152x2_bit (resnetv2) stem_type=fixed conv_layer=(stdconv2d,1e-08) layers=[3,8,36,3] width_factor=2
  goog_teacher_in21k_ft_in1k: crop_pct=0.875 fixed_input_size=False
  goog_in21k: crop_pct=0.875 interpolation=bilinear num_classes=21843 fixed_input_size=False
  goog_in21k_ft_in1k: size=448 crop_pct=1 interpolation=bilinear fixed_input_size=False
  goog_teacher_in21k_ft_in1k_384: size=384 crop_pct=1 fixed_input_size=False
resnetv2_152x4_bit (resnetv2) stem_type=fixed conv_layer=(stdconv2d,1e-08) layers=[3,8,36,3] width_factor=4
  goog_in21k_ft_in1k: size=480 crop_pct=1 interpolation=bilinear fixed_input_size=False
  goog_in21k: crop_pct=0.875 interpolation=bilinear num_classes=21843 fixed_input_size=False
resnetv2_18 (resnetv2) layers=[2,2,2,2] channels=(64,128,256,512) basic=True bottle_ratio=1 conv_layer=create_conv2d norm_layer=batchnormact2d
  ra4_e3600_r224_in1k: fixed_input_size=False
resnetv2_18d (resnetv2) layers=[2,2,2,2] channels=(64,128,256,512) basic=True bottle_ratio=1 conv_layer=create_conv2d norm_layer=batchnormact2d stem_type=deep avg_down=True
  ra4_e3600_r224_in1k: fixed_input_size=False
resnetv2_34 (resnetv2) layers=(3,4,6,3) channels=(64,128,256,512) basic=True bottle_ratio=1 conv_layer=create_conv2d norm_layer=batchnormact2d
  ra4_e3600_r224_in1k: fixed_input_size=False
resnetv2_34d (resnetv2) layers=(3,4,6,3) channels=(64,128,256,512) basic=True bottle_ratio=1 conv_layer=create_conv2d norm_layer=batchnormact2d stem_type=deep avg_down=True
  ra4_e3600_r224_in1k: fixed_input_size=False
  ra4_e3600_r384_in1k: size=384 crop_pct=1 fixed_input_size=False
resnetv2_50 (resnetv2) layers=[3,4,6,3] conv_layer=create_conv2d norm_layer=batchnormact2d
  a1h_in1k: crop_pct=0.95 fixed_input_size=False
resnetv2_50d (resnetv2) layers=[3,4,6,3] conv_layer=create_conv2d norm_layer=batchnormact2d stem_type=deep avg_down=True
  untrained: crop_pct=0.875 fixed_input_size=False
resnetv2_50d_gn (resnetv2) layers=[3,4,6,3] conv_layer=create_conv2d norm_layer=groupnormact stem_type=deep avg_down=True
  ah_in1k: crop_pct=0.95 fixed_input_size=False
resnetv2_50t (resnetv2) layers=[3,4,6,3] conv_layer=create_conv2d norm_layer=batchnormact2d stem_type=tiered avg_down=True
  untrained: crop_pct=0.875 fixed_input_size=False
resnetv2_50x1_bit (resnetv2) stem_type=fixed conv_layer=(stdconv2d,1e-08) layers=[3,4,6,3] width_factor=1
  goog_distilled_in1k: crop_pct=0.875 fixed_input_size=False
  goog_in21k: crop_pct=0.875 interpolation=bilinear num_classes=21843 fixed_input_size=False
  goog_in21k_ft_in1k: size=448 crop_pct=1 interpolation=bilinear fixed_input_size=False
resnetv2_50x3_bit (resnetv2) stem_type=fixed conv_layer=(stdconv2d,1e-08) layers=[3,4,6,3] width_factor=3
  goog_in21k_ft_in1k: size=448 crop_pct=1 interpolation=bilinear fixed_input_size=False
  goog_in21k: crop_pct=0.875 interpolation=bilinear num_classes=21843 fixed_input_size=False
)";
}

}  // namespace vitrail::models
