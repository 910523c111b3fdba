// What training minimizes.
#pragma once

#include "vitrail/data/loader.h"
#include "vitrail/models/model.h"

namespace vitrail::train {

struct LossOptions {
  double smoothing = 0;   // of hard labels; mixed targets come smoothed
  bool bce_loss = false;  // timm's --bce-loss: binary cross-entropy of each class
};

// The mean loss of a batch, a scalar f32: cross-entropy with the labels, or with the targets where MixUp or CutMix has
// mixed them. A distilled model's two heads (Touvron et al. 2021) both learn from the labels: the mean of their losses.
Tensor batch_loss(const models::ImageModel& net, const data::Batch& batch, nn::Pass& pass, const LossOptions& options);

}  // namespace vitrail::train
