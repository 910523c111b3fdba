#include "vitrail/kernels/attention.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/targets.h"

namespace vitrail {
namespace {

using test::random_tensor;

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor rounded(const Tensor& x, DType dtype) {
  Tensor y = Tensor::empty(x.shape(), dtype);
  visit(dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      y.data<T>()[i] = static_cast<T>(x.data<float>()[i]);
    }
  });
  return y;
}

struct Sizes {
  std::int64_t batch, heads, queries, keys, dim, value_dim;
};

// A random problem, its result and gradients by definition in double precision, and the same by the kernel.
struct Case {
  Case(const Sizes& sizes, DType dtype, kernels::AttentionScores how) : s(sizes), scores(std::move(how)) {
    q = rounded(random_tensor({s.batch, s.heads, s.queries, s.dim}, 1), dtype);
    k = rounded(random_tensor({s.batch, s.heads, s.keys, s.dim}, 2), dtype);
    v = rounded(random_tensor({s.batch, s.heads, s.keys, s.value_dim}, 3), dtype);
    dout = rounded(random_tensor({s.batch, s.heads, s.queries, s.value_dim}, 4), dtype);
    q_values = q.values();
    k_values = k.values();
    v_values = v.values();
    dout_values = dout.values();
    define();
  }

  static double value(const std::vector<float>& x, std::int64_t index) { return x[static_cast<std::size_t>(index)]; }

  // Score of query `row` (of all heads, counted through) and key j of its head; -∞ where it may not be seen.
  double score(std::int64_t row, std::int64_t j) const {
    const std::int64_t key = row / s.queries * s.keys + j;
    double sum = 0;
    for (std::int64_t c = 0; c < s.dim; ++c) {
      sum += value(q_values, row * s.dim + c) * value(k_values, key * s.dim + c);
    }
    const std::array<std::int64_t, 3> at{row / s.queries / s.heads, row / s.queries % s.heads, row % s.queries};
    const auto offset = [&](const Tensor& x) {
      return at[0] * x.stride(0) + at[1] * x.stride(1) + at[2] * x.stride(2) + j * x.stride(3);
    };
    sum *= scores.scale;
    if (scores.bias.defined()) {
      sum += scores.bias.data<float>()[offset(scores.bias)];
    }
    const bool hidden = (scores.causal && j > at[2] + s.keys - s.queries) ||
                        (scores.lengths.defined() && j >= scores.lengths.data<std::int64_t>()[at[0]]) ||
                        (scores.mask.defined() && !scores.mask.data<bool>()[offset(scores.mask)]);
    return hidden ? -infinity : sum;
  }

  std::vector<double> probabilities(std::int64_t row) const {
    std::vector<double> p(static_cast<std::size_t>(s.keys));
    double max = -infinity;
    for (std::int64_t j = 0; j < s.keys; ++j) {
      p[static_cast<std::size_t>(j)] = score(row, j);
      max = std::max(max, p[static_cast<std::size_t>(j)]);
    }
    double sum = 0;
    for (double& x : p) {
      x = max == -infinity ? 0 : std::exp(x - max);
      sum += x;
    }
    for (double& x : p) {
      x = sum == 0 ? 0 : x / sum;
    }
    return p;
  }

  void define() {
    expected_out = Tensor::zeros(dout.shape());
    expected_dq = Tensor::zeros(q.shape());
    expected_dk = Tensor::zeros(k.shape());
    expected_dv = Tensor::zeros(v.shape());
    expected_dbias = Tensor::zeros({s.batch, s.heads, s.queries, s.keys});
    const auto add = [](const Tensor& x, std::int64_t index, double term) {
      x.data<float>()[index] += static_cast<float>(term);
    };
    for (std::int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
      const std::vector<double> p = probabilities(row);
      std::vector<double> dp(p.size());
      double delta = 0;
      for (std::int64_t j = 0; j < s.keys; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const auto index = static_cast<std::uint64_t>(row * s.keys + j);
        const bool keep = scores.dropout == 0 || scores.draws.uniform(index) >= scores.dropout;
        const double kept = keep ? 1 / (1.0 - scores.dropout) : 0;
        for (std::int64_t c = 0; c < s.value_dim; ++c) {
          const std::int64_t from = (row / s.queries * s.keys + j) * s.value_dim + c;
          const std::int64_t to = row * s.value_dim + c;
          add(expected_out, to, p[at] * kept * value(v_values, from));
          add(expected_dv, from, p[at] * kept * value(dout_values, to));
          dp[at] += kept * value(dout_values, to) * value(v_values, from);
        }
        delta += p[at] * dp[at];
      }
      for (std::int64_t j = 0; j < s.keys; ++j) {
        const double ds = p[static_cast<std::size_t>(j)] * (dp[static_cast<std::size_t>(j)] - delta);
        add(expected_dbias, row * s.keys + j, ds);
        for (std::int64_t c = 0; c < s.dim; ++c) {
          const std::int64_t key = (row / s.queries * s.keys + j) * s.dim + c;
          add(expected_dq, row * s.dim + c, scores.scale * ds * value(k_values, key));
          add(expected_dk, key, scores.scale * ds * value(q_values, row * s.dim + c));
        }
      }
    }
  }

