#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/cast.cpp"
#include "vitrail/kernels/cast.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"
#include "vitrail/tensor/tensor.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

void narrow(const float* from, bf16* to, std::int64_t n) {
  const F32 d;
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR { store(load(d, from + i, part), d, to + i, part); });
}

void widen(const bf16* from, float* to, std::int64_t n) {
  const F32 d;
  for_lanes(d, n, [&](std::int64_t i, auto part) HWY_ATTR { store(load(d, from + i, part), d, to + i, part); });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(narrow);
HWY_EXPORT(widen);

constexpr std::int64_t grain = 1 << 14;  // least elements per thread

template <class T>
constexpr bool floating = std::is_same_v<T, float> || std::is_same_v<T, bf16>;

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return static_cast<std::conditional_t<floating<From>, float, From>>(value) != 0;
  } else if constexpr (floating<From> && !floating<To>) {
    const auto x = static_cast<float>(value);
    using Limits = std::numeric_limits<To>;
    // Converted to float, the largest value of To may round up to one that To cannot hold: hence >=.
    return std::isnan(x)                               ? To{0}
           : x >= static_cast<float>(Limits::max())    ? Limits::max()
           : x <= static_cast<float>(Limits::lowest()) ? Limits::lowest()
                                                       : static_cast<To>(x);
  } else if constexpr (std::is_same_v<From, bf16> || std::is_same_v<To, bf16>) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <class From, class To>
void cast_range(const From* from, To* to, std::int64_t n) {
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(To));
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bf16>) {
    HWY_DYNAMIC_DISPATCH(narrow)(from, to, n);
  } else if constexpr (std::is_same_v<From, bf16> && std::is_same_v<To, float>) {
    HWY_DYNAMIC_DISPATCH(widen)(from, to, n);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = converted<To>(from[i]);
    }
  }
}

}  // namespace

void cast(const void* from, DType from_dtype, void* to, DType to_dtype, std::int64_t n) {
  Profile::traffic(n, from_dtype, 1);
  Profile::traffic(n, to_dtype, 1);
  visit(from_dtype, [&]<class From>(From) {
    visit(to_dtype, [&]<class To>(To) {
      parallel_for(n, grain, lines, [&](std::int64_t begin, std::int64_t end, int) {
        cast_range(static_cast<const From*>(from) + begin, static_cast<To*>(to) + begin, end - begin);
      });
    });
  });
}

}  // namespace vitrail::kernels
#endif
