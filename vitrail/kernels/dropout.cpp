#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/dropout.cpp"
#include "vitrail/kernels/dropout.h"

#include <array>
#include <cmath>
#include <cstring>

#include "vitrail/kernels/parallel.h"
#include "vitrail/kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

using U32 = hn::ScalableTag<std::uint32_t>;

#if HWY_TARGET != HWY_SCALAR

// Philox::word() for many indices at once: each 64-bit lane works out one block in the lower halves of four vectors.
// (The upper halves hold whatever the products left there; nothing looks at them before the end.)
class PhiloxLanes {
 public:
  explicit PhiloxLanes(const Philox& philox) : stream_(philox.stream()) {
    auto key0 = static_cast<std::uint32_t>(philox.seed());
    auto key1 = static_cast<std::uint32_t>(philox.seed() >> 32);
    for (std::size_t round = 0; round < 10; ++round) {
      keys_[round] = {key0, key1};
      key0 += 0x9E3779B9U;
      key1 += 0xBB67AE85U;
    }
  }

  // The words index … index + 2 L - 1 in order in `first` and `second`, L = Lanes(U32); index is a multiple of 4.
  HWY_INLINE void words(std::uint64_t index, V<U32>& first, V<U32>& second) const {
    const U64 d64;
    const auto half = static_cast<std::uint64_t>(hn::Lanes(d64)) / 2;
    // Lane 2 k holds block k, lane 2 k + 1 block k + half: so the interleaving below brings the words in order.
    const auto lane = hn::Iota(d64, 0);
    const auto odd = hn::And(lane, hn::Set(d64, 1));
    const auto block =
        hn::Add(hn::ShiftRight<1>(lane), hn::IfThenElseZero(hn::Eq(odd, hn::Set(d64, 1)), hn::Set(d64, half)));
    auto c0 = hn::Add(block, hn::Set(d64, index / 4));
    auto c1 = hn::ShiftRight<32>(c0);
    auto c2 = hn::Set(d64, stream_ & 0xffffffffU);
    auto c3 = hn::Set(d64, stream_ >> 32);
    const auto m0 = hn::Set(d64, 0xD2511F53U);
    const auto m1 = hn::Set(d64, 0xCD9E8D57U);
    for (const auto& [key0, key1] : keys_) {
      const auto p0 = product(c0, m0);
      const auto p1 = product(c2, m1);
      c0 = hn::Xor(hn::ShiftRight<32>(p1), hn::Xor(c1, hn::Set(d64, key0)));
      c1 = p1;
      c2 = hn::Xor(hn::ShiftRight<32>(p0), hn::Xor(c3, hn::Set(d64, key1)));
      c3 = p0;
    }
    const auto low = hn::Set(d64, 0xffffffffU);
    const auto words01 = hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1));
    const auto words23 = hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3));
    const U32 d32;
    first = hn::BitCast(d32, hn::InterleaveLower(d64, words01, words23));
    second = hn::BitCast(d32, hn::InterleaveUpper(d64, words01, words23));
  }

 private:
  using U64 = hn::ScalableTag<std::uint64_t>;

  // The 64-bit products of the lower halves.
  static HWY_INLINE V<U64> product(V<U64> a, V<U64> b) {
    const U32 d32;
    return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
  }

  std::uint64_t stream_;
  std::array<std::array<std::uint32_t, 2>, 10> keys_;
};

template <class T, class Part>
HWY_INLINE void keep_or_zero(const T* x, T* y, V<U32> words, V<U32> threshold, V<F32> scale, Part part) {
  const F32 d;
  const auto dropped = hn::RebindMask(d, hn::Gt(threshold, hn::ShiftRight<8>(words)));
  store(hn::IfThenZeroElse(dropped, hn::Mul(load(d, x, part), scale)), d, y, part);
}

template <class T>
void omit(const Philox& draws, std::uint32_t limit, float factor, const T* x, T* y, std::int64_t begin,
          std::int64_t end) {
  const PhiloxLanes philox(draws);
  const U32 d32;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d32));
  const auto threshold = hn::Set(d32, limit);
  const auto scale = hn::Set(F32{}, factor);
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

#else

template <class T>
void omit(const Philox& draws, std::uint32_t limit, float factor, const T* x, T* y, std::int64_t begin,
          std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const bool kept = draws.word(static_cast<std::uint64_t>(i)) >> 8 >= limit;
    y[i] = T(kept ? static_cast<float>(x[i]) * factor : 0.0F);
  }
}

#endif

void dropout_range(const Philox& draws, std::uint32_t limit, float factor, const void* x, void* y, std::int64_t begin,
                   std::int64_t end, DType dtype) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    omit(draws, limit, factor, static_cast<const T*>(x), static_cast<T*>(y), begin, end);
  });
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

constexpr std::int64_t grain = 1 << 13;  // elements worth a thread
}  // namespace

void dropout(const Philox& draws, float p, const void* x, void* y, std::int64_t n, DType dtype) {
  // uniform(i) = (word >> 8) 2⁻²⁴ >= p, asked in integers.
  const auto limit = static_cast<std::uint32_t>(std::ceil(static_cast<double>(p) * 0x1p24));
  const float factor = p < 1 ? 1 / (1 - p) : 0.0F;
  parallel_for(n, grain, lines, [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(dropout_range)(draws, limit, factor, x, y, begin, end, dtype);
  });
}

void scale_samples(std::span<const float> factors, const void* x, void* y, std::int64_t width, DType dtype) {
  const auto n = static_cast<std::int64_t>(factors.size()) * width;
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
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
