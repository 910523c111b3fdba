#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/attention/attention_backward.cpp"
#include <cmath>
#include <cstring>

#include "vitrail/kernels/cpu/simd/simd.h"
//
#include "vitrail/kernels/cpu/attention/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

// The scratch memory of a thread. Words run down the columns (`p_down`, `ds_down`) where a product sums over the
// queries, and along the rows (`ds_along`) where it sums over the keys. For f32 the two are the same.
template <class Word>
struct BackwardScratch {
  BackwardScratch(const AttentionProblem& problem, Arena& arena)
      : rows(round_up(problem.query_block, per_word<Word>)),
        key_row(row_words<Word>(problem.dim)),
        value_row(row_words<Word>(problem.value_dim)),
        dim(whole_vectors(problem.dim)),
        value_dim(whole_vectors(problem.value_dim)),
        score_row(whole_vectors(problem.key_block)) {
    const std::int64_t queries = problem.query_blocks() * rows;
    staging = arena.take<Word>(score_row * std::max(key_row, value_row));
    q_rows = arena.take<Word>(queries * key_row);
    q_columns = arena.take<Word>(words<Word>(queries) * dim);
    dout_rows = arena.take<Word>(queries * value_row);
    dout_columns = arena.take<Word>(words<Word>(queries) * value_dim);
    log_sum = arena.take<float>(queries);
    delta = arena.take<float>(queries);
    k_transposed = arena.take<Word>(key_row * score_row);
    k_columns = arena.take<Word>(words<Word>(score_row) * dim);
    v_transposed = arena.take<Word>(value_row * score_row);
    scores = arena.take<float>(rows * score_row);
    dscores = arena.take<float>(rows * score_row);
    if constexpr (per_word<Word> == 1) {
      p_down = scores;
      ds_down = ds_along = dscores;
    } else {
      p_down = arena.take<Word>(words<Word>(rows) * score_row);
      ds_down = arena.take<Word>(words<Word>(rows) * score_row);
      ds_along = arena.take<Word>(rows * words<Word>(score_row));
    }
    dk = arena.take<float>(score_row * dim);
    dv = arena.take<float>(score_row * value_dim);
    for (float*& row : factors) {
      row = take_factors(arena, score_row);
    }
  }

  std::int64_t rows;                                              // of a block of queries, in whole words
  std::int64_t key_row, value_row;                                // words per row of q and k, of dout and v
  std::int64_t dim, value_dim, score_row;                         // rounded up to whole vectors
  Word *staging, *q_rows, *q_columns, *dout_rows, *dout_columns;  // of the head, a block of queries after the other
  float *log_sum, *delta;                                         // of the head; delta = Σ dout · out
  Word *k_transposed, *k_columns, *v_transposed;                  // of the block of keys
  float *scores, *dscores;                                        // one tile
  Word *p_down, *ds_down, *ds_along;
  float *dk, *dv;                  // of the block of keys
  float* factors[per_word<Word>];  // of dropout, for as many rows as a word has elements
};

// Packs all queries of a head in the forms that all of its blocks of keys need.
template <class T, class Word>
void pack_queries(const AttentionProblem& problem, std::int64_t b, std::int64_t h,
                  const BackwardScratch<Word>& scratch) {
  const F32 d;
  for (std::int64_t block = 0; block < problem.query_blocks(); ++block) {
    const std::int64_t i = block * problem.query_block;
    const std::int64_t count = std::min(problem.query_block, problem.queries - i);
    const std::int64_t at = block * scratch.rows;  // where the block begins in the scratch
    const Rows<T> q = query_rows<T>(problem, b, h, i);
    const Rows<T> dout = {problem.dout.at<T>(b, h, i), problem.dout.row, problem.value_dim};
    pack_rows(q, count, scratch.rows, scratch.q_rows + at * scratch.key_row, scratch.key_row);
    pack_columns(q, count, scratch.q_columns + words<Word>(at) * scratch.dim);
    pack_rows(dout, count, scratch.rows, scratch.dout_rows + at * scratch.value_row, scratch.value_row);
    pack_columns(dout, count, scratch.dout_columns + words<Word>(at) * scratch.value_dim);
    for (std::int64_t r = 0; r < scratch.rows; ++r) {
      const bool padding = r >= count;
      auto sum = hn::Zero(d);
      const T* o = problem.out.at<T>(b, h, i + r);
      for_lanes(d, padding ? 0 : problem.value_dim, [&](std::int64_t c, auto part) HWY_ATTR {
        sum = hn::MulAdd(load(d, o + c, part), load(d, dout.data + r * dout.stride + c, part), sum);
      });
      scratch.delta[at + r] = sum_of(d, sum);
      scratch.log_sum[at + r] =
          padding ? -negative_infinity : problem.log_sum[(b * problem.heads + h) * problem.queries + i + r];
    }
  }
}

