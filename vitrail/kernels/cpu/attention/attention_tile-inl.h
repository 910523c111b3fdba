/// \file
/// Packing, products and row-wise steps of attention's tiles, compiled once per instruction set. See attention_tile.h.

#if defined(VITRAIL_KERNELS_ATTENTION_TILE_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef VITRAIL_KERNELS_ATTENTION_TILE_TARGET
#undef VITRAIL_KERNELS_ATTENTION_TILE_TARGET
#else
#define VITRAIL_KERNELS_ATTENTION_TILE_TARGET
#endif

#include <limits>
#include <type_traits>

#include "vitrail/kernels/cpu.h"
#include "vitrail/kernels/cpu/attention/attention_tile.h"
#include "vitrail/kernels/cpu/products/register_tile-inl.h"
#include "vitrail/kernels/cpu/simd/philox-inl.h"
#include "vitrail/kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

constexpr auto lanes = static_cast<std::int64_t>(hn::MaxLanes(F32()));
constexpr std::int64_t panel_width = most_tile_vectors * lanes;
constexpr float negative_infinity = -std::numeric_limits<float>::infinity();

constexpr std::int64_t whole_vectors(std::int64_t n) { return round_up(n, lanes); }

// ---- words

template <class Word>
constexpr std::int64_t per_word = std::is_same_v<Word, Pair> ? 2 : 1;

// The number of words that n summed elements take.
template <class Word>
constexpr std::int64_t words(std::int64_t n) {
  return (n + per_word<Word> - 1) / per_word<Word>;
}
// The number of words of a row of a head dimension: whole blocks of 4, for transposing.
template <class Word>
constexpr std::int64_t row_words(std::int64_t dim) {
  return round_up(words<Word>(dim), 4);
}

// Loads a vector of elements from `p`, of which only `left` exist; the others are zero.
template <class T>
HWY_INLINE V<F32> load_part(const T* p, std::int64_t left) {
  const F32 d;
  return left >= lanes ? load(d, p) : left > 0 ? load(d, p, left) : hn::Zero(d);
}

// Rows whose columns may lie in two places: the first `columns` at `data`, and `extra_columns` further ones at `extra`.
template <class T>
struct Rows {
  const T* data;
  std::int64_t stride, columns;
  const T* extra = nullptr;
  std::int64_t extra_stride = 0, extra_columns = 0;

  std::int64_t all_columns() const { return columns + extra_columns; }
};

// The rows of queries from i on.
template <class T>
Rows<T> query_rows(const AttentionProblem& problem, std::int64_t b, std::int64_t h, std::int64_t i) {
  return {problem.q.at<T>(b, h, i),       problem.q.row,       problem.own,
          problem.q_extra.at<T>(b, h, i), problem.q_extra.row, problem.dim - problem.own};
}
// The rows of keys from j on.
template <class T>
Rows<T> key_rows(const AttentionProblem& problem, std::int64_t b, std::int64_t h, std::int64_t j) {
  return {problem.k.at<T>(b, h, j),       problem.k.row,       problem.own,
          problem.k_extra.at<T>(b, h, j), problem.k_extra.row, problem.dim - problem.own};
}

template <class T>
HWY_INLINE void copy_row(const T* x, std::int64_t n, float* y) {
  const F32 d;
  for_lanes(d, n, [&](std::int64_t c, auto part) HWY_ATTR { store(load(d, x + c, part), d, y + c, part); });
}
HWY_INLINE void copy_row(const bf16* x, std::int64_t n, bf16* y) {
  const hn::ScalableTag<std::uint16_t> d;
  std::int64_t c = 0;
  for (; c + 2 * lanes <= n; c += 2 * lanes) {
    hn::StoreU(hn::LoadU(d, reinterpret_cast<const std::uint16_t*>(x + c)), d, reinterpret_cast<std::uint16_t*>(y + c));
  }
  std::copy(x + c, x + n, y + c);
}

// Packs rows of f32 or bf16 into rows of words, `row` words apart, with zeros behind each row and in the rows from
// `rows` to `all_rows`.
template <class T, class Word>
void pack_rows(const Rows<T>& source, std::int64_t rows, std::int64_t all_rows, Word* packed, std::int64_t row) {
  using Element = std::conditional_t<std::is_same_v<Word, Pair>, bf16, float>;
  for (std::int64_t i = 0; i < all_rows; ++i, packed += row) {
    auto* y = reinterpret_cast<Element*>(packed);
    if (i < rows) {
      copy_row(source.data + i * source.stride, source.columns, y);
      copy_row(source.extra + i * source.extra_stride, source.extra_columns, y + source.columns);
    }
    std::fill(y + (i < rows ? source.all_columns() : 0), y + per_word<Word> * row, Element());
  }
}

