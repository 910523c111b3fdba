#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/attention/attention_forward.cpp"
#include <cmath>
#include <cstring>

#include "vitrail/kernels/cpu/simd/simd.h"
//
#include "vitrail/kernels/cpu/attention/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// The scratch memory of a thread.
template <class Word>
struct ForwardScratch {
  ForwardScratch(const AttentionProblem& problem, Arena& arena)
      : key_row(row_words<Word>(problem.dim)),
        score_row(whole_vectors(problem.key_block)),
        out_row(whole_vectors(problem.value_dim)),
        rows(arena.take<Word>(std::max(score_row, problem.query_block) * key_row)),
        keys(arena.take<Word>(problem.key_blocks() * score_row * key_row)),
        values(arena.take<Word>(problem.key_blocks() * words<Word>(problem.key_block) * out_row)),
        scores(arena.take<float>(problem.query_block * score_row)),
        probabilities(arena.take<Word>(problem.query_block * words<Word>(score_row))),
        out(arena.take<float>(problem.query_block * out_row)),
        max(arena.take<float>(problem.query_block)),
        sum(arena.take<float>(problem.query_block)),
        factors(take_factors(arena, score_row)) {}

  std::int64_t key_row, score_row, out_row;  // words or floats from row to row
  Word* rows;                                // of q or k, before they are transposed
  Word* keys;                                // [d, M] in panels, one block of keys after the other
  Word* values;                              // [M, e] in panels, one block of keys after the other
  float* scores;                             // one tile
  Word* probabilities;                       // of one tile, as words along the keys
  float* out;                                // [query block, e], not yet divided by `sum`
  float* max;                                // per row, the maximum of scores · log₂ e so far
  float* sum;                                // per row, the sum of 2^(scores · log₂ e - max) so far
  float* factors;                            // of dropout, for one row
};

// Packs the keys and values of a head into panels.
template <class T, class Word>
void pack_head(const AttentionProblem& problem, std::int64_t b, std::int64_t h, const ForwardScratch<Word>& scratch) {
  for (std::int64_t j = 0; j < problem.keys_of(b); j += problem.key_block) {
    const std::int64_t count = std::min(problem.key_block, problem.keys_of(b) - j);
    const std::int64_t columns = whole_vectors(count);
    pack_rows(key_rows<T>(problem, b, h, j), count, columns, scratch.rows, scratch.key_row);
    pack_transposed(scratch.rows, scratch.key_row, columns, scratch.keys + j * scratch.key_row);
    if (problem.v) {
      pack_columns(Rows<T>{problem.v.at<T>(b, h, j), problem.v.row, problem.value_dim}, count,
                   scratch.values + words<Word>(j) * scratch.out_row);
    }
  }
}

// Turns a row of scores into 2^(factor · score - max), as words along the keys, and returns their sum. `dropout`
// multiplies what is written, but not the sum.
template <class Word>
HWY_INLINE float exponentials(float* scores, std::int64_t columns, float factor, float max, const float* dropout,
                              Word* probabilities) {
  const F32 d;
  const auto f = hn::Set(d, factor);
  const auto m = hn::Set(d, max);
  auto sum = hn::Zero(d);
  for (std::int64_t j = 0; j < columns; j += lanes) {
    auto p = exp2<Word>(hn::MulSub(hn::LoadU(d, scores + j), f, m));
    sum = hn::Add(sum, p);
    if (dropout != nullptr) {
      p = hn::Mul(p, hn::LoadU(d, dropout + j));
    }
    store_along(p, probabilities, j);
  }
  return sum_of(d, sum);
}

// The largest score of a row, whose padding is set to -∞.
HWY_INLINE float row_max(float* scores, std::int64_t columns) {
  const F32 d;
  const auto lowest = hn::Set(d, negative_infinity);
  auto max = lowest;
  std::int64_t j = 0;
  for (; j + lanes <= columns; j += lanes) {
    max = hn::Max(max, hn::LoadU(d, scores + j));
  }
  if (j < columns) {
    const auto s = first_lanes(d, hn::LoadU(d, scores + j), lowest, columns - j);
    hn::StoreU(s, d, scores + j);
    max = hn::Max(max, s);
  }
  return max_of(d, max);
}