template <class T, class Word>
void pack_keys(const AttentionProblem& problem, const TileAt& at, const BackwardScratch<Word>& scratch) {
  const std::int64_t columns = whole_vectors(at.columns);
  const Rows<T> k = key_rows<T>(problem, at.b, at.h, at.j);
  const Rows<T> v = {problem.v.at<T>(at.b, at.h, at.j), problem.v.row, problem.value_dim};
  pack_rows(k, at.columns, columns, scratch.staging, scratch.key_row);
  pack_transposed(scratch.staging, scratch.key_row, columns, scratch.k_transposed);
  pack_columns(k, at.columns, scratch.k_columns);
  pack_rows(v, at.columns, columns, scratch.staging, scratch.value_row);
  pack_transposed(scratch.staging, scratch.value_row, columns, scratch.v_transposed);
}

// Computes a vector of probabilities p = 2^(factor · score - log_sum) and of gradients of scores ds = p (dp · dropout -
// delta).
template <class Word, bool kDropout>
struct TileRow {
  const float* scores;
  float* dscores;
  const float* dropout;
  V<F32> factor, log_sum, delta;

  TileRow(const BackwardScratch<Word>& scratch, std::int64_t r, std::int64_t query, float score_factor)
      : scores(scratch.scores + r * scratch.score_row),
        dscores(scratch.dscores + r * scratch.score_row),
        dropout(scratch.factors[r % per_word<Word>]),
        factor(hn::Set(F32(), score_factor)),
        log_sum(hn::Set(F32(), scratch.log_sum[query])),
        delta(hn::Set(F32(), scratch.delta[query])) {}

  HWY_INLINE void at(std::int64_t j, V<F32>& p, V<F32>& ds) const {
    const F32 d;
    p = exp2<Word>(hn::MulSub(hn::LoadU(d, scores + j), factor, log_sum));
    const auto dp = hn::LoadU(d, dscores + j);
    if constexpr (kDropout) {
      const auto kept = hn::LoadU(d, dropout + j);
      ds = hn::Mul(p, hn::MulSub(dp, kept, delta));
      p = hn::Mul(p, kept);
    } else {
      ds = hn::Mul(p, hn::Sub(dp, delta));
    }
  }
};

// Turns scores and dp of row r of a tile (for pairs, of rows r and r + 1) into p and ds. `keep` leaves ds in dscores as
// well.
template <bool kDropout>
HWY_INLINE void tile_rows(const BackwardScratch<float>& scratch, std::int64_t r, std::int64_t query,
                          std::int64_t columns, float factor, bool) {
  const F32 d;
  const TileRow<float, kDropout> row(scratch, r, query, factor);
  for (std::int64_t j = 0; j < columns; j += lanes) {
    V<F32> p;
    V<F32> ds;
    row.at(j, p, ds);
    hn::StoreU(p, d, scratch.scores + r * scratch.score_row + j);
    hn::StoreU(ds, d, row.dscores + j);
  }
}
template <bool kDropout>
HWY_INLINE void tile_rows(const BackwardScratch<Pair>& scratch, std::int64_t r, std::int64_t query,
                          std::int64_t columns, float factor, bool keep) {
  const F32 d;
  const TileRow<Pair, kDropout> even(scratch, r, query, factor), odd(scratch, r + 1, query + 1, factor);
  const std::int64_t down = r / 2 * scratch.score_row;
  Pair* along = scratch.ds_along + r * words<Pair>(scratch.score_row);
  for (std::int64_t j = 0; j < columns; j += lanes) {
    V<F32> p0;
    V<F32> p1;
    V<F32> ds0;
    V<F32> ds1;
    even.at(j, p0, ds0);
    odd.at(j, p1, ds1);
    store_down(p0, p1, scratch.p_down + down, j);
    store_down(ds0, ds1, scratch.ds_down + down, j);
    store_along(ds0, along, j);
    store_along(ds1, along + words<Pair>(scratch.score_row), j);
    if (keep) {
      hn::StoreU(ds0, d, even.dscores + j);
      hn::StoreU(ds1, d, odd.dscores + j);
    }
  }
}

