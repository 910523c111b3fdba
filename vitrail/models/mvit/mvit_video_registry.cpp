// torchvision's Multiscale Vision Transformers for videos by name (torchvision's models/video/mvit.py).
#include "vitrail/models/mvit/families.h"

namespace vitrail::models {

// A name, its family and its arguments; below, the tag of its checkpoint with how its frames are prepared.
std::string_view mvit_video_table() {
  return R"(
mvit_v1_b (mvit_video) num_heads=(1,2,2,4,4,4,4,4,4,4,4,4,4,4,8,8) input_channels=(96,192,192,384,384,384,384,384,384,384,384,384,384,384,768,768) output_channels=(192,192,384,384,384,384,384,384,384,384,384,384,384,768,768,768) kernel_q=((),(3,3,3),(),(3,3,3),(),(),(),(),(),(),(),(),(),(),(3,3,3),()) kernel_kv=((3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3)) stride_q=((),(1,2,2),(),(1,2,2),(),(),(),(),(),(),(),(),(),(),(1,2,2),()) stride_kv=((1,8,8),(1,4,4),(1,4,4),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,1,1),(1,1,1)) residual_pool=False residual_with_cls_embed=False drop_path_rate=0.2
  kinetics400_v1: num_classes=400 crop_pct=0.875 interpolation=bilinear normalization=kinetics
mvit_v2_s (mvit_video) num_heads=(1,2,2,4,4,4,4,4,4,4,4,4,4,4,8,8) input_channels=(96,96,192,192,384,384,384,384,384,384,384,384,384,384,384,768) output_channels=(96,192,192,384,384,384,384,384,384,384,384,384,384,384,768,768) kernel_q=((3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3)) kernel_kv=((3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3),(3,3,3)) stride_q=((1,1,1),(1,2,2),(1,1,1),(1,2,2),(1,1,1),(1,1,1),(1,1,1),(1,1,1),(1,1,1),(1,1,1),(1,1,1),(1,1,1),(1,1,1),(1,1,1),(1,2,2),(1,1,1)) stride_kv=((1,8,8),(1,4,4),(1,4,4),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,2,2),(1,1,1),(1,1,1)) residual_pool=True residual_with_cls_embed=False rel_pos_embed=True proj_after_attn=True drop_path_rate=0.2
  kinetics400_v1: num_classes=400 crop_pct=0.875 interpolation=bilinear normalization=kinetics
)";
}

}  // namespace vitrail::models