// Adds one block of keys to one block of queries by the online softmax (Milakov and Gimelshein 2018).
template <class Word>
void forward_tile(const AttentionProblem& problem, const TileAt& at, const ForwardScratch<Word>& scratch) {
  const std::int64_t columns = whole_vectors(at.columns);
  const std::int64_t row = scratch.score_row;
  multiply(at.rows, scratch.key_row, scratch.rows, scratch.key_row, 1, scratch.keys + at.j * scratch.key_row, columns,
           scratch.scores, row, false);
  float factor = problem.scale * log2e;
  if (has_terms(problem, at)) {
    apply_terms(problem, at, scratch.scores, row);
    factor = log2e;
  }
  const std::int64_t probability_row = words<Word>(row);
  for (std::int64_t i = 0; i < at.rows; ++i) {
    float* scores = scratch.scores + i * row;
    const float before = scratch.max[i];
    const float max = std::max(before, row_max(scores, at.columns) * factor);
    const float shift = max == negative_infinity ? 0 : max;
    if (problem.dropout > 0) {
      dropout_factors(problem, at, i, scratch.factors);
    }
    const float sum = exponentials(scores, columns, factor, shift, problem.dropout > 0 ? scratch.factors : nullptr,
                                   scratch.probabilities + i * probability_row);
    if (before < max && before > negative_infinity) {
      const float shrink = std::exp2(before - max);
      scratch.sum[i] *= shrink;
      float* out = scratch.out + i * scratch.out_row;
      for (std::int64_t c = 0; c < scratch.out_row; ++c) {
        out[c] *= shrink;
      }
    }
    scratch.max[i] = max;
    scratch.sum[i] += sum;
  }
  multiply(at.rows, words<Word>(at.columns), scratch.probabilities, probability_row, 1,
           scratch.values + words<Word>(at.j) * scratch.out_row, scratch.out_row, scratch.out, scratch.out_row,
           at.j > 0);
}

template <class T, class Word>
void forward_queries(const AttentionProblem& problem, std::int64_t b, std::int64_t h, std::int64_t i,
                     const ForwardScratch<Word>& scratch) {
  TileAt at{b, h, i, 0, std::min(problem.query_block, problem.queries - i), 0};
  pack_rows(query_rows<T>(problem, b, h, i), at.rows, at.rows, scratch.rows, scratch.key_row);
  fill(scratch.max, at.rows, negative_infinity);
  fill(scratch.sum, at.rows, 0);
  const std::int64_t visible = problem.visible(b, i + at.rows - 1);
  if (visible == 0) {
    fill(scratch.out, at.rows * scratch.out_row, 0);
  }
  for (; at.j < visible; at.j += problem.key_block) {
    at.columns = std::min(problem.key_block, problem.keys_of(b) - at.j);
    forward_tile(problem, at, scratch);
  }
  const float* sum = scratch.sum;
  write_rows(
      scratch.out, scratch.out_row, at.rows, problem.value_dim,
      [sum](std::int64_t r) { return sum[r] == 0 ? 0.0F : 1 / sum[r]; }, problem.out.at<T>(b, h, i), problem.out.row);
  if (problem.log_sum != nullptr) {
    float* log_sum = problem.log_sum + (b * problem.heads + h) * problem.queries + i;
    for (std::int64_t r = 0; r < at.rows; ++r) {
      log_sum[r] = sum[r] == 0 ? -negative_infinity : scratch.max[r] + std::log2(sum[r]);
    }
  }
}

