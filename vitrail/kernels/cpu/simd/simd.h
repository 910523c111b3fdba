/// \file
/// How SIMD kernels are written: with Highway, which compiles a kernel once per instruction set and chooses at run
/// time.
///
/// Only .cpp files include this header. Each defines HWY_TARGET_INCLUDE as its own path before all includes, so that it
/// can be compiled again for each instruction set:
///
/// ```text
/// #undef HWY_TARGET_INCLUDE
/// #define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/scale.cpp"
/// #include "vitrail/kernels/scale.h"
/// #include "vitrail/kernels/cpu/simd/simd.h"
/// ```
///
/// ```cpp
/// HWY_BEFORE_NAMESPACE();
/// namespace vitrail::kernels::HWY_NAMESPACE {
/// namespace {
/// template <class T>
/// void scale_typed(const T* x, T* y, std::int64_t n, float factor) {
///   const F32 d;
///   for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
///     store(hn::Mul(load(d, x + i, part), hn::Set(d, factor)), d, y + i, part);
///   });
/// }
/// void scale(const void* x, void* y, std::int64_t n, float factor, DType dtype) {
///   visit_floating(dtype, [&]<class T>(T) HWY_ATTR { scale_typed(static_cast<const T*>(x), …); });
/// }
/// }  // namespace
/// }  // namespace vitrail::kernels::HWY_NAMESPACE
/// HWY_AFTER_NAMESPACE();
/// ```
///
/// ```cpp
/// #if HWY_ONCE  // what is not compiled per instruction set: the public functions, with the threads
/// namespace vitrail::kernels {
/// HWY_EXPORT(scale);
/// void scale_all(…) { parallel_for(n, …, [&](auto begin, auto end, int) { HWY_DYNAMIC_DISPATCH(scale)(…); }); }
/// }  // namespace vitrail::kernels
/// #endif
/// ```
///
/// A lambda in a kernel needs HWY_ATTR after its parameters, or the compiler may not use the instruction set in it.
/// Templates cannot be exported. OpenMP belongs in the part that is compiled once. The narrowest target has one lane
/// per vector: kernels must work for any number of lanes.

// The order matters: targets.h says to Highway which targets there are, and foreach_target.h includes the .cpp again
// for each of them.
// clang-format off
#include "vitrail/kernels/cpu/simd/targets.h"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/error.h"

#ifndef VITRAIL_KERNELS_SIMD_ONCE
#define VITRAIL_KERNELS_SIMD_ONCE
namespace vitrail::kernels {

/// Passed in place of a number of lanes: all lanes of the vector.
struct Whole {};

/// Calls `function` with a value of the C++ type of `dtype`, which is f32 or bf16 (else Error): visit() without the
/// integer types, for which kernels need not be compiled.
template <class Function>
HWY_INLINE decltype(auto) visit_floating(DType dtype, Function&& function) {
  check(is_floating(dtype), "the kernel works on f32 and bf16, not on {}", name_of(dtype));
  return dtype == DType::bf16 ? function(bf16{}) : function(float{});
}

}  // namespace vitrail::kernels
#endif

#if defined(VITRAIL_KERNELS_SIMD_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_SIMD_TARGET
#undef VITRAIL_KERNELS_SIMD_TARGET
#else
#define VITRAIL_KERNELS_SIMD_TARGET
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
template <class D>
using V = hn::Vec<D>;

// ---- Loads and stores: f32 lanes from and to memory of f32 or bf16, which need not be aligned.

template <class D>
HWY_INLINE V<D> load(D d, const float* p, Whole = {}) {
  return hn::LoadU(d, p);
}

/// f32 lanes from the bits of bf16 numbers.
template <class D>
HWY_INLINE V<D> from_bf16(D d, hn::Vec<hn::Rebind<std::uint16_t, D>> bits) {
  const hn::Rebind<std::uint32_t, D> du32;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du32, bits)));
}

/// Words of two bf16 from two vectors of f32 lanes that hold bf16 numbers: those of `low` go to the lower halves.
template <class D>
HWY_INLINE auto pairs_of_bf16(D, V<D> low, V<D> high) {
  const hn::RebindToUnsigned<D> du;
  return hn::Or(hn::ShiftRight<16>(hn::BitCast(du, low)), hn::BitCast(du, high));
}

template <class D>
HWY_INLINE V<D> load(D d, const bf16* p, Whole = {}) {
  const hn::Rebind<std::uint16_t, D> du16;
  return from_bf16(d, hn::LoadU(du16, reinterpret_cast<const std::uint16_t*>(p)));
}

