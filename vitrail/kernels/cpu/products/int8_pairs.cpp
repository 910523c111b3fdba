#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/products/int8_pairs.cpp"
#include "vitrail/kernels/cpu/products/int8_pairs.h"

#include <algorithm>
#include <cstring>

#include "vitrail/kernels/cpu/products/tile_products.h"
#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/few_rows.h"
#include "vitrail/kernels/parallel.h"
// This comes after simd.h, which sets Highway up.
#include "vitrail/kernels/cpu/simd/transpose-inl.h"

#ifndef VITRAIL_KERNELS_INT8_PAIRS_ONCE
#define VITRAIL_KERNELS_INT8_PAIRS_ONCE
namespace vitrail::kernels {
namespace {

// The operands of sums = a · weightᵀ. The rows of `a` are widened, with zeros up to `width` numbers.
struct Int8Pairs {
  std::int64_t rows, depth, outputs, width;
  const std::int16_t* a;
  const std::int8_t* weight;
  std::int32_t* sums;
};

constexpr std::int64_t width_unit = 64;      // the widest vector has 32 numbers of 16 bits; the unit of `width`
constexpr std::int64_t block_depth = 512;    // numbers of an output that are packed at once: a panel stays in the L1
constexpr std::int64_t most_panel = 64;      // outputs of the widest panel
constexpr std::int64_t streams_at_once = 4;  // rows of the weight that are read at once, far apart

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

using I16 = hn::ScalableTag<std::int16_t>;
using I32Sum = hn::ScalableTag<std::int32_t>;
using I8Half = hn::Rebind<std::int8_t, I16>;

void widen_row(const std::int8_t* from, std::int64_t n, std::int16_t* to) {
  const I16 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(I8Half(), from + i)), d, to + i);
  }
  for (; i < n; ++i) {
    to[i] = from[i];
  }
}

// The numbers of a row of the weight from `from` on, of which `count` are left; zeros behind them.
HWY_INLINE V<I16> widened(const std::int8_t* from, Whole) { return hn::PromoteTo(I16(), hn::LoadU(I8Half(), from)); }
HWY_INLINE V<I16> widened(const std::int8_t* from, std::int64_t count) {
  HWY_ALIGN std::int8_t lanes[hn::MaxLanes(I16())] = {};
  std::memcpy(lanes, from, static_cast<std::size_t>(count));
  return widened(lanes, Whole{});
}

// sum + the products of adjacent numbers.
HWY_INLINE V<I32Sum> add_pairs(V<I16> a, V<I16> b, V<I32Sum> sum) {
  const I32Sum d;
#if HWY_TARGET == HWY_SCALAR
  return hn::Add(sum, hn::Set(d, static_cast<std::int32_t>(hn::GetLane(a)) * hn::GetLane(b)));
#else
  auto rest = hn::Zero(d);
  const auto first = hn::ReorderWidenMulAccumulate(d, a, b, hn::Zero(d), rest);
  return hn::Add(sum, hn::RearrangeToOddPlusEven(first, rest));
#endif
}

// ---- Few rows: the weight as it lies.

// The products of kRows rows of `a`, from `row` on, with kOutputs rows of the weight that are `apart` rows apart.
template <int kRows, int kOutputs>
HWY_INLINE void dot_int8(const Int8Pairs& p, std::int64_t row, std::int64_t output, std::int64_t apart) {
  const I32Sum d;
  V<I32Sum> sums[kRows][kOutputs];
  for (auto& of_row : sums) {
    for (auto& sum : of_row) {
      sum = hn::Zero(d);
    }
  }
  const std::int16_t* const a = p.a + row * p.width;
  const std::int8_t* const weight = p.weight + output * p.depth;
  for_lanes(I16(), p.depth, [&](std::int64_t k, auto part) HWY_ATTR {
    V<I16> w[kOutputs];
    for (int o = 0; o < kOutputs; ++o) {
      w[o] = widened(weight + o * apart * p.depth + k, part);
    }
    for (int r = 0; r < kRows; ++r) {
      const auto v = hn::LoadU(I16(), a + r * p.width + k);
      for (int o = 0; o < kOutputs; ++o) {
        sums[r][o] = add_pairs(v, w[o], sums[r][o]);
      }
    }
  });
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) {
      p.sums[(row + r) * p.outputs + output + o * apart] = hn::GetLane(hn::SumOfLanes(d, sums[r][o]));
    }
  }
}

