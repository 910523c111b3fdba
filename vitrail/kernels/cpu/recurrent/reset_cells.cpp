#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/recurrent/reset_cells.cpp"
#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/kernels/recurrent.h"
#include "vitrail/tensor/profile.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

using VR = V<F32>;

template <class T>
HWY_INLINE VR read(const void* rows, std::int64_t at, auto part) {
  return load(F32(), static_cast<const T*>(rows) + at, part);
}
template <class T>
HWY_INLINE void write(VR v, void* rows, std::int64_t at, auto part) {
  store(v, F32(), static_cast<T*>(rows) + at, part);
}

HWY_INLINE VR one_minus(VR y) { return hn::Sub(hn::Set(F32(), 1.0F), y); }
HWY_INLINE VR slope_of_tanh(VR y) { return hn::NegMulAdd(y, y, hn::Set(F32(), 1.0F)); }
HWY_INLINE VR slope_of_sigmoid(VR y) { return hn::NegMulAdd(y, y, y); }

// Calls body.operator()<T>(position, part) for all units [begin, end) of all rows.
template <class Body>
HWY_INLINE void for_units(DType dtype, std::int64_t begin, std::int64_t end, Body&& body) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    for_lanes(F32(), end - begin,
              [&](std::int64_t i, auto part) HWY_ATTR { body.template operator()<T>(begin + i, part); });
  });
}

void gates(const ResetStep& s, std::int64_t begin, std::int64_t end) {
  for_units(s.dtype, begin, end, [&]<class T>(std::int64_t i, auto part) HWY_ATTR {
    const F32 d;
    const auto r = sigmoid<T>(d, hn::Add(read<T>(s.x_r, i, part), load(d, s.u_r + i, part)));
    const auto x_z = read<T>(s.x_z, i, part);
    const auto z = sigmoid<T>(d, s.u_z == nullptr ? x_z : hn::Add(x_z, load(d, s.u_z + i, part)));
    write<T>(r, s.r, i, part);
    write<T>(z, s.z, i, part);
    write<T>(hn::Mul(r, load(d, s.state + i, part)), s.s, i, part);
  });
}

void state(const ResetStep& s, std::int64_t begin, std::int64_t end) {
  for_units(s.dtype, begin, end, [&]<class T>(std::int64_t i, auto part) HWY_ATTR {
    const F32 d;
    const auto n = tanh(d, hn::Add(read<T>(s.x_n, i, part), load(d, s.u_n + i, part)));
    const auto z = read<T>(s.z, i, part);
    const auto before = load(d, s.state + i, part);
    const auto h = s.z_takes_new ? hn::MulAdd(z, hn::Sub(n, before), before) : hn::MulAdd(z, hn::Sub(before, n), n);
    write<T>(n, s.n, i, part);
    store(h, d, s.state + i, part);
    write<T>(h, s.h, i, part);
  });
}

void state_gradient(const ResetGradient& g, std::int64_t begin, std::int64_t end) {
  for_units(g.dtype, begin, end, [&]<class T>(std::int64_t i, auto part) HWY_ATTR {
    const F32 d;
    const auto z = read<T>(g.z, i, part);
    const auto n = read<T>(g.n, i, part);
    const auto before = read<T>(g.h_before, i, part);
    auto dh = load(d, g.dstate + i, part);
    if (g.dy != nullptr) {
      dh = hn::Add(dh, read<T>(g.dy, i, part));
    }
    const auto of_new = g.z_takes_new ? z : one_minus(z);
    const auto of_old = g.z_takes_new ? one_minus(z) : z;
    const auto difference = g.z_takes_new ? hn::Sub(n, before) : hn::Sub(before, n);
    write<T>(hn::Mul(hn::Mul(dh, of_new), slope_of_tanh(n)), g.dn, i, part);
    write<T>(hn::Mul(hn::Mul(dh, difference), slope_of_sigmoid(z)), g.dz, i, part);
    store(hn::Mul(dh, of_old), d, g.dstate + i, part);
  });
}

void gates_gradient(const ResetGradient& g, std::int64_t begin, std::int64_t end) {
  for_units(g.dtype, begin, end, [&]<class T>(std::int64_t i, auto part) HWY_ATTR {
    const F32 d;
    const auto r = read<T>(g.r, i, part);
    const auto ds = load(d, g.ds + i, part);
    write<T>(hn::Mul(hn::Mul(ds, read<T>(g.h_before, i, part)), slope_of_sigmoid(r)), g.dr, i, part);
    store(hn::MulAdd(ds, r, load(d, g.dstate + i, part)), d, g.dstate + i, part);
  });
}

void products_gradient(const ResetGradient& g, std::int64_t begin, std::int64_t end) {
  for_units(g.dtype, begin, end, [&]<class T>(std::int64_t i, auto part) HWY_ATTR {
    const F32 d;
    auto dh = hn::Add(load(d, g.dstate + i, part), load(d, g.dh_r + i, part));
    if (g.dh_z != nullptr) {
      const auto by_z = load(d, g.dh_z + i, part);
      const auto slope = g.z_of_tanh ? slope_of_tanh(tanh(d, read<T>(g.h_before, i, part))) : hn::Set(d, 1.0F);
      dh = hn::MulAdd(by_z, slope, dh);
    }
    store(dh, d, g.dstate + i, part);
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(gates);
HWY_EXPORT(state);
HWY_EXPORT(state_gradient);
HWY_EXPORT(gates_gradient);
HWY_EXPORT(products_gradient);

constexpr std::int64_t grain = 1 << 11;  // least units for a thread

// Calls part(begin, end) for parts of the units of all rows; each unit reads and writes `operands` numbers.
template <class Step, class Part>
void for_all_units(const Step& step, int operands, Part part) {
  const std::int64_t units = step.rows * step.hidden;
  Profile::traffic(units, step.dtype, operands);
  parallel_for(units, grain, lines, [&](std::int64_t begin, std::int64_t end, int) { part(begin, end); });
}

}  // namespace

void reset_forward_gates(const ResetStep& step) {
  for_all_units(step, 8, [&](std::int64_t begin, std::int64_t end) { HWY_DYNAMIC_DISPATCH(gates)(step, begin, end); });
}
void reset_forward_state(const ResetStep& step) {
  for_all_units(step, 7, [&](std::int64_t begin, std::int64_t end) { HWY_DYNAMIC_DISPATCH(state)(step, begin, end); });
}
void reset_backward_state(const ResetGradient& gradient) {
  for_all_units(gradient, 8, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(state_gradient)(gradient, begin, end);
  });
}
void reset_backward_gates(const ResetGradient& gradient) {
  for_all_units(gradient, 6, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(gates_gradient)(gradient, begin, end);
  });
}
void reset_backward_products(const ResetGradient& gradient) {
  for_all_units(gradient, 5, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(products_gradient)(gradient, begin, end);
  });
}

}  // namespace vitrail::kernels
#endif
