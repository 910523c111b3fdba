#include "vitrail/ops/images/shift.h"

#include "vitrail/autograd/tape.h"

namespace vitrail::ops {

using autograd::Gradient;

Tensor shift_channels(const Tensor& x, const std::vector<ChannelShift>& shifts, Border border) {
  check(x.rank() == 4 && is_floating(x.dtype()), "shift_channels: x must be [B, H, W, C], f32 or bf16, not {} {}",
        x.shape(), name_of(x.dtype()));
  std::vector<int> uses(static_cast<std::size_t>(x.size(3)));
  for (const ChannelShift& shift : shifts) {
    check(shift.begin >= 0 && shift.end <= x.size(3) && shift.step > 0,
          "shift_channels: there are no channels from {} to {} in steps of {} among {}", shift.begin, shift.end,
          shift.step, x.size(3));
    for (std::int64_t c = shift.begin; c < shift.end; c += shift.step) {
      ++uses[static_cast<std::size_t>(c)];
    }
  }
  for (std::size_t c = 0; c < uses.size(); ++c) {
    check(uses[c] == 1, "shift_channels: channel {} belongs to {} shifts, not to one", c, uses[c]);
  }
  const Tensor dense = x.detach().contiguous();
  const Tensor y = Tensor::empty_like(dense);
  kernels::shift_channels(dense, shifts, border, y);
  return autograd::record("shift_channels", y, {&x}, [shifts, border, dx = Gradient(x)](const Tensor& dy) {
    const Tensor dense_dy = dy.contiguous();
    Tensor contribution = Tensor::empty_like(dense_dy);
    kernels::shift_channels_gradient(dense_dy, shifts, border, contribution);
    dx.add(std::move(contribution));
  });
}

}  // namespace vitrail::ops