template <int kOutputs>
HWY_INLINE void dot_rows(const Int8Pairs& p, std::int64_t output, std::int64_t apart) {
  std::int64_t row = 0;
  for (; row + 2 <= p.rows; row += 2) {
    dot_int8<2, kOutputs>(p, row, output, apart);
  }
  if (row < p.rows) {
    dot_int8<1, kOutputs>(p, row, output, apart);
  }
}

// All rows by the outputs [begin, end).
void dot_part(const Int8Pairs& p, std::int64_t begin, std::int64_t end) {
  const std::int64_t apart = (end - begin) / streams_at_once;
  for (std::int64_t n = begin; n < begin + apart; ++n) {
    dot_rows<streams_at_once>(p, n, apart);
  }
  for (std::int64_t n = begin + streams_at_once * apart; n < end; ++n) {
    dot_rows<1>(p, n, 0);
  }
}

// ---- Many rows: a panel of outputs after the other, packed.

#if HWY_TARGET == HWY_SCALAR

void panel_part(const Int8Pairs& p, std::int64_t begin, std::int64_t end, std::int16_t*) { dot_part(p, begin, end); }

#else

// The sums of a tile stay in the registers, of which there are 32 or 16, with room for products.
constexpr int panel_tile_rows = 5;
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int panel_vectors = 4;
#else
constexpr int panel_vectors = 2;
#endif
constexpr auto sum_lanes = static_cast<std::int64_t>(hn::MaxLanes(I32Sum()));
constexpr std::int64_t panel_width = panel_vectors * sum_lanes;

// Packs the numbers [k, k + depth) of panel_width outputs, of which `outputs` are there: first two numbers of each,
// then the next two. Returns the number of such pairs.
HWY_INLINE std::int64_t pack_panel(const Int8Pairs& p, std::int64_t output, std::int64_t outputs, std::int64_t k,
                                   std::int64_t depth, std::int16_t* panel) {
  const F32 d;
  constexpr std::int64_t step = 2 * sum_lanes;
  const std::int64_t steps = (depth + step - 1) / step;
  for (std::int64_t s = 0; s < steps; ++s) {
    const std::int64_t left = std::min(step, depth - s * step);
    float* const to = reinterpret_cast<float*>(panel + s * step * panel_width);
    for (int v = 0; v < panel_vectors; ++v) {
      V<F32> words[sum_lanes];
      for (std::int64_t i = 0; i < sum_lanes; ++i) {
        const std::int64_t n = v * sum_lanes + i;
        const std::int8_t* const from = p.weight + (output + n) * p.depth + k + s * step;
        words[i] = hn::BitCast(d, n >= outputs ? hn::Zero(I16())
                                  : left == step ? widened(from, Whole{})
                                                 : widened(from, left));
      }
      transpose(words);
      for (std::int64_t i = 0; i < sum_lanes; ++i) {
        store(words[i], d, to + i * panel_width + v * sum_lanes);
      }
    }
  }
  return steps * sum_lanes;
}

// Adds the products of kRows rows of `a` with a packed panel to the sums, or sets them if they are the first.
template <int kRows>
HWY_NOINLINE void panel_tile(std::int64_t pairs, const std::int16_t* a, std::int64_t a_row, const std::int16_t* panel,
                             std::int32_t* sums, std::int64_t sums_row, bool first) {
  const I32Sum d;
  V<I32Sum> tile[kRows][panel_vectors];
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < panel_vectors; ++v) {
      tile[r][v] = first ? hn::Zero(d) : hn::LoadU(d, sums + r * sums_row + v * sum_lanes);
    }
  }
  for (std::int64_t p = 0; p < pairs; ++p) {
    V<I16> columns[panel_vectors];
    HWY_UNROLL(8)
    for (int v = 0; v < panel_vectors; ++v) {
      columns[v] = hn::LoadU(I16(), panel + p * 2 * panel_width + v * 2 * sum_lanes);
    }
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      std::int32_t pair;
      std::memcpy(&pair, a + r * a_row + 2 * p, sizeof(pair));
      const auto left = hn::BitCast(I16(), hn::Set(d, pair));
      HWY_UNROLL(8)
      for (int v = 0; v < panel_vectors; ++v) {
        tile[r][v] = add_pairs(left, columns[v], tile[r][v]);
      }
    }
  }
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < panel_vectors; ++v) {
      hn::StoreU(tile[r][v], d, sums + r * sums_row + v * sum_lanes);
    }
  }
}

