// Attention whose heads share keys and values.
#include <vector>

#include "tests/ops/attention/attention_problem.h"
#include "tests/support/errors.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/shape/embedding.h"

namespace vitrail {
namespace {

using attention_test::as_bf16;
using attention_test::expect_equal;
using attention_test::Results;
using attention_test::run;
using test::error_of;
using test::expect_close;
using test::random_tensor;

// The heads 0 … G - 1 of [B, G, M, d], each `times` times in a row.
Tensor repeated(const Tensor& x, std::int64_t times) {
  std::vector<std::int64_t> heads;
  for (std::int64_t h = 0; h < x.size(1) * times; ++h) {
    heads.push_back(h / times);
  }
  return ops::index_select(x, 1, Tensor::from(heads, {std::ssize(heads)}));
}

TEST(GroupedAttention, EqualsThatOfRepeatedKeysAndValues) {
  for (const std::int64_t queries : {1, 5, 130}) {
    const Tensor q = random_tensor({2, 6, queries, 8}, 1), dout = random_tensor({2, 6, queries, 5}, 2);
    const Tensor k = random_tensor({2, 2, 140, 8}, 3), v = random_tensor({2, 2, 140, 5}, 4);
    for (const bool causal : {false, true}) {
      const ops::AttentionOptions options{.causal = causal, .bias = random_tensor({1, 6, queries, 140}, 5)};
      const auto compare = [&](const auto& as) {
        const Results shared = run(as(q), as(k), as(v), as(dout), options);
        const Results apart = run(as(q), repeated(as(k), 3), repeated(as(v), 3), as(dout), options);
        expect_equal(shared.out, apart.out);
        expect_equal(shared.dq, apart.dq);
        const auto summed = [](const Tensor& gradient) {
          return ops::sum(Tensor::from(gradient.values(), {2, 2, 3, 140, gradient.size(3)}), {2});
        };
        const double tolerance = shared.dk.dtype() == DType::f32 ? 1e-6 : 5e-3;
        expect_close(shared.dk, summed(apart.dk), tolerance);
        expect_close(shared.dv, summed(apart.dv), tolerance);
        expect_close(shared.dbias, apart.dbias, 1e-6);
        expect_equal(ops::attention_probabilities(as(q), as(k), options),
                     ops::attention_probabilities(as(q), repeated(as(k), 3), options));
      };
      compare([](const Tensor& x) { return x; });
      compare(as_bf16);
    }
  }
}

TEST(GroupedAttention, NeedsHeadsThatDivide) {
  const Tensor q = Tensor::zeros({1, 6, 2, 4});
  const auto error = [&](std::int64_t heads, const ops::AttentionOptions& options = {}) {
    const Tensor k = Tensor::zeros({1, heads, 3, 4});
    return error_of([&] { ops::attention(q, k, k, options); });
  };
  EXPECT_EQ(error(4), "attention: the 4 heads of k [1, 4, 3, 4] do not divide the 6 of q [1, 6, 2, 4]");
  EXPECT_EQ(error(2, {.q_extra = Tensor::zeros({1, 6, 2, 1}), .k_extra = Tensor::zeros({1, 2, 3, 1})}),
            "attention: with k_extra, k [1, 2, 3, 4] must have as many heads as q [1, 6, 2, 4]");
}

}  // namespace
}  // namespace vitrail
