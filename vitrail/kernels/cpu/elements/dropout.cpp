#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/dropout.cpp"
#include "vitrail/kernels/dropout.h"

#include <cstring>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
// This comes after simd.h, which sets Highway up.
#include "vitrail/kernels/cpu/simd/philox-inl.h"
#include "vitrail/tensor/profile.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

template <class T, class Part>
HWY_INLINE void keep_or_zero(const T* x, T* y, V<U32> words, V<U32> threshold, V<F32> scale, Part part) {
  const F32 d;
  const auto dropped = hn::RebindMask(d, hn::Gt(threshold, hn::ShiftRight<8>(words)));
  store(hn::IfThenZeroElse(dropped, hn::Mul(load(d, x, part), scale)), d, y, part);
}

template <class T>
void omit(const Philox& draws, float p, const T* x, T* y, std::int64_t begin, std::int64_t end) {
  const PhiloxLanes philox(draws);
  const U32 d32;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d32));
  const auto threshold = hn::Set(d32, keep_limit(p));
  const auto scale = hn::Set(F32{}, p < 1 ? 1 / (1 - p) : 0.0F);
  for (std::int64_t i = begin; i < end; i += 2 * lanes) {
    V<U32> first;
    V<U32> second;
    philox.words(static_cast<std::uint64_t>(i), first, second);
    if (i + 2 * lanes <= end) {
      keep_or_zero(x + i, y + i, first, threshold, scale, Whole{});
      keep_or_zero(x + i + lanes, y + i + lanes, second, threshold, scale, Whole{});
    } else {
      const std::int64_t rest = end - i;
      keep_or_zero(x + i, y + i, first, threshold, scale, std::min(rest, lanes));
      if (rest > lanes) {
        keep_or_zero(x + i + lanes, y + i + lanes, second, threshold, scale, rest - lanes);
      }
    }
  }
}

void dropout_range(const Philox& draws, float p, const void* x, void* y, std::int64_t begin, std::int64_t end,
                   DType dtype) {
  visit_floating(
      dtype, [&]<class T>(T) HWY_ATTR { omit(draws, p, static_cast<const T*>(x), static_cast<T*>(y), begin, end); });
}

void scale_range(float factor, const void* x, void* y, std::int64_t begin, std::int64_t end, DType dtype) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    const F32 d;
    const T* from = static_cast<const T*>(x) + begin;
    T* to = static_cast<T*>(y) + begin;
    for_lanes(d, end - begin, [&](std::int64_t i, auto part) HWY_ATTR {
      store(hn::Mul(load(d, from + i, part), hn::Set(d, factor)), d, to + i, part);
    });
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(dropout_range);
HWY_EXPORT(scale_range);

constexpr std::int64_t grain = 1 << 13;  // least elements per thread
}  // namespace

void dropout(const Philox& draws, float p, const void* x, void* y, std::int64_t n, DType dtype) {
  Profile::traffic(n, dtype, 2);
  parallel_for(n, grain, lines, [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(dropout_range)(draws, p, x, y, begin, end, dtype);
  });
}

void scale_samples(std::span<const float> factors, const void* x, void* y, std::int64_t width, DType dtype) {
  const auto n = static_cast<std::int64_t>(factors.size()) * width;
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  Profile::traffic(n, dtype, 2);
  parallel_for(n, grain, lines, [&](std::int64_t begin, std::int64_t end, int) {
    while (begin < end) {
      const std::int64_t sample = begin / width;
      const std::int64_t stop = std::min(end, (sample + 1) * width);
      const float factor = factors[static_cast<std::size_t>(sample)];
      if (factor == 0) {
        std::memset(static_cast<std::byte*>(y) + begin * bytes, 0, static_cast<std::size_t>((stop - begin) * bytes));
      } else {
        HWY_DYNAMIC_DISPATCH(scale_range)(factor, x, y, begin, stop, dtype);
      }
      begin = stop;
    }
  });
}

}  // namespace vitrail::kernels
#endif