// The same for all rows [row, p.rows), in tiles of at most kRows.
template <int kRows = panel_tile_rows>
HWY_INLINE void panel_rows(const Int8Pairs& p, std::int64_t row, std::int64_t k, std::int64_t pairs,
                           const std::int16_t* panel, std::int32_t* sums, std::int64_t sums_row) {
  for (; row + kRows <= p.rows; row += kRows) {
    panel_tile<kRows>(pairs, p.a + row * p.width + k, p.width, panel, sums + row * sums_row, sums_row, k == 0);
  }
  if constexpr (kRows > 1) {
    panel_rows<kRows == panel_tile_rows ? 4 : kRows / 2>(p, row, k, pairs, panel, sums, sums_row);
  }
}

// All rows by the outputs [begin, end), with memory for a panel.
void panel_part(const Int8Pairs& p, std::int64_t begin, std::int64_t end, std::int16_t* panel) {
  const std::int64_t whole = begin + (end - begin) / panel_width * panel_width;
  for (std::int64_t output = begin; output < whole; output += panel_width) {
    for (std::int64_t k = 0; k < p.depth; k += block_depth) {
      const std::int64_t pairs = pack_panel(p, output, panel_width, k, std::min(block_depth, p.depth - k), panel);
      panel_rows(p, 0, k, pairs, panel, p.sums + output, p.outputs);
    }
  }
  if (whole < end) {
    dot_part(p, whole, end);
  }
}

#endif

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "vitrail/tensor/profile.h"

namespace vitrail::kernels {
namespace {
HWY_EXPORT(widen_row);
HWY_EXPORT(dot_part);
HWY_EXPORT(panel_part);
}  // namespace

void int8_sums_in_pairs(const Tensor& a, const Tensor& weight, const Tensor& sums) {
  const std::int64_t rows = a.size(0);
  const std::int64_t depth = a.size(1);
  const std::int64_t outputs = weight.size(0);
  const std::int64_t width = round_up(depth, width_unit);
  const Tensor wide = Tensor::empty({rows, 2 * width}, DType::i8);
  auto* const numbers = reinterpret_cast<std::int16_t*>(wide.raw());
  parallel_for(rows, rows_worth_a_thread(width), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      HWY_DYNAMIC_DISPATCH(widen_row)(a.data<std::int8_t>() + row * depth, depth, numbers + row * width);
      std::fill(numbers + row * width + depth, numbers + (row + 1) * width, std::int16_t{0});
    }
  });
  const Int8Pairs p{rows, depth, outputs, width, numbers, weight.data<std::int8_t>(), sums.data<std::int32_t>()};
  Profile::flops(2.0 * static_cast<double>(sums.numel()) * static_cast<double>(depth));
  Profile::traffic(weight.numel(), DType::i8, 1);
  const std::int64_t grain = (1 << 18) / (rows * depth) + 1;
  if (rows <= most_few_rows) {
    parallel_for(outputs, grain, [&](std::int64_t begin, std::int64_t end, int) {
      HWY_DYNAMIC_DISPATCH(dot_part)(p, begin, end);
    });
    return;
  }
  parallel_for(outputs, grain, most_panel, [&](std::int64_t begin, std::int64_t end, int) {
    const Tensor panel = Tensor::empty({2 * block_depth * most_panel}, DType::i8);
    HWY_DYNAMIC_DISPATCH(panel_part)(p, begin, end, reinterpret_cast<std::int16_t*>(panel.raw()));
  });
}

}  // namespace vitrail::kernels
#endif
