/// \file
/// Transposition of small matrices in registers, compiled once per instruction set.

#if defined(VITRAIL_KERNELS_TRANSPOSE_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_TRANSPOSE_TARGET
#undef VITRAIL_KERNELS_TRANSPOSE_TARGET
#else
#define VITRAIL_KERNELS_TRANSPOSE_TARGET
#endif

#include "vitrail/kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// Transposes the square matrix whose rows are as many vectors as a vector has lanes: first blocks of 4 x 4, then the
// order of the blocks.
inline void transpose([[maybe_unused]] V<F32>* rows) {
#if HWY_TARGET != HWY_SCALAR
  const F32 d;
  const hn::Repartition<double, F32> pairs;
  constexpr std::size_t lanes = hn::MaxLanes(F32());
  for (std::size_t i = 0; i < lanes; i += 4) {
    const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, rows[i], rows[i + 1]));
    const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, rows[i + 2], rows[i + 3]));
    const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[i], rows[i + 1]));
    const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[i + 2], rows[i + 3]));
    rows[i] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
    rows[i + 1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
    rows[i + 2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
    rows[i + 3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
  }
  if constexpr (lanes == 8) {
    for (std::size_t i = 0; i < 4; ++i) {
      const auto first = rows[i];
      rows[i] = hn::ConcatLowerLower(d, rows[i + 4], first);
      rows[i + 4] = hn::ConcatUpperUpper(d, rows[i + 4], first);
    }
  }
  if constexpr (lanes == 16) {
    for (std::size_t i = 0; i < 4; ++i) {
      const auto low02 = hn::ConcatLowerLower(d, rows[i + 8], rows[i]);
      const auto low13 = hn::ConcatLowerLower(d, rows[i + 12], rows[i + 4]);
      const auto high02 = hn::ConcatUpperUpper(d, rows[i + 8], rows[i]);
      const auto high13 = hn::ConcatUpperUpper(d, rows[i + 12], rows[i + 4]);
      rows[i] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(low13), low02);
      rows[i + 4] = hn::OddEvenBlocks(low13, hn::SwapAdjacentBlocks(low02));
      rows[i + 8] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(high13), high02);
      rows[i + 12] = hn::OddEvenBlocks(high13, hn::SwapAdjacentBlocks(high02));
    }
  }
#endif
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