/// Loads the first `count` lanes from memory; the others are 0.
template <class D, class T>
HWY_INLINE V<D> load(D d, const T* p, std::int64_t count) {
#if HWY_TARGET <= HWY_AVX3  // on other targets Highway reads memory behind the `count` elements too
  const auto n = static_cast<std::size_t>(count);
  if constexpr (std::is_same_v<T, float>) {
    return hn::MaskedLoad(hn::FirstN(d, n), d, p);
  } else if constexpr (std::is_same_v<T, bf16>) {
    const hn::Rebind<std::uint16_t, D> du16;
    return from_bf16(d, hn::MaskedLoad(hn::FirstN(du16, n), du16, reinterpret_cast<const std::uint16_t*>(p)));
  }
#endif
  HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
  for (std::int64_t i = 0; i < count; ++i) {
    lanes[i] = p[i];
  }
  return load(d, lanes);
}

template <class D>
HWY_INLINE void store(V<D> v, D d, float* p, Whole = {}) {
  hn::StoreU(v, d, p);
}

/// f32 lanes rounded to bf16, to nearest even as vitrail::bf16 does (Highway 1.0.3's own DemoteTo truncates). The bf16
/// bits are the upper halves of the result; its lower halves are meaningless.
template <class D>
HWY_INLINE auto rounded_to_bf16(D, V<D> v) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7fff)), odd);
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
}

/// f32 lanes rounded to bf16 as by rounded_to_bf16(), as 16-bit lanes.
template <class D>
HWY_INLINE auto to_bf16(D d, V<D> v) {
  const hn::Rebind<std::uint16_t, D> du16;
  const auto bits = rounded_to_bf16(d, v);
#if HWY_TARGET == HWY_SCALAR
  const hn::Rebind<std::int32_t, D> di32;
  return hn::DemoteTo(du16, hn::BitCast(di32, hn::ShiftRight<16>(bits)));
#else
  const hn::Repartition<std::uint16_t, D> pairs;
  const auto both = hn::BitCast(pairs, bits);
  return hn::LowerHalf(du16, hn::ConcatOdd(pairs, both, both));
#endif
}

template <class D>
HWY_INLINE void store(V<D> v, D d, bf16* p, Whole = {}) {
  const hn::Rebind<std::uint16_t, D> du16;
  hn::StoreU(to_bf16(d, v), du16, reinterpret_cast<std::uint16_t*>(p));
}

/// Stores the first `count` lanes to memory; what lies behind them there is left unchanged.
template <class D, class T>
HWY_INLINE void store(V<D> v, D d, T* p, std::int64_t count) {
#if HWY_TARGET <= HWY_AVX3
  const auto n = static_cast<std::size_t>(count);
  if constexpr (std::is_same_v<T, float>) {
    return hn::BlendedStore(v, hn::FirstN(d, n), d, p);
  } else if constexpr (std::is_same_v<T, bf16>) {
    const hn::Rebind<std::uint16_t, D> du16;
    return hn::BlendedStore(to_bf16(d, v), hn::FirstN(du16, n), du16, reinterpret_cast<std::uint16_t*>(p));
  }
#endif
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  store(v, d, lanes);
  for (std::int64_t i = 0; i < count; ++i) {
    p[i] = lanes[i];
  }
}

/// sums[i …] += v, for all lanes or, if `part` is a number, for the first `part` lanes.
template <class D>
HWY_INLINE void add_to(D d, float* sums, std::int64_t i, V<D> v, auto part) {
  store(hn::Add(load(d, sums + i, part), v), d, sums + i, part);
}

/// Calls body(i, Whole{}) for i = 0, L, 2 L, … as long as L = Lanes(d) of the n elements are left, and then, if fewer
/// are left, body(i, number of them).
template <class D, class Body>
HWY_INLINE void for_lanes(D d, std::int64_t n, Body&& body) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    body(i, Whole{});
  }
  if (i < n) {
    body(i, n - i);
  }
}

/// `v` in the first `count` lanes and `other` in the rest: keeps lanes beyond the end of a row out of a maximum or a
/// sum.
template <class D>
HWY_INLINE V<D> first_lanes(D, V<D> v, V<D>, Whole) {
  return v;
}
template <class D>
HWY_INLINE V<D> first_lanes(D d, V<D> v, V<D> other, std::int64_t count) {
  return hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(count)), v, other);
}

template <class D>
HWY_INLINE float sum_of(D d, V<D> v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}
template <class D>
HWY_INLINE float max_of(D d, V<D> v) {
  return hn::GetLane(hn::MaxOfLanes(d, v));
}

