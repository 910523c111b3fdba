// What training minimizes.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "vitrail/data/loader.h"
#include "vitrail/models/model.h"

namespace vitrail::train {

// What a student learns from its teacher's logits z_t beside the labels, by its own z_s (Touvron et al. 2021):
//   hard  the class that the teacher would choose: cross-entropy(z_s, argmax z_t), equation 3;
//   soft  its probabilities: τ² KL(softmax(z_t / τ) ‖ softmax(z_s / τ)), the mean over the batch, equation 2 (and
//   timm).
// DeiT's own code divides the soft loss by the number of classes besides: a distill_weight of α / C does the same.
struct Distillation {
  enum class Type { none, hard, soft };
  Type type = Type::none;
  double tau = 1;
  double task_weight = 0.5;     // of the loss with the labels
  double distill_weight = 0.5;  // of the loss with the teacher
};
Distillation::Type distillation_named(std::string_view name);  // "none", "hard", "soft"; Error if unknown
// What a step minimizes: the mean loss of a batch, a scalar f32, from one forward pass.
using Objective = std::function<Tensor(const data::Batch& batch, nn::Pass& pass)>;

struct LossOptions {
  double smoothing = 0;   // of hard labels; mixed targets come smoothed
  bool bce_loss = false;  // timm's --bce-loss: binary cross-entropy of each class
  Distillation distillation = {};
};

// The mean loss of a batch, a scalar f32: cross-entropy with the labels, or with the targets where MixUp or CutMix has
// mixed them. A distilled model's two heads (Touvron et al. 2021) both learn from the labels: the mean of their losses.
//
// Given `teacher` [B, C], the logits of another model for the same pictures, it is
//   task_weight · loss with the labels + distill_weight · distillation_loss;
// of two heads the first then learns from the labels and the second from the teacher, a single one from both. Pictures
// without labels count in the second term alone; the first is the mean over the others.
Tensor batch_loss(const models::ImageModel& net, const data::Batch& batch, nn::Pass& pass, const LossOptions& options,
                  const Tensor& teacher = {});
// The same of the logits [B, C] of each head.
Tensor heads_loss(const std::vector<Tensor>& heads, const data::Batch& batch, const LossOptions& options,
                  const Tensor& teacher = {});

// From a batch's x to the logits of each head: ImageModel::forward_heads, or what stands in for it.
using Forward = std::function<std::vector<Tensor>(const Tensor& x, nn::Pass& pass)>;

// The loss of logits [B, C] with a teacher's [B, C], which receive no gradient: a scalar f32.
Tensor distillation_loss(const Tensor& logits, const Tensor& teacher, const Distillation& options);

}  // namespace vitrail::train
