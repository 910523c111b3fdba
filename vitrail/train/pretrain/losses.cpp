#include "vitrail/train/pretrain/losses.h"

#include <vector>

#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/error.h"

namespace vitrail::train {
namespace {

constexpr float masked = -1e30F;  // a logit whose exponential is 0

void check_pairs(const char* loss, const Tensor& a, const Tensor& b) {
  check(a.rank() == 2 && a.shape() == b.shape(), "{}: the two views are {} and {}, not both [N, D]", loss, a.shape(),
        b.shape());
  check(a.size(0) >= 2, "{} compares images with one another: a batch of {} has none to compare with", loss, a.size(0));
}

// 0, 1, … shifted by `shift`, modulo n.
Tensor counted_labels(std::int64_t n, std::int64_t shift = 0) {
  const Tensor labels = Tensor::empty({n}, DType::i64);
  for (std::int64_t i = 0; i < n; ++i) {
    labels.data<std::int64_t>()[i] = (i + shift) % n;
  }
  return labels;
}

}  // namespace

Tensor nt_xent(const Tensor& z0, const Tensor& z1, float temperature) {
  check_pairs("NT-Xent", z0, z1);
  const std::int64_t images = z0.size(0);
  const Tensor z = ops::normalize(ops::concat({z0, z1}, 0));
  const Tensor diagonal = Tensor::zeros({2 * images, 2 * images});
  for (std::int64_t i = 0; i < 2 * images; ++i) {
    diagonal.data<float>()[i * (2 * images + 1)] = masked;
  }
  const Tensor logits = ops::matmul(z, ops::transpose(z, 0, 1)) * (1 / temperature) + diagonal;
  return ops::cross_entropy(logits, counted_labels(2 * images, images));
}

Tensor contrastive_loss(const Tensor& q, const Tensor& k, float temperature) {
  check_pairs("the contrastive loss", q, k);
  const Tensor keys = ops::normalize(k.detach());
  const Tensor logits = ops::matmul(ops::normalize(q), keys.transpose(0, 1)) * (1 / temperature);
  return ops::cross_entropy(logits, counted_labels(q.size(0))) * (2 * temperature);
}

Tensor dino_targets(const Tensor& teacher, const Tensor& center, double temperature) {
  const autograd::NoGrad no_grad;
  return ops::softmax((teacher.detach() - center) * static_cast<float>(1 / temperature), -1);
}

Tensor dino_loss(const Tensor& student, const Tensor& targets, std::int64_t views, double student_temperature) {
  check(student.rank() == 2 && targets.rank() == 2 && views > 0 && student.size(0) % views == 0 &&
            student.size(1) == targets.size(1) && targets.size(0) % (student.size(0) / views) == 0,
        "DINO's loss: {} outputs of a student do not fit {} of a teacher and {} views", student.shape(),
        targets.shape(), views);
  const std::int64_t batch = student.size(0) / views;
  const std::int64_t globals = targets.size(0) / batch;
  const std::int64_t pairs = globals * (views - 1);
  check(pairs > 0, "DINO's loss compares a view with another one, but there is only one");
  Tensor all;  // the targets of all global views, added up
  {
    const autograd::NoGrad no_grad;
    all = ops::sum(targets.detach().reshape({globals, batch, targets.size(1)}), {0});
  }
  const Tensor logits = student * static_cast<float>(1 / student_temperature);
  std::vector<Tensor> losses;
  for (std::int64_t v = 0; v < views; ++v) {
    if (v < globals && globals == 1) {
      continue;  // the only global view has none to be compared with
    }
    Tensor others = all;
    if (v < globals) {
      const autograd::NoGrad no_grad;
      others = all - targets.detach().narrow(0, v * batch, batch);
    }
    losses.push_back(ops::soft_cross_entropy(ops::narrow(logits, 0, v * batch, batch), others));
  }
  return ops::sum(ops::stack(losses, 0)) * (1 / static_cast<float>(pairs));
}

Tensor dino_center(const Tensor& center, const Tensor& teacher, double momentum) {
  const autograd::NoGrad no_grad;
  return center * static_cast<float>(momentum) +
         ops::mean(teacher.detach(), {0}, true) * static_cast<float>(1 - momentum);
}

Tensor clip_loss(const Tensor& logits) {
  check(logits.rank() == 2 && logits.size(0) == logits.size(1),
        "the loss of images and texts takes logits [N, N] of as many texts as images, not {}", logits.shape());
  check(logits.size(0) >= 2, "CLIP's loss compares pairs with one another: a batch of {} has none to compare with",
        logits.size(0));
  const Tensor right = counted_labels(logits.size(0));
  return (ops::cross_entropy(logits, right) + ops::cross_entropy(ops::transpose(logits, 0, 1), right)) * 0.5F;
}

Tensor siglip_loss(const Tensor& logits) {
  check(logits.rank() == 2 && logits.size(0) == logits.size(1),
        "the loss of images and texts takes logits [N, N] of as many texts as images, not {}", logits.shape());
  const std::int64_t pairs = logits.size(0);
  const Tensor together = Tensor::zeros({pairs, pairs});
  for (std::int64_t i = 0; i < pairs; ++i) {
    together.data<float>()[i * (pairs + 1)] = 1;
  }
  return ops::binary_cross_entropy_with_logits(logits, together) * static_cast<float>(pairs);
}

}  // namespace vitrail::train