/// A sum over n elements. body(sum, i, part), which is called as by for_lanes(), returns `sum` plus the terms of its
/// lanes, with 0 in lanes beyond the end; the result is the sum over all lanes. There are two accumulators, so that an
/// addition need not wait for the one before it.
template <class D, class Body>
HWY_INLINE float sum_over(D d, std::int64_t n, Body&& body) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto even = hn::Zero(d);
  auto odd = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    even = body(even, i, Whole{});
    odd = body(odd, i + lanes, Whole{});
  }
  if (i + lanes <= n) {
    even = body(even, i, Whole{});
    i += lanes;
  }
  if (i < n) {
    odd = body(odd, i, n - i);
  }
  return sum_of(d, hn::Add(even, odd));
}

/// The largest of n > 0 elements.
template <class D, class T>
HWY_INLINE float max_over(D d, const T* x, std::int64_t n) {
  auto largest = hn::Set(d, static_cast<float>(x[0]));
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    largest = hn::Max(largest, first_lanes(d, load(d, x + i, part), largest, part));
  });
  return max_of(d, largest);
}

// ---- Elementary functions of f32 lanes.

/// exp, sigmoid and normal take as template argument T the type to which the caller rounds the result: for bf16, a
/// relative error of 1e-4 suffices and costs half as much.
template <class T>
inline constexpr bool coarse = std::is_same_v<T, bf16>;

#if HWY_TARGET <= HWY_AVX3
/// p · 2^n for integer n, in one instruction that also handles subnormal results.
template <std::size_t N>
HWY_INLINE hn::Vec128<float, N> times_power(hn::Vec128<float, N> p, hn::Vec128<float, N> n) {
  return hn::Vec128<float, N>{_mm_scalef_ps(p.raw, n.raw)};
}
HWY_INLINE hn::Vec256<float> times_power(hn::Vec256<float> p, hn::Vec256<float> n) {
  return hn::Vec256<float>{_mm256_scalef_ps(p.raw, n.raw)};
}
HWY_INLINE hn::Vec512<float> times_power(hn::Vec512<float> p, hn::Vec512<float> n) {
  return hn::Vec512<float>{_mm512_scalef_ps(p.raw, n.raw)};
}
#endif

/// e^x with a relative error of 1.2e-7: infinite above 88.72, and NaN for NaN. Results below 1.2e-38 may be 0.
template <class T = float, class D>
HWY_INLINE V<D> exp(D d, V<D> x) {
  const auto highest = hn::Set(d, 89.0F);
#if HWY_TARGET <= HWY_AVX3
  // These return their second operand if one is NaN.
  const auto inside = hn::Max(hn::Set(d, -104.0F), hn::Min(highest, x));
#else
  const auto inside = hn::IfThenElse(hn::Gt(x, highest), highest, x);  // Min could swallow a NaN
#endif
  // e^x = 2^n e^r with |r| ≤ ln 2 / 2, and a minimax polynomial for e^r.
  const auto t = hn::Mul(inside, hn::Set(d, 1.44269504F));
  const auto n = hn::Round(t);
  V<D> p;
  if constexpr (coarse<T>) {
    const auto r = hn::Sub(t, n);
    p = hn::Set(d, 0.0551714F);  // the coefficients for 2^r
    p = hn::MulAdd(p, r, hn::Set(d, 0.2426111F));
    p = hn::MulAdd(p, r, hn::Set(d, 0.6932610F));
    p = hn::MulAdd(p, r, hn::Set(d, 0.9999281F));
  } else {
    auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), inside);  // ln 2 in two parts
    r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
    p = hn::Set(d, 0.001381459489F);
    p = hn::MulAdd(p, r, hn::Set(d, 0.008368717294F));
    p = hn::MulAdd(p, r, hn::Set(d, 0.04166838813F));
    p = hn::MulAdd(p, r, hn::Set(d, 0.1666652063F));
    p = hn::MulAdd(p, r, hn::Set(d, 0.4999999345F));
    p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
    p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  }
#if HWY_TARGET <= HWY_AVX3
  return times_power(p, n);
#else
  // 2^n as 2 · 2^(n-1): n may be 128.
  const hn::RebindToSigned<D> di;
  const auto power = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 126)));
  const auto y = hn::Mul(hn::Add(p, p), hn::BitCast(d, power));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.33654F)), y);
#endif
}

