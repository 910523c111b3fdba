#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vitrail/kernels/cpu/attention/cached_attention.cpp"
#include "vitrail/kernels/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrail/kernels/cpu/attention/attention_tile.h"
#include "vitrail/kernels/cpu/simd/simd.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

#ifndef VITRAIL_KERNELS_CACHED_ATTENTION_ONCE
#define VITRAIL_KERNELS_CACHED_ATTENTION_ONCE
namespace vitrail::kernels {
namespace {

// So many keys are worked on at once: their scores stay in the nearest cache.
constexpr std::int64_t keys_at_once = 64;

// The operands, sizes and options of one call.
struct CachedProblem {
  std::int64_t batch, heads, groups, queries, dim, value_dim;
  HeadsView q, keys, values, key_scales, value_scales, out;
  bool is_bf16;  // q and out
  DType cached;
  std::int64_t most_keys;
  const std::int64_t* lengths;
  const std::int32_t* slots;
  std::int64_t slot_row;
  float scale;
  bool causal;
  std::int64_t window;

  // The queries that share keys, of all heads of a group: row r is query r mod `queries` of head r / `queries`.
  std::int64_t rows() const { return heads / groups * queries; }
  std::int64_t keys_of(std::int64_t b) const { return lengths != nullptr ? lengths[b] : most_keys; }
  // The keys [first, end) that row r of sample b sees.
  std::int64_t end(std::int64_t b, std::int64_t r) const {
    return causal ? keys_of(b) - (queries - 1 - r % queries) : keys_of(b);
  }
  std::int64_t first(std::int64_t b, std::int64_t r) const {
    return window > 0 ? std::max<std::int64_t>(0, end(b, r) - window) : 0;
  }
  std::int64_t slot(std::int64_t b, std::int64_t j) const { return slots != nullptr ? slots[b * slot_row + j] : j; }
  // The scratch memory for one group of heads, in floats.
  std::int64_t scratch() const { return rows() * (dim + value_dim + keys_at_once + 2) + 2 * keys_at_once; }
};

}  // namespace
}  // namespace vitrail::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace vitrail::kernels::HWY_NAMESPACE {
namespace {

constexpr float lowest_score = -std::numeric_limits<float>::infinity();

template <class T, class Part>
HWY_INLINE V<F32> load_cached(F32 d, const T* p, Part part) {
  return load(d, p, part);
}
HWY_INLINE V<F32> load_cached(F32 d, const std::int8_t* p, Whole) {
  const hn::Rebind<std::int8_t, F32> d8;
  const hn::RebindToSigned<F32> d32;
  return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, p)));
}
HWY_INLINE V<F32> load_cached(F32 d, const std::int8_t* p, std::int64_t count) {
  HWY_ALIGN std::int8_t lanes[hn::MaxLanes(d)] = {};
  std::copy_n(p, count, lanes);
  return load_cached(d, lanes, Whole{});
}

// A block of keys and values of one sample and group, and the memory to work in.
template <class T>
struct CachedBlock {
  std::int64_t begin, count;
  const T* keys[keys_at_once];
  const T* values[keys_at_once];
  float* key_scales;  // of i8
  float* value_scales;
};

// The scores of kRows rows of q with all keys of the block.
template <class T, int kRows>
void block_scores(const CachedBlock<T>& block, const float* q, std::int64_t dim, float* scores) {
  const F32 d;
  for (std::int64_t j = 0; j < block.count; ++j) {
    const T* const key = block.keys[j];
    V<F32> sums[kRows];
    for (auto& sum : sums) {
      sum = hn::Zero(d);
    }
    for_lanes(d, dim, [&](std::int64_t c, auto part) HWY_ATTR {
      const auto k = load_cached(d, key + c, part);
      for (int r = 0; r < kRows; ++r) {
        sums[r] = hn::MulAdd(load(d, q + r * dim + c, part), k, sums[r]);
      }
    });
    const float factor = std::is_same_v<T, std::int8_t> ? block.key_scales[j] : 1.0F;
    for (int r = 0; r < kRows; ++r) {
      scores[r * keys_at_once + j] = sum_of(d, sums[r]) * factor;
    }
  }
}

