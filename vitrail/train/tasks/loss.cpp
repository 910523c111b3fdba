#include "vitrail/train/tasks/loss.h"

#include "vitrail/autograd/tape.h"
#include "vitrail/data/mix.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::train {
namespace {

// The loss with the labels, of the images that have them, which come first in the batch.
Tensor task_loss(const Tensor& all_logits, const data::Batch& batch, const LossOptions& options) {
  const std::int64_t labeled = batch.labels.size(0);
  const Tensor logits = labeled == all_logits.size(0) ? all_logits : ops::narrow(all_logits, 0, 0, labeled);
  if (options.bce_loss) {
    const Tensor targets = batch.targets.defined() ? batch.targets
                                                   : data::smooth_labels(batch.labels.span<std::int64_t>(),
                                                                         logits.size(-1), options.smoothing);
    return ops::binary_cross_entropy_with_logits(logits, targets);
  }
  return batch.targets.defined() ? ops::soft_cross_entropy(logits, batch.targets)
                                 : ops::cross_entropy(logits, batch.labels, static_cast<float>(options.smoothing));
}

Tensor weighted(const Tensor& loss, double weight) { return ops::multiply(loss, static_cast<float>(weight)); }

}  // namespace

Distillation::Type distillation_named(std::string_view name) {
  if (name == "none") {
    return Distillation::Type::none;
  }
  check(name == "hard" || name == "soft", "the type of distillation must be none, hard or soft, not '{}'", name);
  return name == "hard" ? Distillation::Type::hard : Distillation::Type::soft;
}

Tensor distillation_loss(const Tensor& logits, const Tensor& teacher, const Distillation& options) {
  check(logits.rank() == 2 && logits.shape() == teacher.shape(),
        "the student's logits are {}, but the teacher's are {}", logits.shape(), teacher.shape());
  if (options.type == Distillation::Type::hard) {
    return ops::cross_entropy(logits, ops::argmax(teacher, -1));
  }
  check(options.type == Distillation::Type::soft, "there is no loss with the teacher where nothing is distilled");
  const auto cooling = static_cast<float>(1 / options.tau);
  Tensor log_p;  // the teacher's
  Tensor p;
  {
    const autograd::NoGrad no_grad;
    log_p = ops::log_softmax(ops::cast(teacher.detach(), DType::f32) * cooling, -1);
    p = ops::exp(log_p);
  }
  const Tensor log_q = ops::log_softmax(ops::cast(logits, DType::f32) * cooling, -1);
  const Tensor divergence = ops::sum(p * (log_p - log_q));  // Σ KL(p ‖ q)
  return weighted(divergence, options.tau * options.tau / static_cast<double>(logits.size(0)));
}

Tensor batch_loss(const models::ImageModel& net, const data::Batch& batch, nn::Pass& pass, const LossOptions& options,
                  const Tensor& teacher) {
  return heads_loss(net.forward_heads(batch.x, pass), batch, options, teacher);
}

Tensor heads_loss(const std::vector<Tensor>& heads, const data::Batch& batch, const LossOptions& options,
                  const Tensor& teacher) {
  if (teacher.defined()) {
    const Distillation& distillation = options.distillation;
    const Tensor taught = weighted(distillation_loss(heads.back(), teacher, distillation), distillation.distill_weight);
    return batch.labels.size(0) == 0
               ? taught
               : weighted(task_loss(heads.front(), batch, options), distillation.task_weight) + taught;
  }
  Tensor loss = task_loss(heads.front(), batch, options);
  for (std::size_t i = 1; i < heads.size(); ++i) {
    loss = loss + task_loss(heads[i], batch, options);
  }
  return heads.size() > 1 ? weighted(loss, 1.0 / static_cast<double>(heads.size())) : loss;
}

}  // namespace vitrail::train