/// 1 / x for x between 2^-126 and 2^126.
template <class T = float, class D>
HWY_INLINE V<D> reciprocal(D d, V<D> x) {
#if HWY_TARGET <= HWY_AVX3
  const auto y = hn::ApproximateReciprocal(x);  // with a relative error of 2^-14
  return coarse<T> ? y : hn::MulAdd(hn::NegMulAdd(x, y, hn::Set(d, 1.0F)), y, y);
#else
  return hn::Div(hn::Set(d, 1.0F), x);
#endif
}

/// 1 / (1 + e^-x), but at least e^-87.
template <class T = float, class D>
HWY_INLINE V<D> sigmoid(D d, V<D> x) {
  const auto lowest = hn::Set(d, -87.0F);
  const auto inside = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
  return reciprocal<T>(d, hn::Add(hn::Set(d, 1.0F), exp<T>(d, hn::Neg(inside))));
}

/// tanh x with a relative error of 1.5e-7.
template <class D>
HWY_INLINE V<D> tanh(D d, V<D> x) {
  const auto one = hn::Set(d, 1.0F);
  const auto a = hn::Abs(x);
  // tanh a = (1 - e^-2a) / (1 + e^-2a); near 0, where the numerator cancels, Cephes' polynomial.
  const auto e = exp(d, hn::Mul(hn::Set(d, -2.0F), a));
  const auto far = hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
  const auto z = hn::Mul(x, x);
  auto p = hn::Set(d, -5.70498872745e-3F);
  p = hn::MulAdd(p, z, hn::Set(d, 2.06390887954e-2F));
  p = hn::MulAdd(p, z, hn::Set(d, -5.37397155531e-2F));
  p = hn::MulAdd(p, z, hn::Set(d, 1.33314422036e-1F));
  p = hn::MulAdd(p, z, hn::Set(d, -3.33332819422e-1F));
  const auto near = hn::MulAdd(hn::Mul(p, z), x, x);
  return hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625F)), near, far);
}

/// The standard normal distribution at x: cdf = Φ(x), and gauss = e^(-x²/2), which is √(2π) times its density.
template <class Vector>
struct Normal {
  Vector cdf;
  Vector gauss;
};

/// Φ(-a) = e^(-a²/2) P(a) / Q(a) for a ≥ 0, the form of Hart et al. 1968 with minimax fits of our own (5e-9, or 1.4e-5
/// for bf16): all coefficients are positive, so nothing cancels and the tail keeps its relative precision.
template <class T = float, class D>
HWY_INLINE Normal<V<D>> normal(D d, V<D> x) {
  const auto one = hn::Set(d, 1.0F);
  const auto a = hn::Min(hn::Set(d, 14.0F), hn::Abs(x));  // where e^(-a²/2) has become 0
  const auto gauss = exp<T>(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5F)));
  V<D> p;
  V<D> q;
  if constexpr (coarse<T>) {
    p = hn::MulAdd(hn::Set(d, 0.05802773F), a, hn::Set(d, 0.2672978F));
    p = hn::MulAdd(p, a, hn::Set(d, 0.5000071F));
    q = hn::MulAdd(hn::Set(d, 0.1451474F), a, hn::Set(d, 0.6770960F));
    q = hn::MulAdd(q, a, hn::Set(d, 1.3329507F));
  } else {
    p = hn::MulAdd(hn::Set(d, 0.004020184640F), a, hn::Set(d, 0.03998413104F));
    p = hn::MulAdd(p, a, hn::Set(d, 0.1813066343F));
    p = hn::MulAdd(p, a, hn::Set(d, 0.4356861469F));
    p = hn::MulAdd(p, a, hn::Set(d, 0.5F));
    q = hn::MulAdd(hn::Set(d, 0.01007696727F), a, hn::Set(d, 0.1002327347F));
    q = hn::MulAdd(q, a, hn::Set(d, 0.4643800051F));
    q = hn::MulAdd(q, a, hn::Set(d, 1.194483690F));
    q = hn::MulAdd(q, a, hn::Set(d, 1.669257213F));
  }
  q = hn::MulAdd(q, a, one);
  const auto tail = hn::Mul(hn::Mul(gauss, p), reciprocal<T>(d, q));
  return {hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail)), gauss};
}

/// erf x with an absolute error of 3e-7.
template <class D>
HWY_INLINE V<D> erf(D d, V<D> x) {
  const auto cdf = normal(d, hn::Mul(x, hn::Set(d, 1.41421356F))).cdf;
  return hn::MulAdd(cdf, hn::Set(d, 2.0F), hn::Set(d, -1.0F));
}

}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
