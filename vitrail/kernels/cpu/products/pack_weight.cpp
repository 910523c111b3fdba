#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/products/pack_weight.cpp"
#include "vitrail/kernels/pack_weight.h"

#include <algorithm>

#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
// This comes after simd.h, which sets Highway up.
#include "vitrail/kernels/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

constexpr std::int64_t block_rows = 16;     // rows of words in a block
constexpr std::int64_t strip_columns = 16;  // columns in a strip; every width of blocks is a multiple of it

// A word of a block: one f32, or two bf16 of adjacent rows.
template <class T>
using Word = std::conditional_t<std::is_same_v<T, bf16>, std::uint32_t, float>;
template <class T>
constexpr std::int64_t per_word = sizeof(Word<T>) / sizeof(T);

// Packs one block, whose first element in the matrix is at that row and column.
inline void pack_block(const PlainWeight& w, std::int64_t row, std::int64_t column, std::int64_t width, float* to) {
  const F32 d;
  const std::int64_t columns = std::min(width, w.columns - column);
  for (std::int64_t r = row; r < row + block_rows; ++r, to += width) {
    const float* from = w.data + r * w.row_stride + column;
    const std::int64_t n = r < w.rows ? columns : 0;
    for_lanes(d, n, [&](std::int64_t c, auto part) HWY_ATTR { store(load(d, from + c, part), d, to + c, part); });
    std::fill(to + n, to + width, 0.0F);
  }
}
inline void pack_block(const PlainWeight& w, std::int64_t row, std::int64_t column, std::int64_t width,
                       std::uint32_t* to) {
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  const std::int64_t columns = std::min(width, w.columns - column);
  for (std::int64_t r = row; r < row + 2 * block_rows; r += 2, to += width) {
    const float* even = w.data + r * w.row_stride + column;
    const bool odd_there = r + 1 < w.rows;
    const std::int64_t n = r < w.rows ? columns : 0;
    for_lanes(d, n, [&](std::int64_t c, auto part) HWY_ATTR {
      const auto low = hn::ShiftRight<16>(rounded_to_bf16(d, load(d, even + c, part)));
      const auto odd = odd_there ? load(d, even + w.row_stride + c, part) : hn::Zero(d);
      const auto word = hn::Or(low, hn::And(rounded_to_bf16(d, odd), hn::Set(du, 0xffff0000U)));
      store(hn::BitCast(d, word), d, reinterpret_cast<float*>(to) + c, part);
    });
    std::fill(to + n, to + width, 0U);
  }
}

// Packs the blocks [begin, end) of a matrix with dense rows; they are counted down the rows first, and then along the
// columns.
template <class T>
void pack_blocks(const PlainWeight& w, std::int64_t width, std::int64_t begin, std::int64_t end, Word<T>* to) {
  constexpr std::int64_t height = per_word<T> * block_rows;
  const std::int64_t down = (w.rows + height - 1) / height;
  for (std::int64_t block = begin; block < end; ++block) {
    const std::int64_t row = block % down * height;
    const std::int64_t column = block / down * width;
    pack_block(w, row, column, width, to + block * block_rows * width);
  }
}

// A vector of words from `column`, a pointer into one column of which `count` > 0 elements are left; zeros behind the
// end.
inline V<F32> words_of(float, const float* column, std::int64_t count) {
  const F32 d;
  return count >= static_cast<std::int64_t>(hn::Lanes(d)) ? load(d, column) : load(d, column, count);
}
inline V<F32> words_of(bf16, const float* column, std::int64_t count) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto first = words_of(float{}, column, count);
  const auto second = count > lanes ? words_of(float{}, column + lanes, count - lanes) : hn::Zero(d);
#if HWY_TARGET == HWY_SCALAR
  const auto even = first;
  const auto odd = second;
#else
  const auto even = hn::ConcatEven(d, second, first);
  const auto odd = hn::ConcatOdd(d, second, first);
#endif
  const hn::RebindToUnsigned<F32> du;
  const auto low = hn::ShiftRight<16>(rounded_to_bf16(d, even));
  return hn::BitCast(d, hn::Or(low, hn::And(rounded_to_bf16(d, odd), hn::Set(du, 0xffff0000U))));
}

// Packs the strips [begin, end) of a matrix with dense columns, down all its rows. Only as many columns as a vector has
// lanes are read at a time, each sequentially.
template <class T>
void pack_strips(const PlainWeight& w, std::int64_t width, std::int64_t begin, std::int64_t end, Word<T>* to) {
  constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(F32()));
  constexpr std::int64_t height = per_word<T> * block_rows;
  const F32 d;
  const std::int64_t down = (w.rows + height - 1) / height;
  for (std::int64_t column = begin * strip_columns; column < end * strip_columns; column += lanes) {
    float* const strip = reinterpret_cast<float*>(to) + column / width * down * block_rows * width + column % width;
    for (std::int64_t row = 0; row < down * height; row += lanes * per_word<T>) {
      V<F32> words[lanes];
      for (std::int64_t c = 0; c < lanes; ++c) {
        const bool there = row < w.rows && column + c < w.columns;
        words[c] = there ? words_of(T{}, w.data + (column + c) * w.column_stride + row, w.rows - row) : hn::Zero(d);
      }
      transpose(words);
      for (std::int64_t r = 0; r < lanes; ++r) {
        store(words[r], d, strip + (row / per_word<T> + r) * width);
      }
    }
  }
}

void pack_parts(const PlainWeight& w, std::int64_t width, DType dtype, std::int64_t begin, std::int64_t end, void* to) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR {
    if (w.column_stride == 1) {
      pack_blocks<T>(w, width, begin, end, static_cast<Word<T>*>(to));
    } else {
      pack_strips<T>(w, width, begin, end, static_cast<Word<T>*>(to));
    }
  });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
HWY_EXPORT(pack_parts);

void pack_weight(const PlainWeight& weight, std::int64_t width, DType dtype, void* to) {
  check(weight.row_stride == 1 || weight.column_stride == 1, "pack_weight: neither rows nor columns are dense");
  const std::int64_t height = dtype == DType::bf16 ? 32 : 16;
  const std::int64_t down = (weight.rows + height - 1) / height;
  const std::int64_t across = (weight.columns + width - 1) / width;
  const bool by_blocks = weight.column_stride == 1;
  const std::int64_t parts = by_blocks ? down * across : across * width / 16;
  parallel_for(parts, by_blocks ? 8 : 256 / (down * 16) + 1, [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(pack_parts)(weight, width, dtype, begin, end, to);
  });
}

}  // namespace vitrail::kernels
#endif