template <class Word>
void add_bias_gradient(const AttentionProblem& problem, const TileAt& at, const BackwardScratch<Word>& scratch,
                       const HeadsView& dbias) {
  for (std::int64_t i = 0; i < at.rows; ++i) {
    const float* ds = scratch.dscores + i * scratch.score_row;
    float* sum = dbias.repeated_at<float>(at.b, at.h, at.i + i) + at.j * dbias.column;
    const std::int64_t n = std::clamp<std::int64_t>(problem.visible(at.b, at.i + i) - at.j, 0, at.columns);
    if (dbias.column == 0) {
      float total = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        total += ds[j];
      }
      *sum += total;
    } else {
      for (std::int64_t j = 0; j < n; ++j) {
        sum[j] += ds[j];
      }
    }
  }
}

// Computes one tile: s = q kᵀ, p from s, dp = dout vᵀ, ds from p and dp; then dv += pᵀ dout, dk += dsᵀ q, dq += ds k.
template <class Word>
void backward_tile(const AttentionProblem& problem, const TileAt& at, const BackwardScratch<Word>& scratch,
                   const HeadsView& dbias, float* dq) {
  const std::int64_t query = at.i / problem.query_block * scratch.rows;  // in the scratch
  const std::int64_t rows = round_up(at.rows, per_word<Word>);
  const std::int64_t columns = whole_vectors(at.columns);
  const std::int64_t row = scratch.score_row;
  multiply(rows, scratch.key_row, scratch.q_rows + query * scratch.key_row, scratch.key_row, 1, scratch.k_transposed,
           columns, scratch.scores, row, false);
  multiply(rows, scratch.value_row, scratch.dout_rows + query * scratch.value_row, scratch.value_row, 1,
           scratch.v_transposed, columns, scratch.dscores, row, false);
  float factor = problem.scale * log2e;
  if (has_terms(problem, at)) {
    apply_terms(problem, at, scratch.scores, row);
    factor = log2e;
  }
  for (std::int64_t r = 0; r < rows; r += per_word<Word>) {
    if (problem.dropout > 0) {
      for (std::int64_t i = r; i < std::min(at.rows, r + per_word<Word>); ++i) {
        dropout_factors(problem, at, i, scratch.factors[i % per_word<Word>]);
      }
      tile_rows<true>(scratch, r, query + r, columns, factor, static_cast<bool>(dbias));
    } else {
      tile_rows<false>(scratch, r, query + r, columns, factor, static_cast<bool>(dbias));
    }
  }
  if constexpr (per_word<Word> == 2) {
    for (std::int64_t r = 0; r < at.rows && at.columns % 2 != 0; ++r) {  // clears what the padding left in the odd half
      scratch.ds_along[r * words<Word>(row) + at.columns / 2] &= 0xffffU;
    }
  }
  if (dbias) {
    add_bias_gradient(problem, at, scratch, dbias);
  }
  const std::int64_t depth = words<Word>(at.rows);
  const bool add = at.i > problem.first_query(at.b, at.j);
  multiply(at.columns, depth, scratch.p_down, 1, row, scratch.dout_columns + words<Word>(query) * scratch.value_dim,
           scratch.value_dim, scratch.dv, scratch.value_dim, add);
  multiply(at.columns, depth, scratch.ds_down, 1, row, scratch.q_columns + words<Word>(query) * scratch.dim,
           scratch.dim, scratch.dk, scratch.dim, add);
  multiply(at.rows, words<Word>(at.columns), scratch.ds_along, words<Word>(row), 1, scratch.k_columns, scratch.dim,
           dq + at.i * problem.dq_row(), problem.dq_row(), true);
}

