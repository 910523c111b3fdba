#include "vitrail/train/loss.h"

#include "vitrail/data/mix.h"
#include "vitrail/ops/arithmetic.h"
#include "vitrail/ops/softmax.h"

namespace vitrail::train {
namespace {

Tensor head_loss(const Tensor& logits, const data::Batch& batch, const LossOptions& options) {
  if (options.bce_loss) {
    const Tensor targets = batch.targets.defined() ? batch.targets
                                                   : data::mix_labels(batch.labels.span<std::int64_t>(),
                                                                      logits.size(-1), 1, options.smoothing);
    return ops::binary_cross_entropy_with_logits(logits, targets);
  }
  return batch.targets.defined() ? ops::soft_cross_entropy(logits, batch.targets)
                                 : ops::cross_entropy(logits, batch.labels, static_cast<float>(options.smoothing));
}

}  // namespace

Tensor batch_loss(const models::ImageModel& net, const data::Batch& batch, nn::Pass& pass, const LossOptions& options) {
  const std::vector<Tensor> heads = net.forward_heads(batch.x, pass);
  Tensor loss = head_loss(heads.front(), batch, options);
  for (std::size_t i = 1; i < heads.size(); ++i) {
    loss = ops::add(loss, head_loss(heads[i], batch, options));
  }
  return heads.size() > 1 ? ops::multiply(loss, 1.0F / static_cast<float>(heads.size())) : loss;
}

}  // namespace vitrail::train
