/// \file
/// The losses of classification, with and without distillation.
#pragma once

#include <string_view>
#include <vector>

#include "vitrail/data/loader.h"
#include "vitrail/models/model.h"

namespace vitrail::train {

/// What a student with logits z_s learns from the logits z_t of its teacher, besides the labels (Touvron et al. 2021):
///
/// ```text
/// hard  the most likely class of the teacher: cross-entropy(z_s, argmax z_t), equation 3
/// soft  its probabilities: τ² KL(softmax(z_t / τ) ‖ softmax(z_s / τ)), the mean over the batch,
///       equation 2 (and timm)
/// ```
///
/// DeiT's own code also divides the soft loss by the number of classes C: a distill_weight of α / C does the same.
struct Distillation {
  enum class Type { none, hard, soft };
  Type type = Type::none;
  double tau = 1;               ///< τ, the temperature of the soft loss
  double task_weight = 0.5;     ///< of the loss with the labels
  double distill_weight = 0.5;  ///< of the loss with the teacher
};
Distillation::Type distillation_named(std::string_view name);  ///< by "none", "hard" or "soft"; throws Error for others

/// Options of batch_loss().
struct LossOptions {
  double smoothing = 0;   ///< label smoothing of hard labels; mixed targets are smoothed already
  bool bce_loss = false;  ///< timm's --bce-loss: binary cross-entropy of each class
  Distillation distillation = {};
};

/// The mean loss of a batch, a scalar f32: the cross-entropy with the labels, or with the targets if MixUp or CutMix
/// has mixed them. The two heads of a distilled model (Touvron et al. 2021) both learn from the labels: the loss is the
/// mean of theirs.
///
/// With `teacher` [B, C], the logits of another model for the same images, the loss is
///
/// ```text
/// task_weight · loss with the labels + distill_weight · distillation_loss.
/// ```
///
/// Of two heads the first then learns from the labels and the second from the teacher; a single head learns from both.
/// Images without labels count in the second term alone: the first term is the mean over the others.
Tensor batch_loss(const models::ImageModel& net, const data::Batch& batch, nn::Pass& pass, const LossOptions& options,
                  const Tensor& teacher = {});
/// batch_loss() of the logits [B, C] of each head.
Tensor heads_loss(const std::vector<Tensor>& heads, const data::Batch& batch, const LossOptions& options,
                  const Tensor& teacher = {});

/// The distillation loss of the logits [B, C] of a student, a scalar f32. The logits `teacher` [B, C] receive no
/// gradient.
Tensor distillation_loss(const Tensor& logits, const Tensor& teacher, const Distillation& options);

}  // namespace vitrail::train