// Transposes words [4, 4].
template <class Word>
HWY_INLINE void transpose_4x4(const Word* source, std::int64_t row, Word* target, std::int64_t target_row) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 4; ++j) {
      target[j * target_row + i] = source[i * row + j];
    }
  }
#else
  const hn::FixedTag<Word, 4> d;
  const auto r0 = hn::LoadU(d, source), r1 = hn::LoadU(d, source + row);
  const auto r2 = hn::LoadU(d, source + 2 * row), r3 = hn::LoadU(d, source + 3 * row);
  const auto even_low = hn::InterleaveLower(d, r0, r2), odd_low = hn::InterleaveLower(d, r1, r3);
  const auto even_high = hn::InterleaveUpper(d, r0, r2), odd_high = hn::InterleaveUpper(d, r1, r3);
  hn::StoreU(hn::InterleaveLower(d, even_low, odd_low), d, target);
  hn::StoreU(hn::InterleaveUpper(d, even_low, odd_low), d, target + target_row);
  hn::StoreU(hn::InterleaveLower(d, even_high, odd_high), d, target + 2 * target_row);
  hn::StoreU(hn::InterleaveUpper(d, even_high, odd_high), d, target + 3 * target_row);
#endif
}

// Packs rows of words [columns, depth] (whole vectors of rows, `depth` a multiple of 4) into panels of the matrix
// [depth, columns], whose columns the rows become.
template <class Word>
void pack_transposed(const Word* rows, std::int64_t depth, std::int64_t columns, Word* panels) {
  for (std::int64_t first = 0; first < columns; first += panel_width) {
    const std::int64_t width = std::min(panel_width, columns - first);
    Word* panel = panels + first * depth;
    for (std::int64_t j = 0; j < width; j += 4) {
      const std::int64_t count = std::min<std::int64_t>(4, width - j);
      for (std::int64_t p = 0; p < depth; p += 4) {
        const Word* from = rows + (first + j) * depth + p;
        Word* to = panel + p * width + j;
        if (count == 4) {
          transpose_4x4(from, depth, to, width);
        } else {  // the vectors have fewer than 4 lanes
          for (std::int64_t i = 0; i < 4 * count; ++i) {
            to[i / count * width + i % count] = from[i % count * depth + i / count];
          }
        }
      }
    }
  }
}

// Loads a vector of the elements of row i from `column` on.
template <class T>
HWY_INLINE V<F32> row_vector(const Rows<T>& source, std::int64_t i, std::int64_t column) {
  const T* x = source.data + i * source.stride + column;
  const std::int64_t left = source.columns - column;
  if (left >= lanes || source.extra_columns == 0) {
    return load_part(x, left);
  }
  const T* extra = source.extra + i * source.extra_stride;
  if (left <= 0) {
    return load_part(extra - left, source.extra_columns + left);
  }
  HWY_ALIGN T both[hn::MaxLanes(F32())] = {};  // a vector that has elements of both places
  std::copy_n(x, left, both);
  std::copy_n(extra, std::min(lanes - left, source.extra_columns), both + left);
  return load(F32(), both);
}

// Loads a vector of words of a matrix [rows, columns] from `column` on: for f32 row p, for pairs the rows 2 p and 2 p +
// 1 interleaved.
template <class T>
HWY_INLINE auto word_vector(const Rows<T>& source, std::int64_t, std::int64_t p, std::int64_t column, float) {
  return row_vector(source, p, column);
}
HWY_INLINE auto word_vector(const Rows<bf16>& source, std::int64_t rows, std::int64_t p, std::int64_t column, Pair) {
  const F32 d;
  const bool alone = 2 * p + 1 >= rows;
  return pairs_of_bf16(d, row_vector(source, 2 * p, column),
                       alone ? hn::Zero(d) : row_vector(source, 2 * p + 1, column));
}

// Packs the matrix [rows, columns] into panels for a product that sums over its rows.
template <class T, class Word>
void pack_columns(const Rows<T>& source, std::int64_t rows, Word* panels) {
  const hn::ScalableTag<Word> d;
  const std::int64_t depth = words<Word>(rows);
  const std::int64_t all = whole_vectors(source.all_columns());
  for (std::int64_t first = 0; first < all; first += panel_width) {
    const std::int64_t width = std::min(panel_width, all - first);
    for (std::int64_t p = 0; p < depth; ++p) {
      for (std::int64_t c = 0; c < width; c += lanes, panels += lanes) {
        hn::StoreU(word_vector(source, rows, p, first + c, Word{}), d, panels);
      }
    }
  }
}