// Adds the values of the block, by their probabilities, to kVectors vectors of kRows rows of the output, from column c
// on, of which `part` is Whole, or for one vector how many lanes are used.
template <class T, int kRows, int kVectors, class Part>
HWY_INLINE void add_columns(const CachedBlock<T>& block, const float* probabilities, std::int64_t width, float* out,
                            std::int64_t c, Part part) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V<F32> sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = load(d, out + r * width + c + v * lanes, part);
    }
  }
  for (std::int64_t j = 0; j < block.count; ++j) {
    V<F32> values[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      values[v] = load_cached(d, block.values[j] + c + v * lanes, part);
    }
    for (int r = 0; r < kRows; ++r) {
      const auto p = hn::Set(d, probabilities[r * keys_at_once + j]);
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::MulAdd(p, values[v], sums[r][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      store(sums[r][v], d, out + r * width + c + v * lanes, part);
    }
  }
}

// Adds the values of the block, by their probabilities, to kRows rows of the output.
template <class T, int kRows>
void add_values(const CachedBlock<T>& block, const float* probabilities, std::int64_t width, float* out) {
  const F32 d;
  constexpr int together = 4;  // sums that do not wait for each other
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t c = 0;
  for (; c + together * lanes <= width; c += together * lanes) {
    add_columns<T, kRows, together>(block, probabilities, width, out, c, Whole{});
  }
  for_lanes(d, width - c, [&](std::int64_t rest, auto part) HWY_ATTR {
    add_columns<T, kRows, 1>(block, probabilities, width, out, c + rest, part);
  });
}

// Calls work(row, std::integral_constant<int, n>) for n = 4 rows at a time, and for the rest one by one.
template <class Work>
HWY_INLINE void in_fours(std::int64_t rows, Work&& work) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    work(r, std::integral_constant<int, 4>());
  }
  for (; r < rows; ++r) {
    work(r, std::integral_constant<int, 1>());
  }
}

// Turns a row of scores into e^(score - max), and adds them to `sum` (Milakov and Gimelshein 2018): `out` and `sum`
// shrink if the maximum grows.
HWY_INLINE void soften(float* scores, std::int64_t count, float& max, float& sum, float* out, std::int64_t width) {
  const F32 d;
  const float before = max;
  max = std::max(before, max_over(d, scores, count));
  const float shift = max == lowest_score ? 0 : max;
  if (before < max && before > lowest_score) {
    const float shrink = std::exp(before - max);
    sum *= shrink;
    for_lanes(d, width, [&](std::int64_t c, auto part) HWY_ATTR {
      store(hn::Mul(load(d, out + c, part), hn::Set(d, shrink)), d, out + c, part);
    });
  }
  sum += sum_over(d, count, [&](V<F32> total, std::int64_t j, auto part) HWY_ATTR {
    const auto p = exp(d, hn::Sub(load(d, scores + j, part), hn::Set(d, shift)));
    store(p, d, scores + j, part);
    return hn::Add(total, first_lanes(d, p, hn::Zero(d), part));
  });
}

// Attention of all rows of group g of sample b.
template <class T>
void attend_group(const CachedProblem& p, std::int64_t b, std::int64_t g, float* memory) {
  const F32 d;
  const std::int64_t rows = p.rows();
  float* const q = memory;
  float* const out = q + rows * p.dim;
  float* const scores = out + rows * p.value_dim;
  float* const max = scores + rows * keys_at_once;
  float* const sum = max + rows;
  CachedBlock<T> block;
  block.key_scales = sum + rows;
  block.value_scales = block.key_scales + keys_at_once;
  const auto head_of = [&](std::int64_t r) { return g * (p.heads / p.groups) + r / p.queries; };
  std::int64_t begin = p.keys_of(b);
  std::int64_t end = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    visit_floating(p.is_bf16 ? DType::bf16 : DType::f32, [&]<class Q>(Q) HWY_ATTR {
      const Q* const from = p.q.at<Q>(b, head_of(r), r % p.queries);
      for_lanes(d, p.dim, [&](std::int64_t c, auto part) HWY_ATTR {
        store(hn::Mul(load(d, from + c, part), hn::Set(d, p.scale)), d, q + r * p.dim + c, part);
      });
    });
    max[r] = lowest_score;
    sum[r] = 0;
    begin = std::min(begin, p.first(b, r));
    end = std::max(end, p.end(b, r));
  }
  std::fill(out, out + rows * p.value_dim, 0.0F);
  const T* const keys = p.keys.at<const T>(b, g, 0);
  const T* const values = p.values.at<const T>(b, g, 0);
  for (block.begin = begin; block.begin < end; block.begin += keys_at_once) {
    block.count = std::min(keys_at_once, end - block.begin);
    for (std::int64_t j = 0; j < block.count; ++j) {
      const std::int64_t slot = p.slot(b, block.begin + j);
      block.keys[j] = keys + slot * p.keys.row;
      block.values[j] = values + slot * p.values.row;
      if constexpr (std::is_same_v<T, std::int8_t>) {
        block.key_scales[j] = *p.key_scales.at<const float>(b, g, slot);
        block.value_scales[j] = *p.value_scales.at<const float>(b, g, slot);
      }
    }
    in_fours(rows, [&](std::int64_t r, auto count) HWY_ATTR {
      block_scores<T, decltype(count)::value>(block, q + r * p.dim, p.dim, scores + r * keys_at_once);
    });
    for (std::int64_t r = 0; r < rows; ++r) {
      float* const row = scores + r * keys_at_once;
      const std::int64_t first = std::clamp<std::int64_t>(p.first(b, r) - block.begin, 0, block.count);
      const std::int64_t last = std::clamp<std::int64_t>(p.end(b, r) - block.begin, first, block.count);
      std::fill(row, row + first, lowest_score);
      std::fill(row + last, row + block.count, lowest_score);
      soften(row, block.count, max[r], sum[r], out + r * p.value_dim, p.value_dim);
      if constexpr (std::is_same_v<T, std::int8_t>) {
        for (std::int64_t j = 0; j < block.count; ++j) {
          row[j] *= block.value_scales[j];
        }
      }
    }
    in_fours(rows, [&](std::int64_t r, auto count) HWY_ATTR {
      add_values<T, decltype(count)::value>(block, scores + r * keys_at_once, p.value_dim, out + r * p.value_dim);
    });
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const float factor = sum[r] > 0 ? 1 / sum[r] : (sum[r] == 0 ? 0 : sum[r]);  // NaN stays NaN
    visit_floating(p.is_bf16 ? DType::bf16 : DType::f32, [&]<class Q>(Q) HWY_ATTR {
      Q* const to = p.out.at<Q>(b, head_of(r), r % p.queries);
      for_lanes(d, p.value_dim, [&](std::int64_t c, auto part) HWY_ATTR {
        store(hn::Mul(load(d, out + r * p.value_dim + c, part), hn::Set(d, factor)), d, to + c, part);
      });
    });
  }
}

