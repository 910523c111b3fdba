#include "vitrail/ops/math/dropout.h"

#include <vector>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/dropout.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

void check_input(const char* op, const Tensor& x, float p) {
  check(is_floating(x.dtype()), "{}: x must be f32 or bf16, not {}", op, name_of(x.dtype()));
  check(p >= 0 && p <= 1, "{}: the probability must lie in [0, 1], not {}", op, p);
}

// Both ops are linear in x with a diagonal matrix, so each is its own gradient: dx = f(dy) with the same draws.
template <class F>
Tensor linear_op(const char* op, const Tensor& x, F f) {
  const auto applied = [f](const Tensor& input) {
    const Tensor dense = input.detach().contiguous();
    const Tensor output = Tensor::empty_like(dense);
    f(dense, output);
    return output;
  };
  return autograd::record(op, applied(x), {&x}, [applied, dx = Gradient(x)](const Tensor& dy) { dx.add(applied(dy)); });
}

}  // namespace

Tensor dropout(const Tensor& x, float p, Philox draws) {
  check_input("dropout", x, p);
  if (p == 0) {
    return x;
  }
  return linear_op("dropout", x, [p, draws](const Tensor& from, const Tensor& to) {
    kernels::dropout(draws, p, from.raw(), to.raw(), from.numel(), from.dtype());
  });
}

Tensor drop_path(const Tensor& x, float p, Philox draws, bool scale_by_keep) {
  check_input("drop_path", x, p);
  check(x.rank() >= 1, "drop_path: x must have a batch dimension");
  if (p == 0 || x.numel() == 0) {
    return x;
  }
  std::vector<float> factors(static_cast<std::size_t>(x.size(0)));
  const float kept = scale_by_keep && p < 1 ? 1 / (1 - p) : 1.0F;
  for (std::size_t b = 0; b < factors.size(); ++b) {
    factors[b] = draws.uniform(b) >= p ? kept : 0.0F;
  }
  return linear_op("drop_path", x, [factors](const Tensor& from, const Tensor& to) {
    kernels::scale_samples(factors, from.raw(), to.raw(), from.numel() / from.size(0), from.dtype());
  });
}

}  // namespace vitrail::ops