  // Runs the kernel: everything must be written, and be as defined to within the size of the largest element (1 at
  // least).
  void compare(const std::string& what, double looser = 1) const {
    const double tolerance = looser * (q.dtype() == DType::bf16 ? 2e-2 : 1e-5);
    const auto near = [&](const char* part, const Tensor& actual, const Tensor& expected) {
      const std::vector<float> a = actual.values(), e = expected.values();
      double difference = 0;
      double size = 1;
      for (std::size_t i = 0; i < a.size(); ++i) {
        difference = std::isfinite(a[i]) ? std::max<double>(difference, std::abs(a[i] - e[i])) : infinity;
        size = std::max<double>(size, std::abs(e[i]));
      }
      EXPECT_LE(difference, tolerance * size) << what << ": " << part;
    };
    const auto unwritten = [](const Tensor& like) { return Tensor::full(like.shape(), NAN, like.dtype()); };
    const Tensor out = unwritten(dout), dq = unwritten(q), dk = unwritten(k), dv = unwritten(v);
    const Tensor log_sum = Tensor::full({s.batch, s.heads, s.queries}, NAN);
    const Tensor dbias = scores.bias.defined() ? Tensor::zeros(scores.bias.shape()) : Tensor();
    kernels::attention_forward(q, k, v, scores, out, log_sum);
    kernels::attention_backward(q, k, v, scores, out, log_sum, dout, {dq, dk, dv, {}, dbias});
    near("out", out, expected_out);
    near("dq", dq, expected_dq);
    near("dk", dk, expected_dk);
    near("dv", dv, expected_dv);
    if (dbias.defined()) {
      near("dbias", dbias, expected_dbias);
    }
    if (s.dim > 1) {  // the last columns in tensors of their own
      compare_in_two_parts(what, s.dim / 2, out, dq, dk, dv);
      compare_in_two_parts(what, s.dim - 1, out, dq, dk, dv);
    }
  }

  void compare_in_two_parts(const std::string& what, std::int64_t own, const Tensor& out, const Tensor& dq,
                            const Tensor& dk, const Tensor& dv) const {
    const auto first = [own](const Tensor& x) { return x.narrow(3, 0, own); };
    const auto rest = [own](const Tensor& x) { return x.narrow(3, own, x.size(3) - own); };
    kernels::AttentionScores parts = scores;
    parts.q_extra = rest(q).contiguous();
    parts.k_extra = rest(k).contiguous();
    const Tensor again = Tensor::empty_like(out), again_dq = Tensor::empty_like(dq), again_dv = Tensor::empty_like(dv);
    const Tensor again_dk = first(dk).contiguous().clone();
    const Tensor log_sum = Tensor::empty({s.batch, s.heads, s.queries});
    const Tensor dbias = scores.bias.defined() ? Tensor::zeros(scores.bias.shape()) : Tensor();
    kernels::attention_forward(first(q), first(k), v, parts, again, log_sum);
    kernels::attention_backward(
        first(q), first(k), v, parts, again, log_sum, dout,
        {.dq = first(again_dq), .dk = again_dk, .dv = again_dv, .dq_extra = rest(again_dq), .dbias = dbias});
    EXPECT_EQ(again.values(), out.values()) << what << ": out in two parts of " << own;
    EXPECT_EQ(again_dq.values(), dq.values()) << what << ": dq in two parts of " << own;
    EXPECT_EQ(again_dk.values(), first(dk).values()) << what << ": dk in two parts of " << own;
    EXPECT_EQ(again_dv.values(), dv.values()) << what << ": dv in two parts of " << own;
  }

  Sizes s;
  kernels::AttentionScores scores;
  Tensor q, k, v, dout;
  std::vector<float> q_values, k_values, v_values, dout_values;
  Tensor expected_out, expected_dq, expected_dk, expected_dv, expected_dbias;
};

