#include "vitrail/kernels/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include <hwy/targets.h>

#include "tests/support/golden.h"

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

// A random problem, its result and gradients by the kernel, and the same by the definition in double precision.
struct Case {
  Case(const Sizes& sizes, DType dtype, kernels::AttentionScores how, bool with_bias_gradient = false)
      : s(sizes), scores(std::move(how)) {
    const Shape queries{s.batch, s.heads, s.queries, s.dim};
    q = rounded(random_tensor(queries, 1), dtype);
    k = rounded(random_tensor({s.batch, s.heads, s.keys, s.dim}, 2), dtype);
    v = rounded(random_tensor({s.batch, s.heads, s.keys, s.value_dim}, 3), dtype);
    dout = rounded(random_tensor({s.batch, s.heads, s.queries, s.value_dim}, 4), dtype);
    out = Tensor::empty_like(dout);
    dq = Tensor::empty_like(q);
    dk = Tensor::empty_like(k);
    dv = Tensor::empty_like(v);
    for (const Tensor& written : {out, dq, dk, dv}) {
      written.fill(NAN);
    }
    const Tensor log_sum = Tensor::full({s.batch, s.heads, s.queries}, NAN);
    if (with_bias_gradient) {
      dbias = Tensor::zeros({s.batch, s.heads, s.queries, s.keys});
    }
    kernels::attention_forward(q, k, v, scores, out, log_sum);
    kernels::attention_backward(q, k, v, scores, out, log_sum, dout, dq, dk, dv, dbias);
    define();
  }

  void define() {
    expected_out = Tensor::zeros(out.shape());
    expected_dq = Tensor::zeros(q.shape());
    expected_dk = Tensor::zeros(k.shape());
    expected_dv = Tensor::zeros(v.shape());
    expected_dbias = Tensor::zeros({s.batch, s.heads, s.queries, s.keys});
    const std::vector<float> qs = q.values(), ks = k.values(), vs = v.values(), ds = dout.values();
    const std::vector<float> mask = scores.mask.defined() ? scores.mask.values() : std::vector<float>();
    const std::vector<float> bias = scores.bias.defined() ? scores.bias.values() : std::vector<float>();
    std::vector<double> p(static_cast<std::size_t>(s.keys)), dp(p.size()), kept(p.size());
    for (std::int64_t row = 0; row < s.batch * s.heads * s.queries; ++row) {
      const std::int64_t head = row / s.queries;
      const float* qi = qs.data() + row * s.dim;
      const float* doi = ds.data() + row * s.value_dim;
      double sum = 0;
      double max = -infinity;
      for (std::int64_t pass = 0; pass < 2; ++pass) {
        for (std::int64_t j = 0; j < s.keys; ++j) {
          const auto index = static_cast<std::size_t>(row * s.keys + j);
          double score = 0;
          for (std::int64_t c = 0; c < s.dim; ++c) {
            score += static_cast<double>(qi[c]) * ks[static_cast<std::size_t>((head * s.keys + j) * s.dim + c)];
          }
          score = score * scores.scale + (bias.empty() ? 0 : bias[index]);
          const bool hidden =
              (!mask.empty() && mask[index] == 0) || (scores.causal && j > row % s.queries + s.keys - s.queries);
          score = hidden ? -infinity : score;
          if (pass == 0) {
            max = std::max(max, score);
          } else {
            p[static_cast<std::size_t>(j)] = max == -infinity ? 0 : std::exp(score - max);
            sum += p[static_cast<std::size_t>(j)];
          }
        }
      }
      double delta = 0;
      for (std::int64_t j = 0; j < s.keys; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const auto index = static_cast<std::uint64_t>(row * s.keys + j);
        kept[at] = scores.dropout == 0                             ? 1
                   : scores.draws.uniform(index) >= scores.dropout ? 1 / (1 - scores.dropout)
                                                                   : 0;
        p[at] = sum == 0 ? 0 : p[at] / sum;
        dp[at] = 0;
        for (std::int64_t c = 0; c < s.value_dim; ++c) {
          const std::int64_t value = (head * s.keys + j) * s.value_dim + c;
          expected_out.data<float>()[row * s.value_dim + c] +=
              static_cast<float>(p[at] * kept[at] * vs[static_cast<std::size_t>(value)]);
          expected_dv.data<float>()[value] += static_cast<float>(p[at] * kept[at] * doi[c]);
          dp[at] += kept[at] * doi[c] * vs[static_cast<std::size_t>(value)];
        }
        delta += p[at] * dp[at];
      }
      for (std::int64_t j = 0; j < s.keys; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const double ds_ij = p[at] * (dp[at] - delta);
        expected_dbias.data<float>()[row * s.keys + j] = static_cast<float>(ds_ij);
        for (std::int64_t c = 0; c < s.dim; ++c) {
          const std::int64_t key = (head * s.keys + j) * s.dim + c;
          expected_dq.data<float>()[row * s.dim + c] +=
              static_cast<float>(scores.scale * ds_ij * ks[static_cast<std::size_t>(key)]);
          expected_dk.data<float>()[key] += static_cast<float>(scores.scale * ds_ij * qi[c]);
        }
      }
    }
  }