// The tasks [begin, end): group by group, and within it sample by sample, since beams share much of their keys.
void cached_attention_part(const CachedProblem& p, std::int64_t begin, std::int64_t end, float* memory) {
  for (std::int64_t task = begin; task < end; ++task) {
    const std::int64_t b = task % p.batch;
    const std::int64_t g = task / p.batch;
    if (p.cached == DType::i8) {
      attend_group<std::int8_t>(p, b, g, memory);
    } else {
      visit_floating(p.cached, [&]<class T>(T) HWY_ATTR { attend_group<T>(p, b, g, memory); });
    }
  }
}

}  // namespace
}  // namespace vitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vitrail::kernels {
namespace {
HWY_EXPORT(cached_attention_part);

// The numbers that a thread should read at least.
constexpr std::int64_t least_cached_work = 1 << 16;

HeadsView scales_view(const CachedRows& rows) {
  return rows.scales.defined() ? HeadsView(rows.scales.unsqueeze(3)) : HeadsView();
}

}  // namespace

void cached_attention(const Tensor& q, const CachedRows& keys, const CachedRows& values, const CachedScores& scores,
                      const Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  CachedProblem p{};
  p.batch = q.size(0);
  p.heads = q.size(1);
  p.groups = keys.rows.size(1);
  p.queries = q.size(2);
  p.dim = q.size(3);
  p.value_dim = values.rows.size(3);
  p.q = HeadsView(q);
  p.keys = HeadsView(keys.rows);
  p.values = HeadsView(values.rows);
  p.key_scales = scales_view(keys);
  p.value_scales = scales_view(values);
  p.out = HeadsView(out);
  p.is_bf16 = q.dtype() == DType::bf16;
  p.cached = keys.rows.dtype();
  p.most_keys = keys.rows.size(2);
  p.lengths = scores.lengths.defined() ? scores.lengths.data<std::int64_t>() : nullptr;
  p.slots = scores.slots.defined() ? scores.slots.data<std::int32_t>() : nullptr;
  p.slot_row = scores.slots.defined() ? scores.slots.size(1) : 0;
  p.scale = scores.scale;
  p.causal = scores.causal;
  p.window = scores.window;
  std::int64_t all_keys = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    all_keys += p.keys_of(b);
  }
  const std::int64_t width = p.dim + p.value_dim;
  Profile::flops(2.0 * static_cast<double>(all_keys * p.heads * p.queries) * static_cast<double>(width));
  Profile::traffic(all_keys * p.groups * width, p.cached, 1);
  const std::int64_t tasks = p.batch * p.groups;
  const std::int64_t of_task = std::max<std::int64_t>(1, all_keys / p.batch * width * p.rows());
  const std::int64_t grain = least_cached_work / of_task + 1;
  const std::int64_t bytes = p.scratch() * static_cast<std::int64_t>(sizeof(float));
  const Storage memory(static_cast<std::size_t>(bytes * threads_for(tasks, grain)));
  parallel_for(tasks, grain, [&](std::int64_t begin, std::int64_t end, int part) {
    HWY_DYNAMIC_DISPATCH(cached_attention_part)
    (p, begin, end, reinterpret_cast<float*>(memory.data() + part * bytes));
  });
}

}  // namespace vitrail::kernels
#endif
