// All families of models. A new family is a constant in files of its own and an entry in this list.
#include "vitrail/models/convnet/families.h"

#include "vitrail/models/mlp/families.h"
#include "vitrail/models/mvit/families.h"
#include "vitrail/models/recurrent/families.h"
#include "vitrail/models/swin/families.h"
#include "vitrail/models/vit/families.h"

namespace vitrail::models {

std::span<const Family* const> families() {
  static constexpr const Family* all[] = {
      &vit_family,        &vit_distilled_family, &vit_relpos_family,
      &vit_hybrid_family, &vit_mae_family,       &eva_family,
      &beit_family,       &swin_family,          &swin_v2_family,
      &swin_v2_cr_family, &mvit_family,          &mvit_video_family,
      &resnet_family,     &sagan_resnet_family,  &resnetv2_family,
      &botnet_family,     &mlp_mixer_family,     &s2_mlp_family,
      &cycle_mlp_family,  &row_network_family,   &linear_classifier_family,
      &airbench_family,   &sam_family,
  };
  return all;
}

}  // namespace vitrail::models
