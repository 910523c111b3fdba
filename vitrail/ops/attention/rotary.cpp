#include "vitrail/ops/attention/rotary.h"

#include <cmath>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/ops/math/dense.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

// Rotates the first `turned` parts of x [B, prefix + N, parts, H, d].
Tensor turned_parts(const Tensor& x, const Rotation& rotation, std::int64_t turned) {
  const kernels::RotaryTables& tables = rotation.tables;
  const Shape& angles = rotation.angles.shape();
  check(is_floating(x.dtype()), "rotate: x must be f32 or bf16, not {}", name_of(x.dtype()));
  check(x.size(1) == tables.prefix + angles[-2] && x.size(4) == 2 * angles[-1] &&
            (angles.rank() == 2 || angles[0] == x.size(3)),
        "rotate: angles {} with a prefix of {} do not turn {} tokens of {} heads of {} elements", angles, tables.prefix,
        x.size(1), x.size(3), x.size(4));
  const Tensor y = Tensor::empty(x.shape(), x.dtype());
  kernels::rotary(dense_last(x.detach()), tables, turned, false, y);
  const bool learned = autograd::recording({&rotation.angles});
  return autograd::record("rotate", y, {&x, &rotation.angles},
                          [tables, turned, kept = learned ? y : Tensor(), gx = Gradient(x),
                           gangles = Gradient(rotation.angles)](const Tensor& dy) {
                            const Tensor dense = dense_last(dy);
                            if (gangles.wanted()) {
                              Tensor dangles = Tensor::empty(gangles.shape());
                              kernels::rotary_angle_gradient(kept, dense, tables, turned, dangles);
                              gangles.add(std::move(dangles));
                            }
                            if (gx.wanted()) {
                              Tensor dx = Tensor::empty(dense.shape(), dense.dtype());
                              kernels::rotary(dense, tables, turned, true, dx);
                              gx.add(std::move(dx));
                            }
                          });
}

}  // namespace

Rotation rotation(const Tensor& angles, RotaryPairs pairs, std::int64_t prefix) {
  check((angles.rank() == 2 || angles.rank() == 3) && angles.dtype() == DType::f32,
        "rotation: the angles must be [N, d/2] or [H, N, d/2] f32, not {} {}", angles.shape(), name_of(angles.dtype()));
  check(prefix >= 0, "rotation: a prefix of {} tokens cannot be", prefix);
  const std::int64_t half = angles.size(-1);
  const std::int64_t groups = angles.rank() == 3 ? angles.size(0) : 1;
  const Shape shape{groups, angles.size(-2), 2 * half};
  Rotation result{angles, {Tensor::empty(shape), Tensor::empty(shape), pairs, prefix}};
  const Tensor dense = angles.detach().contiguous();
  const float* from = dense.data<float>();
  float* cosines = result.tables.cosines.data<float>();
  float* sines = result.tables.sines.data<float>();
  const bool halves = pairs == RotaryPairs::halves;
  kernels::parallel_for(groups * shape[1], kernels::rows_worth_a_thread(16 * half),
                        [&](std::int64_t begin, std::int64_t end, int) {
                          for (std::int64_t row = begin; row < end; ++row) {
                            for (std::int64_t i = 0; i < half; ++i) {
                              const double angle = from[row * half + i];
                              const std::int64_t first = row * 2 * half + (halves ? i : 2 * i);
                              const std::int64_t second = first + (halves ? half : 1);
                              cosines[first] = cosines[second] = static_cast<float>(std::cos(angle));
                              sines[second] = static_cast<float>(std::sin(angle));
                              sines[first] = -sines[second];
                            }
                          }
                        });
  return result;
}

Tensor rotate(const Tensor& x, const Rotation& rotation) {
  check(x.rank() == 4, "rotate: x must be [B, H, N, d], not {}", x.shape());
  const Tensor parts = unsqueeze(permute(x, {0, 2, 1, 3}), 2);  // [B, N, 1, H, d]
  return permute(squeeze(turned_parts(parts, rotation, 1), 2), {0, 2, 1, 3});
}

Tensor rotate_packed(const Tensor& qkv, const Rotation& rotation) {
  check(qkv.rank() == 5 && qkv.size(2) == 3, "rotate: the packed projection must be [B, N, 3, H, d], not {}",
        qkv.shape());
  return turned_parts(qkv, rotation, 2);
}

}  // namespace vitrail::ops
