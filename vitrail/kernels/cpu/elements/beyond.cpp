#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/elements/beyond.cpp"
#include "vitrail/kernels/cpu/elements/beyond.h"

#include "vitrail/kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// The first i for which not_beyond(x[i]) is false, or `end`: four vectors at once until one of them has it.
template <class NotBeyond>
std::int64_t first_not(const float* x, std::int64_t begin, std::int64_t end, NotBeyond not_beyond) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = begin;
  for (; i + 4 * lanes <= end; i += 4 * lanes) {
    const auto low = hn::And(not_beyond(hn::LoadU(d, x + i)), not_beyond(hn::LoadU(d, x + i + lanes)));
    const auto high = hn::And(not_beyond(hn::LoadU(d, x + i + 2 * lanes)), not_beyond(hn::LoadU(d, x + i + 3 * lanes)));
    if (!hn::AllTrue(d, hn::And(low, high))) {
      break;
    }
  }
  for (; i + lanes <= end; i += lanes) {
    const std::intptr_t lane = hn::FindFirstTrue(d, hn::Not(not_beyond(hn::LoadU(d, x + i))));
    if (lane >= 0) {
      return i + lane;
    }
  }
  const hn::CappedTag<float, 1> one;
  for (; i < end; ++i) {
    if (!hn::AllTrue(one, not_beyond(hn::LoadU(one, x + i)))) {
      break;
    }
  }
  return i;
}

std::int64_t search(const float* x, std::int64_t begin, std::int64_t end, float bound, bool greater) {
  const auto bounds = [&](auto v) HWY_ATTR { return hn::Set(hn::DFromV<decltype(v)>(), bound); };
  if (greater) {
    return first_not(x, begin, end, [&](auto v) HWY_ATTR { return hn::Le(v, bounds(v)); });
  }
  return first_not(x, begin, end, [&](auto v) HWY_ATTR { return hn::Ge(v, bounds(v)); });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(search);
}  // namespace

std::int64_t first_beyond(const float* x, std::int64_t begin, std::int64_t end, float bound, bool greater) {
  return HWY_DYNAMIC_DISPATCH(search)(x, begin, end, bound, greater);
}

}  // namespace vitrail::kernels
#endif
