#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/products/pair_weight_gradient.cpp"
#include "vitrail/kernels/pair_weight_gradient.h"

#include <algorithm>

#include <hwy/cache_control.h>

#include "vitrail/kernels/cpu/products/tile_products.h"
#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

// x is packed once, as the right operand of the product dyᵀ x. Then each thread computes some rows of dweight at a
// time: their sums stay in the L2 cache while all rows of dy are read, of which only the columns for these rows are
// packed, as the left operand.

#ifndef VITRAIL_KERNELS_PAIR_WEIGHT_GRADIENT_ONCE
#define VITRAIL_KERNELS_PAIR_WEIGHT_GRADIENT_ONCE
namespace vitrail::kernels {

constexpr std::int64_t pair_vector = 16;  // words

// A block of x or dy.
struct PairRows {
  const bf16* data;
  std::int64_t stride;
  std::int64_t rows, columns;
};

}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// Interleaves rows 2 p and 2 p + 1 to row p of words. The rows of words are `to_stride` apart, and padded with zeros to
// whole vectors. The sums of the columns are added to `sums` unless that is null.
void pack_pairs(const PairRows& from, Pair* to, std::int64_t to_stride, float* sums) {
  constexpr std::int64_t ahead = 16;  // rows between those that are packed and those that are prefetched
  constexpr std::int64_t line = 32;   // elements
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t packed = round_up(from.columns, lanes);
  const std::int64_t padded = round_up(from.columns, pair_vector);
  for (std::int64_t row = 0; row < from.rows; row += 2, to += to_stride) {
    const bf16* const even = from.data + row * from.stride;
    const bf16* const odd = row + 1 < from.rows ? even + from.stride : nullptr;
    if (row + ahead + 1 < from.rows) {
      for (std::int64_t c = 0; c < from.columns; c += line) {
        hwy::Prefetch(even + ahead * from.stride + c);
        hwy::Prefetch(even + (ahead + 1) * from.stride + c);
      }
    }
    for_lanes(d, from.columns, [&](std::int64_t c, auto part) HWY_ATTR {
      const auto low = load(d, even + c, part);
      const auto high = odd != nullptr ? load(d, odd + c, part) : hn::Zero(d);
      hn::StoreU(pairs_of_bf16(d, low, high), du, to + c);
      if (sums != nullptr) {
        add_to(d, sums, c, hn::Add(low, high), part);
      }
    });
    std::fill(to + packed, to + padded, Pair{0});
  }
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
HWY_EXPORT(pack_pairs);
namespace {

constexpr std::int64_t panel = 64;              // words: the width of a panel of the right operand
constexpr std::int64_t rows_at_once = 256;      // rows of x and dy that are packed together
constexpr std::int64_t sums_at_once = 1 << 17;  // sums that fit into half of the L2 cache

std::int64_t whole_vectors(std::int64_t words) { return round_up(words, pair_vector); }
// The stride in words of packed rows of which a product reads a few words each: an odd number of cache lines, so that
// the rows do not all map to the same cache set.
std::int64_t odd_lines(std::int64_t words) { return (whole_vectors(words) / pair_vector | 1) * pair_vector; }

// Memory for `count` words or sums, aligned to cache lines.
Tensor scratch(std::int64_t count) { return Tensor::empty({count}, DType::f32); }
Pair* words_of(const Tensor& scratch) { return reinterpret_cast<Pair*>(scratch.raw()); }

// The rows [begin, end) of x and dy.
struct Chunk {
  std::int64_t begin, end;
  std::int64_t depth() const { return (end - begin + 1) / 2; }  // number of rows of words

  PairRows of(const Tensor& matrix, std::int64_t column, std::int64_t column_end) const {
    const std::int64_t stride = matrix.size(1);
    return {matrix.data<bf16>() + begin * stride + column, stride, end - begin, column_end - column};
  }
};

}  // namespace

void pair_weight_gradient(const Tensor& x, const Tensor& dy, const Tensor& dweight, const Tensor& dbias) {
  const std::int64_t rows = x.size(0);
  const std::int64_t inputs = x.size(1);
  const std::int64_t outputs = dy.size(1);
  Profile::traffic(x.numel() + dy.numel(), DType::bf16, 1);
  Profile::traffic(dweight.numel(), DType::f32, 1);

  const std::int64_t chunks = (rows + rows_at_once - 1) / rows_at_once;
  const auto chunk_at = [&](std::int64_t i) { return Chunk{i * rows_at_once, std::min(rows, (i + 1) * rows_at_once)}; };

  const std::int64_t width = whole_vectors(inputs);
  const Tensor right = scratch(chunks * (rows_at_once / 2) * width);
  const auto right_of = [&](std::int64_t i) { return words_of(right) + i * (rows_at_once / 2) * width; };
  const std::int64_t panels = (inputs + panel - 1) / panel;
  parallel_for(chunks * panels, 4, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t task = begin; task < end; ++task) {
      const Chunk chunk = chunk_at(task / panels);
      const std::int64_t column = task % panels * panel;
      const std::int64_t column_end = std::min(inputs, column + panel);
      HWY_DYNAMIC_DISPATCH(pack_pairs)
      (chunk.of(x, column, column_end), right_of(task / panels) + column * chunk.depth(),
       whole_vectors(column_end - column), nullptr);
    }
  });

  if (dbias.defined()) {
    dbias.fill(0);
  }
  constexpr std::int64_t unit = tile_rows;
  constexpr std::int64_t thread_work = 1 << 20;
  const std::int64_t block = std::min(outputs, std::clamp(sums_at_once / width / unit * unit, unit, 42 * unit));
  const std::int64_t left_row = odd_lines(block);
  const std::int64_t grain = thread_work / (rows * inputs) + 1;
  const std::int64_t threads = threads_for(outputs, grain);
  const Tensor lefts = scratch(threads * (rows_at_once / 2) * left_row);
  const Tensor all_sums = scratch(threads * block * width);
  parallel_for(outputs, grain, unit, [&](std::int64_t begin, std::int64_t end, int thread) {
    Pair* const left = words_of(lefts) + thread * (rows_at_once / 2) * left_row;
    float* const sums = all_sums.data<float>() + thread * block * width;
    for (std::int64_t output = begin; output < end; output += block) {
      const std::int64_t output_end = std::min(end, output + block);
      for (std::int64_t i = 0; i < chunks; ++i) {
        const Chunk chunk = chunk_at(i);
        HWY_DYNAMIC_DISPATCH(pack_pairs)
        (chunk.of(dy, output, output_end), left, left_row, dbias.defined() ? dbias.data<float>() + output : nullptr);
        multiply_pairs_in_vectors(output_end - output, chunk.depth(), left, 1, left_row, right_of(i), width, sums,
                                  width, i > 0);
      }
      for (std::int64_t row = output; row < output_end; ++row) {
        std::copy_n(sums + (row - output) * width, inputs, dweight.data<float>() + row * inputs);
      }
    }
  });
}

}  // namespace vitrail::kernels
#endif
