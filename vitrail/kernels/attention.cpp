#include "vitrail/kernels/attention.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace vitrail::kernels {
namespace {

constexpr float log2e = std::numbers::log2e_v<float>;
constexpr float infinity = std::numeric_limits<float>::infinity();

template <class T>
T* row(const Tensor& x, std::int64_t b, std::int64_t h, std::int64_t i) {
  return x.data<T>() + b * x.stride(0) + h * x.stride(1) + i * x.stride(2);
}

// Scores of query i of head (b, h), in units of log₂.
template <class T>
void score_row(const Tensor& q, const Tensor& k, const AttentionScores& scores, std::int64_t b, std::int64_t h,
               std::int64_t i, std::vector<float>& s) {
  const std::int64_t keys = k.size(2);
  const T* qi = row<T>(q, b, h, i);
  for (std::int64_t j = 0; j < keys; ++j) {
    const T* kj = row<T>(k, b, h, j);
    float sum = 0;
    for (std::int64_t c = 0; c < q.size(3); ++c) {
      sum += static_cast<float>(qi[c]) * static_cast<float>(kj[c]);
    }
    sum *= scores.scale;
    if (scores.bias.defined()) {
      sum += row<float>(scores.bias, b, h, i)[j * scores.bias.stride(3)];
    }
    const bool hidden = (scores.causal && j > i + keys - q.size(2)) ||
                        (scores.mask.defined() && !row<bool>(scores.mask, b, h, i)[j * scores.mask.stride(3)]);
    s[static_cast<std::size_t>(j)] = hidden ? -infinity : sum * log2e;
  }
}

float keep(const AttentionScores& scores, std::int64_t index) {
  if (scores.dropout == 0) {
    return 1;
  }
  return scores.draws.uniform(static_cast<std::uint64_t>(index)) >= scores.dropout ? 1 / (1 - scores.dropout) : 0;
}

float log_sum_of(const std::vector<float>& s) {
  float max = -infinity;
  for (const float x : s) {
    max = std::max(max, x);
  }
  if (max == -infinity) {
    return infinity;
  }
  float sum = 0;
  for (const float x : s) {
    sum += std::exp2(x - max);
  }
  return max + std::log2(sum);
}

template <class T>
void forward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionScores& scores, const Tensor& out,
             const Tensor& log_sum) {
  const std::int64_t heads = q.size(1), queries = q.size(2), keys = k.size(2), e = v.size(3);
#pragma omp parallel for schedule(static)
  for (std::int64_t task = 0; task < q.size(0) * heads * queries; ++task) {
    const std::int64_t i = task % queries, h = task / queries % heads, b = task / queries / heads;
    std::vector<float> s(static_cast<std::size_t>(keys));
    std::vector<float> o(static_cast<std::size_t>(e));
    score_row<T>(q, k, scores, b, h, i, s);
    const float l = log_sum_of(s);
    for (std::int64_t j = 0; j < keys; ++j) {
      const float p = std::exp2(s[static_cast<std::size_t>(j)] - l) * keep(scores, task * keys + j);
      const T* vj = row<T>(v, b, h, j);
      for (std::int64_t c = 0; c < e; ++c) {
        o[static_cast<std::size_t>(c)] += p * static_cast<float>(vj[c]);
      }
    }
    for (std::int64_t c = 0; c < e; ++c) {
      row<T>(out, b, h, i)[c] = T(o[static_cast<std::size_t>(c)]);
    }
    if (log_sum.defined()) {
      log_sum.data<float>()[task] = l;
    }
  }
}