  // Everything written, and close to the definition: in the size of the largest element, and never less than 1.
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
    near("out", out, expected_out);
    near("dq", dq, expected_dq);
    near("dk", dk, expected_dk);
    near("dv", dv, expected_dv);
    if (dbias.defined()) {
      near("dbias", dbias, expected_dbias);
    }
  }

  Sizes s;
  kernels::AttentionScores scores;
  Tensor q, k, v, dout, out, dq, dk, dv, dbias;
  Tensor expected_out, expected_dq, expected_dk, expected_dv, expected_dbias;
};

// Every set of instructions that this machine can run, one after the other.
class AttentionKernel : public testing::TestWithParam<DType> {
 protected:
  template <class Function>
  static void on_every_target(Function function) {
    for (const std::int64_t target : {HWY_SCALAR, HWY_EMU128, HWY_SSE4, HWY_AVX2, HWY_AVX3, HWY_NEON}) {
      if ((hwy::SupportedTargets() & target) != 0) {
        hwy::SetSupportedTargetsForTest(target);
        function(std::string(name_of(GetParam())) + " on " + hwy::TargetName(target));
        hwy::SetSupportedTargetsForTest(0);
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(OfBothPrecisions, AttentionKernel, testing::Values(DType::f32, DType::bf16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(AttentionKernel, AgreesWithItsDefinitionAtOddSizes) {
  on_every_target([&](const std::string& target) {
    for (const Sizes& s : {Sizes{1, 1, 1, 1, 1, 1},
                           {2, 3, 2, 2, 16, 16},
                           {1, 2, 17, 17, 20, 20},
                           {2, 1, 65, 65, 64, 64},
                           {1, 1, 197, 197, 16, 16},
                           {1, 2, 97, 33, 80, 3},
                           {1, 1, 33, 97, 3, 80},
                           {1, 1, 5, 7, 128, 256},
                           {3, 1, 1, 50, 24, 24},
                           {3, 1, 50, 1, 24, 24},
                           {1, 1, 100, 700, 8, 8},
                           {1, 1, 300, 330, 8, 12}}) {
      Case(s, GetParam(), {.scale = 0.4F})
          .compare(target + Shape({s.batch, s.heads, s.queries, s.keys, s.dim, s.value_dim}).str());
    }
  });
}

TEST_P(AttentionKernel, AgreesWithItsDefinitionUnderMaskBiasAndDropout) {
  on_every_target([&](const std::string& target) {
    for (const Sizes& s : {Sizes{2, 2, 19, 23, 16, 16},
                           {1, 2, 101, 99, 9, 9},
                           {1, 1, 7, 531, 16, 16},
                           {1, 1, 531, 7, 16, 16},
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
      Case(s, GetParam(), {.scale = 0.4F, .mask = mask}).compare(target + " mask");
      Case(s, GetParam(), {.scale = 0.4F, .bias = bias}, true).compare(target + " bias");
      Case(s, GetParam(), {.scale = 0.4F, .bias = across}, true).compare(target + " transposed bias");
      Case(s, GetParam(), {.scale = 0.4F, .causal = true}).compare(target + " causal");
      Case(s, GetParam(), {.scale = 0.4F, .dropout = 0.3F, .draws = draws}).compare(target + " dropout");
      Case(s, GetParam(), {.scale = -0.4F, .causal = true, .mask = mask, .bias = bias, .dropout = 0.3F, .draws = draws},
           true)
          .compare(target + " all of them");
    }
  });
}

TEST_P(AttentionKernel, KeepsItsPaddingHarmlessWhereScoresAreVeryNegative) {
  // With an odd number of keys, the padding's score of 0 lies far above all others.
  on_every_target([&](const std::string& target) {
    for (const std::int64_t keys : {1, 3, 17}) {
      const Sizes s{1, 1, 5, keys, 4, 4};
      const Tensor bias = Tensor::full({1, 1, 5, keys}, -400);
      Case(s, GetParam(), {.scale = 0.4F, .bias = bias}, true).compare(target, 10);  // 577 in log₂, in f32
    }
  });
}

}  // namespace
}  // namespace vitrail