class AttentionKernel : public testing::TestWithParam<DType> {
 protected:
  // On every set of instructions that this machine can run, one after the other.
  static void compare(const Sizes& s, kernels::AttentionScores scores, const std::string& what, double looser = 1) {
    const Case problem(s, GetParam(), std::move(scores));
    test::for_each_target([&](const std::string& target) {
      const Shape shape{s.batch, s.heads, s.queries, s.keys, s.dim, s.value_dim};
      problem.compare(what + " on " + target + " at " + shape.str(), looser);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(OfBothPrecisions, AttentionKernel, testing::Values(DType::f32, DType::bf16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(AttentionKernel, AgreesWithItsDefinitionAtOddSizes) {
  for (const Sizes& s : {Sizes{1, 1, 1, 1, 1, 1},
                         {2, 3, 2, 2, 16, 16},
                         {1, 2, 17, 17, 20, 20},
                         {1, 1, 65, 65, 64, 64},
                         {1, 1, 197, 197, 16, 16},
                         {1, 2, 97, 33, 80, 3},
                         {1, 1, 33, 97, 3, 80},
                         {1, 1, 5, 7, 128, 256},
                         {3, 1, 1, 50, 24, 24},
                         {3, 1, 50, 1, 24, 24},
                         {1, 1, 100, 700, 3, 3},
                         {1, 3, 120, 130, 2, 5}}) {
    compare(s, {.scale = 0.4F}, "attention");
  }
}

TEST_P(AttentionKernel, AgreesWithItsDefinitionUnderMaskBiasAndDropout) {
  for (const Sizes& s : {Sizes{2, 2, 19, 23, 16, 16},
                         {1, 2, 101, 99, 9, 9},
                         {1, 1, 7, 531, 6, 6},
                         {1, 1, 531, 7, 6, 6},
                         {1, 1, 3, 3, 5, 5}}) {
    const Shape full{s.batch, s.heads, s.queries, s.keys};
    Tensor mask = Tensor::empty(full, DType::boolean);
    const Philox coin(3, 3);
    for (std::int64_t i = 0; i < full.numel(); ++i) {
      mask.data<bool>()[i] = coin.uniform(static_cast<std::uint64_t>(i)) < 0.5F;
    }
    mask.select(2, s.queries - 1).fill(0);
    const Tensor bias = random_tensor(full, 5);
    const Tensor across = random_tensor({s.batch, s.heads, s.keys, s.queries}, 6).transpose(2, 3);
    const Philox draws(8, 9);
    compare(s, {.scale = 0.4F, .mask = mask}, "mask");
    compare(s, {.scale = 0.4F, .bias = bias}, "bias");
    compare(s, {.scale = 0.4F, .bias = across}, "transposed bias");
    compare(s, {.scale = 0.4F, .causal = true}, "causal");
    compare(s, {.scale = 0.4F, .dropout = 0.3F, .draws = draws}, "dropout");
    compare(s, {.scale = -0.4F, .causal = true, .mask = mask, .bias = bias, .dropout = 0.3F, .draws = draws},
            "all of them");
  }
}

TEST_P(AttentionKernel, AgreesWithItsDefinitionWhereSamplesHaveLengths) {
  for (const Sizes& s : {Sizes{3, 2, 19, 23, 16, 16},
                         {3, 1, 150, 700, 3, 3},  // several blocks of keys, some of them wholly padding
                         {3, 2, 5, 531, 6, 6},
                         {3, 1, 130, 17, 2, 5},
                         {3, 1, 4, 4, 1, 1}}) {
    const Shape full{s.batch, s.heads, s.queries, s.keys};
    Tensor mask = Tensor::empty(full, DType::boolean);
    const Philox coin(3, 3);
    for (std::int64_t i = 0; i < full.numel(); ++i) {
      mask.data<bool>()[i] = coin.uniform(static_cast<std::uint64_t>(i)) < 0.5F;
    }
    const Tensor bias = random_tensor(full, 5);
    const Philox draws(8, 9);
    for (const Tensor& lengths : {Tensor::from<std::int64_t>({s.keys, 1, (s.keys + 1) / 2}, {3}),
                                  Tensor::from<std::int64_t>({s.keys - 1, s.keys / 3 + 1, 1}, {3})}) {
      compare(s, {.scale = 0.4F, .lengths = lengths}, "lengths");
      compare(s, {.scale = 0.4F, .causal = true, .lengths = lengths}, "causal lengths");
      compare(s,
              {.scale = -0.4F,
               .causal = true,
               .lengths = lengths,
               .mask = mask,
               .bias = bias,
               .dropout = 0.3F,
               .draws = draws},
              "lengths and all else", 2);  // of one key alone 700 gradients cancel, up to the rounding of `out`
    }
  }
}

TEST_P(AttentionKernel, KeepsItsPaddingHarmlessWhereScoresAreVeryNegative) {
  // With an odd number of keys, the padding's score of 0 lies far above all others.
  for (const std::int64_t keys : {1, 3, 17}) {
    const Tensor bias = Tensor::full({1, 1, 5, keys}, -400);
    compare({1, 1, 5, keys, 4, 4}, {.scale = 0.4F, .bias = bias}, "very negative", 10);  // 577 in log₂, in f32
  }
}

}  // namespace
}  // namespace vitrail
