#include "vitrail/ops/math/softmax.h"

#include <cmath>
#include <numeric>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/loss.h"
#include "vitrail/kernels/softmax.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

// softmax() and log_softmax(): dimension `dim` is moved to the end, where the kernel works, and back.
Tensor softmax_along(const char* op, const Tensor& x, int dim, bool logarithm) {
  check(is_floating(x.dtype()), "{}: x must be f32 or bf16, not {}", op, name_of(x.dtype()));
  check(x.rank() >= 1, "{}: x must have at least one dimension", op);
  const int axis = x.shape().wrap(dim);
  const Tensor rows = x.detach().transpose(axis, -1).contiguous();
  const std::int64_t width = rows.size(-1);
  const kernels::RowSoftmax softmax{width == 0 ? 0 : rows.numel() / width, width, x.dtype(), logarithm};
  const Tensor y = Tensor::empty_like(rows);
  kernels::softmax_forward(softmax, rows.raw(), y.raw());
  return autograd::record(op, y.transpose(axis, -1).contiguous(), {&x},
                          [softmax, axis, y, dx = Gradient(x)](const Tensor& dy) {
                            const Tensor dy_rows = dy.transpose(axis, -1).contiguous();
                            const Tensor contribution = Tensor::empty_like(y);
                            kernels::softmax_backward(softmax, y.raw(), dy_rows.raw(), contribution.raw());
                            dx.add(contribution.transpose(axis, -1));
                          });
}

// The sum of the fused losses divided by `count`. `targets` owns the labels or soft targets that `loss` points to.
Tensor cross_entropy_of(const char* op, kernels::CrossEntropy loss, const Tensor& logits, const Tensor& targets,
                        std::int64_t count) {
  const Tensor dense = logits.detach().contiguous();
  const Tensor losses = Tensor::empty({loss.rows});
  const Tensor maximum = Tensor::empty({loss.rows});
  const Tensor log_sum = Tensor::empty({loss.rows});
  kernels::cross_entropy_forward(loss, dense.raw(), losses.data<float>(), maximum.data<float>(), log_sum.data<float>());
  const auto each = losses.span<float>();
  const double total = std::accumulate(each.begin(), each.end(), 0.0);
  return autograd::record(op, Tensor::scalar(static_cast<float>(total / static_cast<double>(count))), {&logits},
                          [loss, dense, targets, maximum, log_sum, count, dx = Gradient(logits)](const Tensor& dy) {
                            const Tensor contribution = Tensor::empty_like(dense);
                            kernels::cross_entropy_backward(loss, dense.raw(), maximum.data<float>(),
                                                            log_sum.data<float>(),
                                                            dy.item() / static_cast<float>(count), contribution.raw());
                            dx.add(contribution);
                          });
}

void check_logits(const char* op, const Tensor& logits, float label_smoothing) {
  check(is_floating(logits.dtype()), "{}: logits must be f32 or bf16, not {}", op, name_of(logits.dtype()));
  check(logits.rank() == 2 && logits.size(1) > 0, "{}: logits must be [B, C], not {}", op, logits.shape());
  check(label_smoothing >= 0 && label_smoothing <= 1, "{}: label smoothing must lie in [0, 1], not {}", op,
        label_smoothing);
}

// The mean of an elementwise loss between tensors of the same shape, computed in f32.
Tensor point_loss(const char* op, kernels::PointLoss loss, const Tensor& x, const Tensor& target) {
  check(is_floating(x.dtype()) && is_floating(target.dtype()), "{}: operands must be f32 or bf16, not {} and {}", op,
        name_of(x.dtype()), name_of(target.dtype()));
  check(x.shape() == target.shape(), "{}: the shapes {} and {} differ", op, x.shape(), target.shape());
  const Tensor a = cast(x, DType::f32);
  const Tensor b = cast(target, DType::f32);
  const Tensor u = a.detach().contiguous();
  const Tensor t = b.detach().contiguous();
  const std::int64_t n = u.numel();
  const double sum = kernels::point_loss_sum(loss, u.data<float>(), t.data<float>(), n);
  return autograd::record(op, Tensor::scalar(static_cast<float>(sum / static_cast<double>(n))), {&a, &b},
                          [loss, u, t, n, da = Gradient(a), db = Gradient(b)](const Tensor& dy) {
                            const Tensor du = Tensor::empty_like(u);
                            const Tensor dt = db.wanted() ? Tensor::empty_like(t) : Tensor();
                            kernels::point_loss_gradient(loss, u.data<float>(), t.data<float>(),
                                                         dy.item() / static_cast<float>(n), du.data<float>(),
                                                         dt.defined() ? dt.data<float>() : nullptr, n);
                            da.add(du);
                            db.add(dt);
                          });
}

}  // namespace

Tensor softmax(const Tensor& x, int dim) { return softmax_along("softmax", x, dim, false); }
Tensor log_softmax(const Tensor& x, int dim) { return softmax_along("log_softmax", x, dim, true); }

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, float label_smoothing, std::int64_t ignore_index) {
  check_logits("cross_entropy", logits, label_smoothing);
  const std::int64_t rows = logits.size(0);
  const std::int64_t classes = logits.size(1);
  check(targets.dtype() == DType::i64 && targets.shape() == Shape{rows},
        "cross_entropy: targets must be [{}] i64, not {} {}", rows, targets.shape(), name_of(targets.dtype()));
  const Tensor dense = targets.contiguous();
  const auto* labels = dense.data<std::int64_t>();
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (labels[row] != ignore_index) {
      check(labels[row] >= 0 && labels[row] < classes, "cross_entropy: the label {} of row {} lies outside 0 … {}",
            labels[row], row, classes - 1);
      ++count;
    }
  }
  return cross_entropy_of("cross_entropy",
                          {rows, classes, logits.dtype(), labels, nullptr, label_smoothing, ignore_index}, logits,
                          dense, count);
}

Tensor soft_cross_entropy(const Tensor& logits, const Tensor& targets, float label_smoothing) {
  check_logits("soft_cross_entropy", logits, label_smoothing);
  check(targets.dtype() == DType::f32 && targets.shape() == logits.shape(),
        "soft_cross_entropy: targets must be {} f32, not {} {}", logits.shape(), targets.shape(),
        name_of(targets.dtype()));
  const Tensor dense = targets.detach().contiguous();
  return cross_entropy_of(
      "soft_cross_entropy",
      {logits.size(0), logits.size(1), logits.dtype(), nullptr, dense.data<float>(), label_smoothing}, logits, dense,
      logits.size(0));
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets) {
  return point_loss("binary_cross_entropy_with_logits", kernels::PointLoss::binary_cross_entropy, logits, targets);
}

Tensor mse_loss(const Tensor& prediction, const Tensor& target) {
  return point_loss("mse_loss", kernels::PointLoss::squared_error, prediction, target);
}

}  // namespace vitrail::ops