template <class T>
void zero_rows(T* x, std::int64_t stride, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    std::fill_n(x + r * stride, columns, T(0.0F));
  }
}

// Computes one block of keys of one head: its dk and dv, which are zero for keys behind the length, and its addend to
// dq of the head.
template <class T, class Word>
void backward_keys(const AttentionProblem& problem, std::int64_t b, std::int64_t h, std::int64_t j,
                   const BackwardScratch<Word>& scratch, const HeadsView& dbias, float* dq) {
  const std::int64_t block = std::min(problem.key_block, problem.keys - j);
  TileAt at{b, h, problem.first_query(b, j), j, 0, std::clamp<std::int64_t>(problem.keys_of(b) - j, 0, block)};
  const std::int64_t padding = block - at.columns;
  zero_rows(problem.dk.at<T>(b, h, j + at.columns), problem.dk.row, padding, problem.own);
  zero_rows(problem.dv.at<T>(b, h, j + at.columns), problem.dv.row, padding, problem.value_dim);
  if (at.columns == 0) {
    return;
  }
  pack_keys<T>(problem, at, scratch);
  if (at.i >= problem.queries) {  // nobody sees these keys
    fill(scratch.dk, at.columns * scratch.dim, 0);
    fill(scratch.dv, at.columns * scratch.value_dim, 0);
  }
  for (; at.i < problem.queries; at.i += problem.query_block) {
    at.rows = std::min(problem.query_block, problem.queries - at.i);
    backward_tile(problem, at, scratch, dbias, dq);
  }
  write_rows(
      scratch.dk, scratch.dim, at.columns, problem.own, [&](std::int64_t) { return problem.scale; },
      problem.dk.at<T>(b, h, j), problem.dk.row);
  write_rows(
      scratch.dv, scratch.value_dim, at.columns, problem.value_dim, [](std::int64_t) { return 1.0F; },
      problem.dv.at<T>(b, h, j), problem.dv.row);
}

template <class T, class Word>
std::size_t backward_blocks(const AttentionProblem& problem, const BackwardPart& part, std::byte* memory) {
  Arena arena(memory);
  const BackwardScratch<Word> scratch(problem, arena);
  if (memory == nullptr) {
    return arena.used();
  }
  for (float* row : scratch.factors) {
    fill(row, scratch.score_row, 0);  // the padding is multiplied too
  }
  const std::int64_t blocks = problem.key_blocks();
  for (std::int64_t block = part.begin, packed = -1; block < part.end; ++block) {
    const std::int64_t head = block / blocks;
    const std::int64_t b = head / problem.heads, h = head % problem.heads;
    float* dq = part.dq_of(problem, head);
    if (head != packed) {
      pack_queries<T>(problem, b, h, scratch);
      fill(dq, problem.queries * problem.dq_row(), 0);
      packed = head;
    }
    backward_keys<T>(problem, b, h, block % blocks * problem.key_block, scratch, part.dbias, dq);
    if (block % blocks == blocks - 1 && part.begin <= head * blocks) {  // this share had the whole head
      const auto scale = [&](std::int64_t) { return problem.scale; };
      write_rows(dq, problem.dq_row(), problem.queries, problem.own, scale, problem.dq.at<T>(b, h, 0), problem.dq.row);
      if (problem.dq_extra) {
        write_rows(dq + problem.own, problem.dq_row(), problem.queries, problem.dim - problem.own, scale,
                   problem.dq_extra.at<T>(b, h, 0), problem.dq_extra.row);
      }
    }
  }
  return arena.used();
}

}  // namespace

std::size_t backward_part(const AttentionProblem& problem, const BackwardPart& part, std::byte* memory) {
#if HWY_TARGET <= HWY_AVX3
  if (problem.pairs) {
    return backward_blocks<bf16, Pair>(problem, part, memory);
  }
#endif
  return problem.is_bf16 ? backward_blocks<bf16, float>(problem, part, memory)
                         : backward_blocks<float, float>(problem, part, memory);
}

}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
HWY_EXPORT(backward_part);
std::size_t attention_backward_part(const AttentionProblem& problem, const BackwardPart& part, std::byte* memory) {
  return HWY_DYNAMIC_DISPATCH(backward_part)(problem, part, memory);
}
}  // namespace vitrail::kernels
#endif
