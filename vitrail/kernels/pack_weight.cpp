#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/pack_weight.cpp"
#include "vitrail/kernels/pack_weight.h"

#include <algorithm>

#include "vitrail/kernels/parallel.h"
#include "vitrail/kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

constexpr std::int64_t block_rows = 16;  // of words

// A word of a block: one f32, or two bf16 of neighbouring rows.
template <class T>
using Word = std::conditional_t<std::is_same_v<T, bf16>, std::uint32_t, float>;
template <class T>
constexpr std::int64_t per_word = sizeof(Word<T>) / sizeof(T);

// One block, from that row and column on.
inline void pack_block(const PlainWeight& w, std::int64_t row, std::int64_t column, std::int64_t width, float* to) {
  const F32 d;
  const std::int64_t columns = std::min(width, w.columns - column);
  for (std::int64_t r = row; r < row + block_rows; ++r, to += width) {
    const float* from = w.data + r * w.stride + column;
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
    const float* even = w.data + r * w.stride + column;
    const bool odd_there = r + 1 < w.rows;
    const std::int64_t n = r < w.rows ? columns : 0;
    for_lanes(d, n, [&](std::int64_t c, auto part) HWY_ATTR {
      const auto low = hn::ShiftRight<16>(rounded_to_bf16(d, load(d, even + c, part)));
      const auto odd = odd_there ? load(d, even + w.stride + c, part) : hn::Zero(d);
      const auto word = hn::Or(low, hn::And(rounded_to_bf16(d, odd), hn::Set(du, 0xffff0000U)));
      store(hn::BitCast(d, word), d, reinterpret_cast<float*>(to) + c, part);
    });
    std::fill(to + n, to + width, 0U);
  }
}

// The blocks [begin, end), counted down the rows and then along the columns.
template <class T>
void pack_typed(const PlainWeight& w, std::int64_t width, std::int64_t begin, std::int64_t end, Word<T>* to) {
  constexpr std::int64_t height = per_word<T> * block_rows;
  const std::int64_t down = (w.rows + height - 1) / height;
  for (std::int64_t block = begin; block < end; ++block) {
    const std::int64_t row = block % down * height;
    const std::int64_t column = block / down * width;
    Word<T>* place = to + block * block_rows * width;
    pack_block(w, row, column, width, place);
  }
}

void pack_blocks(const PlainWeight& w, std::int64_t width, DType dtype, std::int64_t begin, std::int64_t end,
                 void* to) {
  visit_floating(dtype, [&]<class T>(T) HWY_ATTR { pack_typed<T>(w, width, begin, end, static_cast<Word<T>*>(to)); });
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
HWY_EXPORT(pack_blocks);

void pack_weight(const PlainWeight& weight, std::int64_t width, DType dtype, void* to) {
  const std::int64_t height = dtype == DType::bf16 ? 32 : 16;
  const std::int64_t blocks = (weight.rows + height - 1) / height * ((weight.columns + width - 1) / width);
  parallel_for(blocks, 8, [&](std::int64_t begin, std::int64_t end, int) {
    HWY_DYNAMIC_DISPATCH(pack_blocks)(weight, width, dtype, begin, end, to);
  });
}

}  // namespace vitrail::kernels
#endif
