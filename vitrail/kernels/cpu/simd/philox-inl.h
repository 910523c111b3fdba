/// \file
/// Philox for whole vectors, compiled once per instruction set.

#if defined(VITRAIL_KERNELS_PHILOX_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_PHILOX_TARGET
#undef VITRAIL_KERNELS_PHILOX_TARGET
#else
#define VITRAIL_KERNELS_PHILOX_TARGET
#endif

#include <array>
#include <cmath>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/tensor/random.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

using U32 = hn::ScalableTag<std::uint32_t>;

// The comparison Philox::uniform() >= p in integers: (word >> 8) >= keep_limit(p), as uniform() is (word >> 8) 2⁻²⁴.
inline std::uint32_t keep_limit(float p) {
  return static_cast<std::uint32_t>(std::ceil(static_cast<double>(p) * 0x1p24));
}

#if HWY_TARGET != HWY_SCALAR

// Philox::word() for many indices at once: each 64-bit lane computes one block, whose four words are in the lower
// halves of four vectors. (The upper halves hold what the products left there, and are masked out at the end.)
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

  // Computes the words index … index + 2 L - 1, in order in `first` and `second`, with L = Lanes(U32). `index` must be
  // a multiple of 4.
  HWY_INLINE void words(std::uint64_t index, V<U32>& first, V<U32>& second) const {
    const U64 d64;
    const auto half = static_cast<std::uint64_t>(hn::Lanes(d64)) / 2;
    // Lane 2 k holds block k and lane 2 k + 1 block k + half, so that the interleaving below puts the words in order.
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
      c0 = hn::Xor3(hn::ShiftRight<32>(p1), c1, hn::Set(d64, key0));
      c1 = p1;
      c2 = hn::Xor3(hn::ShiftRight<32>(p0), c3, hn::Set(d64, key1));
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

#else

class PhiloxLanes {
 public:
  explicit PhiloxLanes(const Philox& philox) : philox_(philox) {}
  void words(std::uint64_t index, V<U32>& first, V<U32>& second) const {
    first = hn::Set(U32(), philox_.word(index));
    second = hn::Set(U32(), philox_.word(index + 1));
  }

 private:
  Philox philox_;
};

#endif

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