// Writes the probabilities of a block of queries, normalized in a second pass; those of keys behind the length are
// zero.
template <class T, class Word>
void probabilities_of_queries(const AttentionProblem& problem, std::int64_t b, std::int64_t h, std::int64_t i,
                              const ForwardScratch<Word>& scratch) {
  TileAt at{b, h, i, 0, std::min(problem.query_block, problem.queries - i), 0};
  pack_rows(query_rows<T>(problem, b, h, i), at.rows, at.rows, scratch.rows, scratch.key_row);
  auto* out = problem.out.at<float>(b, h, i);
  const std::int64_t keys = problem.keys_of(b);
  for (; at.j < keys; at.j += problem.key_block) {
    at.columns = std::min(problem.key_block, keys - at.j);
    multiply(at.rows, scratch.key_row, scratch.rows, scratch.key_row, 1, scratch.keys + at.j * scratch.key_row,
             whole_vectors(at.columns), scratch.scores, scratch.score_row, false);
    apply_terms(problem, at, scratch.scores, scratch.score_row);
    for (std::int64_t r = 0; r < at.rows; ++r) {
      std::copy_n(scratch.scores + r * scratch.score_row, at.columns, out + r * problem.keys + at.j);
    }
  }
  const F32 d;
  for (std::int64_t r = 0; r < at.rows; ++r, out += problem.keys) {
    const float max = *std::max_element(out, out + keys);
    const auto shift = hn::Set(d, max == negative_infinity ? 0 : max * log2e);
    auto sum = hn::Zero(d);
    for_lanes(d, keys, [&](std::int64_t j, auto part) HWY_ATTR {
      const auto p = exp2<float>(hn::MulSub(load(d, out + j, part), hn::Set(d, log2e), shift));
      sum = hn::Add(sum, first_lanes(d, p, hn::Zero(d), part));
      store(p, d, out + j, part);
    });
    const float total = sum_of(d, sum);
    const float inverse = total == 0 ? 0.0F : 1 / total;
    std::for_each(out, out + keys, [inverse](float& p) { p *= inverse; });
    std::fill(out + keys, out + problem.keys, 0.0F);
  }
}

// Computes the blocks of queries [begin, end), counted through all heads, in scratch memory, and returns how much of
// that it needs; without memory it does nothing else.
template <class T, class Word>
std::size_t forward_blocks(const AttentionProblem& problem, std::int64_t begin, std::int64_t end, std::byte* memory) {
  Arena arena(memory);
  const ForwardScratch<Word> scratch(problem, arena);
  if (memory == nullptr) {
    return arena.used();
  }
  fill(scratch.factors, scratch.score_row, 0);  // the padding is multiplied too
  const std::int64_t blocks = problem.query_blocks();
  for (std::int64_t block = begin, packed = -1; block < end; ++block) {
    const std::int64_t head = block / blocks;
    const std::int64_t b = head / problem.heads, h = head % problem.heads;
    if (head != packed) {
      pack_head<T>(problem, b, h, scratch);
      packed = head;
    }
    const std::int64_t i = block % blocks * problem.query_block;
    problem.v ? forward_queries<T>(problem, b, h, i, scratch) : probabilities_of_queries<T>(problem, b, h, i, scratch);
  }
  return arena.used();
}

}  // namespace

std::size_t forward_part(const AttentionProblem& problem, std::int64_t begin, std::int64_t end, std::byte* memory) {
#if HWY_TARGET <= HWY_AVX3
  if (problem.pairs) {
    return forward_blocks<bf16, Pair>(problem, begin, end, memory);
  }
#endif
  return problem.is_bf16 ? forward_blocks<bf16, float>(problem, begin, end, memory)
                         : forward_blocks<float, float>(problem, begin, end, memory);
}

}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
HWY_EXPORT(forward_part);
std::size_t attention_forward_part(const AttentionProblem& problem, std::int64_t begin, std::int64_t end,
                                   std::byte* memory) {
  return HWY_DYNAMIC_DISPATCH(forward_part)(problem, begin, end, memory);
}
}  // namespace vitrail::kernels
#endif