// Writes f32 rows as rows of T, each multiplied by its factor.
template <class T, class Factor>
void write_rows(const float* x, std::int64_t row, std::int64_t rows, std::int64_t columns, Factor factor, T* target,
                std::int64_t stride) {
  const F32 d;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto f = hn::Set(d, factor(i));
    for_lanes(d, columns, [&](std::int64_t c, auto part) HWY_ATTR {
      store(hn::Mul(load(d, x + i * row + c, part), f), d, target + i * stride + c, part);
    });
  }
}

// ---- products

template <int kRows, int kVectors>
void tile_product(std::int64_t depth, const float* a, std::int64_t a_row, std::int64_t a_depth, const float* b,
                  float* c, std::int64_t c_row, bool add) {
  RegisterTile<kRows, kVectors> tile;
  if (add) {
    tile.load(c, c_row, Whole{});
  } else {
    tile.zero();
  }
  tile.add_product(depth, a, a_row, a_depth, b, kVectors * lanes, Whole{});
  tile.store(c, c_row, Whole{});
}

constexpr TileProducts<float, most_tile_vectors> f32_products([]<int kRows, int kVectors>() {
  return &tile_product<kRows, kVectors>;
});

inline void multiply(std::int64_t rows, std::int64_t depth, const float* a, std::int64_t a_row, std::int64_t a_depth,
                     const float* b, std::int64_t columns, float* c, std::int64_t c_row, bool add) {
  f32_products.multiply(rows, depth, a, a_row, a_depth, b, columns, lanes, c, c_row, add);
}
inline void multiply(std::int64_t rows, std::int64_t depth, const Pair* a, std::int64_t a_row, std::int64_t a_depth,
                     const Pair* b, std::int64_t columns, float* c, std::int64_t c_row, bool add) {
  const auto of_pairs = has_amx() ? multiply_pairs_in_tiles : multiply_pairs_in_vectors;
  of_pairs(rows, depth, a, a_row, a_depth, b, columns, c, c_row, add);
}

inline void fill(float* x, std::int64_t n, float value) { std::fill(x, x + n, value); }

// ---- softmax

constexpr float log2e = 1.44269504F;

// 2^t for t < 128, with a relative error of 1.8e-7, or of 1e-4 for pairs, where the result is rounded to bf16 anyway; 0
// for t < -126.
template <class Word>
HWY_INLINE V<F32> exp2(V<F32> t) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const auto shift = hn::Set(d, 12582912.0F);  // 3 · 2^22: the sum's lowest bits are t rounded to an integer
  const auto n = hn::Add(t, shift);
  const auto f = hn::Sub(t, hn::Sub(n, shift));
  V<F32> p;  // minimax polynomial for |f| ≤ 1/2 with p(0) = 1
  if constexpr (std::is_same_v<Word, Pair>) {
    p = hn::MulAdd(hn::Set(d, 0.05500893F), f, hn::Set(d, 0.24221095F));
    p = hn::MulAdd(p, f, hn::Set(d, 0.6932829F));
  } else {
    p = hn::MulAdd(hn::Set(d, 0.0013264727F), f, hn::Set(d, 0.009671513F));
    p = hn::MulAdd(p, f, hn::Set(d, 0.055507336F));
    p = hn::MulAdd(p, f, hn::Set(d, 0.24022242F));
    p = hn::MulAdd(p, f, hn::Set(d, 0.693147F));
  }
  p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
  const auto power = hn::ShiftLeft<23>(hn::BitCast(di, n));  // the other bits are shifted out
  const auto y = hn::BitCast(d, hn::Add(hn::BitCast(di, p), power));
  return hn::IfThenZeroElse(hn::Lt(t, hn::Set(d, -126.0F)), y);
}

// Bits whose upper halves are x in bf16, rounded to nearest (ties away from zero, which takes one addition).
HWY_INLINE auto rounded(V<F32> x) {
  const hn::RebindToUnsigned<F32> du;
  return hn::Add(hn::BitCast(du, x), hn::Set(du, 0x8000));
}

// Stores a vector of a row as words along the row: element j goes to place j.
HWY_INLINE void store_along(V<F32> x, float* row, std::int64_t j) { hn::StoreU(x, F32(), row + j); }
HWY_INLINE void store_along(V<F32> x, Pair* row, std::int64_t j) {
  const hn::Rebind<std::uint16_t, F32> du16;
  hn::StoreU(hn::TruncateTo(du16, hn::ShiftRight<16>(rounded(x))), du16, reinterpret_cast<std::uint16_t*>(row) + j);
}