template <class T>
void backward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionScores& scores, const Tensor& out,
              const Tensor& log_sum, const Tensor& dout, const Tensor& dq, const Tensor& dk, const Tensor& dv,
              const Tensor& dbias) {
  const std::int64_t heads = q.size(1), queries = q.size(2), keys = k.size(2), d = q.size(3), e = v.size(3);
#pragma omp parallel for schedule(static) if (!dbias.defined())
  for (std::int64_t task = 0; task < q.size(0) * heads; ++task) {
    const std::int64_t h = task % heads, b = task / heads;
    std::vector<float> s(static_cast<std::size_t>(keys));
    std::vector<float> dki(static_cast<std::size_t>(keys * d));
    std::vector<float> dvi(static_cast<std::size_t>(keys * e));
    for (std::int64_t i = 0; i < queries; ++i) {
      std::vector<float> dqi(static_cast<std::size_t>(d));
      score_row<T>(q, k, scores, b, h, i, s);
      const T* doi = row<T>(dout, b, h, i);
      float delta = 0;
      for (std::int64_t c = 0; c < e; ++c) {
        delta += static_cast<float>(doi[c]) * static_cast<float>(row<T>(out, b, h, i)[c]);
      }
      for (std::int64_t j = 0; j < keys; ++j) {
        const float p = std::exp2(s[static_cast<std::size_t>(j)] - log_sum.data<float>()[task * queries + i]);
        const float kept = keep(scores, (task * queries + i) * keys + j);
        const T* vj = row<T>(v, b, h, j);
        float dp = 0;
        for (std::int64_t c = 0; c < e; ++c) {
          dp += static_cast<float>(doi[c]) * static_cast<float>(vj[c]);
          dvi[static_cast<std::size_t>(j * e + c)] += p * kept * static_cast<float>(doi[c]);
        }
        const float ds = p * (dp * kept - delta);
        for (std::int64_t c = 0; c < d; ++c) {
          dqi[static_cast<std::size_t>(c)] += ds * scores.scale * static_cast<float>(row<T>(k, b, h, j)[c]);
          dki[static_cast<std::size_t>(j * d + c)] += ds * scores.scale * static_cast<float>(row<T>(q, b, h, i)[c]);
        }
        if (dbias.defined()) {
          const Tensor full = dbias.expand({q.size(0), heads, queries, keys});
          row<float>(full, b, h, i)[j * full.stride(3)] += ds;
        }
      }
      for (std::int64_t c = 0; c < d; ++c) {
        row<T>(dq, b, h, i)[c] = T(dqi[static_cast<std::size_t>(c)]);
      }
    }
    for (std::int64_t j = 0; j < keys; ++j) {
      for (std::int64_t c = 0; c < d; ++c) {
        row<T>(dk, b, h, j)[c] = T(dki[static_cast<std::size_t>(j * d + c)]);
      }
      for (std::int64_t c = 0; c < e; ++c) {
        row<T>(dv, b, h, j)[c] = T(dvi[static_cast<std::size_t>(j * e + c)]);
      }
    }
  }
}

}  // namespace

void attention_forward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionScores& scores,
                       const Tensor& out, const Tensor& log_sum) {
  q.dtype() == DType::f32 ? forward<float>(q, k, v, scores, out, log_sum)
                          : forward<bf16>(q, k, v, scores, out, log_sum);
}

void attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionScores& scores,
                        const Tensor& out, const Tensor& log_sum, const Tensor& dout, const Tensor& dq,
                        const Tensor& dk, const Tensor& dv, const Tensor& dbias) {
  q.dtype() == DType::f32 ? backward<float>(q, k, v, scores, out, log_sum, dout, dq, dk, dv, dbias)
                          : backward<bf16>(q, k, v, scores, out, log_sum, dout, dq, dk, dv, dbias);
}

void attention_probabilities(const Tensor& q, const Tensor& k, const AttentionScores& scores,
                             const Tensor& probabilities) {
  const std::int64_t heads = q.size(1), queries = q.size(2), keys = k.size(2);
#pragma omp parallel for schedule(static)
  for (std::int64_t task = 0; task < q.size(0) * heads * queries; ++task) {
    const std::int64_t i = task % queries, h = task / queries % heads, b = task / queries / heads;
    std::vector<float> s(static_cast<std::size_t>(keys));
    q.dtype() == DType::f32 ? score_row<float>(q, k, scores, b, h, i, s) : score_row<bf16>(q, k, scores, b, h, i, s);
    const float l = log_sum_of(s);
    for (std::int64_t j = 0; j < keys; ++j) {
      probabilities.data<float>()[task * keys + j] = std::exp2(s[static_cast<std::size_t>(j)] - l);
    }
  }
}

}  // namespace vitrail::kernels