// Stores vectors of the rows 2 p and 2 p + 1 as words down the columns.
HWY_INLINE void store_down(V<F32> even, V<F32> odd, Pair* row, std::int64_t j) {
  const hn::RebindToUnsigned<F32> du;
  const auto high = hn::And(rounded(odd), hn::Set(du, 0xffff0000U));
  hn::StoreU(hn::Or(hn::ShiftRight<16>(rounded(even)), high), du, row + j);
}

// The part of the scores that a tile is.
struct TileAt {
  std::int64_t b, h, i, j;     // sample and head, the first query and the first key
  std::int64_t rows, columns;  // how many queries and keys
};

// Whether the scores need more than a positive factor, so that apply_terms() must be called.
inline bool has_terms(const AttentionProblem& problem, const TileAt& at) {
  return problem.mask || problem.bias || problem.scale < 0 || problem.visible(at.b, at.i) < at.j + at.columns;
}

// Scales the products q kᵀ of a tile, adds bias and mask, and sets the scores of keys that may not be seen to -∞.
inline void apply_terms(const AttentionProblem& problem, const TileAt& at, float* scores, std::int64_t row) {
  const F32 d;
  const auto scale = hn::Set(d, problem.scale);
  const HeadsView added = problem.mask_is_added ? problem.mask : HeadsView();
  for (std::int64_t i = 0; i < at.rows; ++i) {
    float* s = scores + i * row;
    const std::int64_t n = std::clamp<std::int64_t>(problem.visible(at.b, at.i + i) - at.j, 0, at.columns);
    const auto row_of = [&](const HeadsView& term) {
      return term ? term.repeated_at<float>(at.b, at.h, at.i + i) + at.j * term.column : nullptr;
    };
    const float* bias = row_of(problem.bias);
    const float* more = row_of(added);
    const float* bias_along = problem.bias.column == 1 ? bias : nullptr;
    const float* more_along = added.column == 1 ? more : nullptr;
    for_lanes(d, n, [&](std::int64_t j, auto part) HWY_ATTR {
      auto v = hn::Mul(load(d, s + j, part), scale);
      v = bias_along == nullptr ? v : hn::Add(v, load(d, bias_along + j, part));
      v = more_along == nullptr ? v : hn::Add(v, load(d, more_along + j, part));
      store(v, d, s + j, part);
    });
    for (std::int64_t j = 0; bias != bias_along && j < n; ++j) {
      s[j] += bias[j * problem.bias.column];
    }
    for (std::int64_t j = 0; more != more_along && j < n; ++j) {
      s[j] += more[j * added.column];
    }
    if (problem.mask && !problem.mask_is_added) {
      const auto* mask = problem.mask.repeated_at<std::uint8_t>(at.b, at.h, at.i + i) + at.j * problem.mask.column;
      for (std::int64_t j = 0; j < n; ++j) {
        s[j] = mask[j * problem.mask.column] != 0 ? s[j] : negative_infinity;
      }
    }
    std::fill(s + n, s + at.columns, negative_infinity);
  }
}

// What dropout_factors() may write before and behind a row.
constexpr std::int64_t factor_slack = 4 + 2 * lanes;
// Takes memory for dropout_factors() of a row.
inline float* take_factors(Arena& arena, std::int64_t columns) {
  return arena.take<float>(columns + 2 * factor_slack) + factor_slack;
}

// Writes the factors that dropout multiplies the probabilities of row i of a tile with: 0 or 1 / (1 - dropout). It also
// writes up to `factor_slack` elements before and behind them.
inline void dropout_factors(const AttentionProblem& problem, const TileAt& at, std::int64_t i, float* factors) {
  const F32 d;
  const U32 d32;
  const PhiloxLanes philox(problem.draws);
  const auto limit = hn::Set(d32, keep_limit(problem.dropout));
  const auto kept = hn::Set(d, 1 / (1 - problem.dropout));
  const std::int64_t row = (at.b * problem.heads + at.h) * problem.queries + at.i + i;
  const std::int64_t first = row * problem.keys + at.j;
  for (std::int64_t index = first / 4 * 4; index < first + at.columns; index += 2 * lanes) {
    V<U32> low;
    V<U32> high;
    philox.words(static_cast<std::uint64_t>(index), low, high);
    float* to = factors + (index - first);
    hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(d, hn::Gt(limit, hn::ShiftRight<8>(low))), kept), d, to);
    hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(d, hn::Gt(limit, hn::ShiftRight<8>(high))), kept), d, to + lanes);
  }
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
