// Attention with biases by the distance of keys to queries.
#include <algorithm>
#include <vector>

#include "tests/ops/attention/attention_problem.h"
#include "tests/support/errors.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail {
namespace {

using attention_test::as_bf16;
using attention_test::leaf;
using attention_test::lengths_of;
using attention_test::Problem;
using attention_test::Results;
using ops::AttentionOptions;
using test::error_of;
using test::expect_close;
using test::random_tensor;

// The scores [1, H, N, M] that a bias by distance stands for.
Tensor as_matrix(const Tensor& distances, std::int64_t queries, std::int64_t keys) {
  const std::int64_t heads = distances.size(0);
  const std::int64_t center = distances.size(1) / 2;
  const Tensor bias = Tensor::empty({1, heads, queries, keys});
  float* out = bias.data<float>();
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) {
        *out++ = distances.data<float>()[h * distances.size(1) + center + j - i - (keys - queries)];
      }
    }
  }
  return bias;
}

// The gradient of the distances, by that of the matrix.
Tensor by_distance(const Tensor& matrix, const Shape& shape) {
  const std::int64_t queries = matrix.size(2);
  const std::int64_t keys = matrix.size(3);
  const Tensor sum = Tensor::zeros(shape);
  const float* in = matrix.data<float>();
  for (std::int64_t h = 0; h < shape[0]; ++h) {
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) {
        sum.data<float>()[h * shape[1] + shape[1] / 2 + j - i - (keys - queries)] += *in++;
      }
    }
  }
  return sum;
}

struct WithDistances {
  Results results;
  Tensor gradient;
};

WithDistances run_with(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& dout, const Tensor& distances,
                       AttentionOptions options) {
  const Tensor ql = leaf(q.detach()), kl = leaf(k.detach()), vl = leaf(v.detach()), dl = leaf(distances.detach());
  options.distance_bias = dl;
  autograd::Tape tape;
  const Tensor out = ops::attention(ql, kl, vl, options);
  tape.backward(out, dout);
  return {{out, autograd::grad(ql), autograd::grad(kl), autograd::grad(vl), {}}, autograd::grad(dl)};
}

TEST(AttentionByDistance, IsThatWithTheMatrixOfBiases) {
  const Tensor distances = random_tensor({3, 2 * 340 + 1}, 7);
  for (const auto& [queries, keys] : {std::pair<std::int64_t, std::int64_t>{150, 150}, {1, 60}, {5, 341}, {70, 20}}) {
    const Problem problem(2, 3, queries, keys, 16, 24);
    for (const bool causal : {false, true}) {
      if (causal && queries > keys) {
        continue;
      }
      AttentionOptions options{.causal = causal};
      if (!causal) {
        options.lengths = lengths_of({keys, (keys + 1) / 2});
      }
      const WithDistances actual = run_with(problem.q, problem.k, problem.v, problem.dout, distances, options);
      options.bias = as_matrix(distances, queries, keys);
      const Results expected = problem.run(options);
      expect_close(actual.results.out, expected.out, 1e-6);
      expect_close(actual.results.dq, expected.dq, 2e-6);
      expect_close(actual.results.dk, expected.dk, 2e-6);
      expect_close(actual.results.dv, expected.dv, 2e-6);
      expect_close(actual.gradient, by_distance(expected.dbias, distances.shape()), 1e-5);
      const Tensor map = ops::attention_probabilities(problem.q, problem.k, options);
      options.bias = {};
      options.distance_bias = distances;
      expect_close(ops::attention_probabilities(problem.q, problem.k, options), map, 1e-6);
    }
  }
}

// Places are counted in each sequence of a row, and the gradients of all of them are added.
TEST(AttentionByDistance, CountsPlacesInEachSequenceOfARow) {
  const std::vector<std::int64_t> offsets = {0, 1, 8, 148, 149, 320};
  const Tensor distances = random_tensor({3, 2 * 200 + 1}, 7);
  const Problem row(1, 3, 320, 320, 16, 24);
  for (const bool causal : {false, true}) {
    const WithDistances whole =
        run_with(row.q, row.k, row.v, row.dout, distances, {.causal = causal, .query_offsets = lengths_of(offsets)});
    Tensor sum = Tensor::zeros(distances.shape());
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      const auto part = [&](const Tensor& x) {
        return x.narrow(2, offsets[s], offsets[s + 1] - offsets[s]).contiguous();
      };
      const WithDistances one =
          run_with(part(row.q), part(row.k), part(row.v), part(row.dout), distances, {.causal = causal});
      expect_close(part(whole.results.out), one.results.out, 2e-6);
      expect_close(part(whole.results.dq), one.results.dq, 2e-6);
      expect_close(part(whole.results.dk), one.results.dk, 2e-6);
      sum = sum + one.gradient;
    }
    expect_close(whole.gradient, sum, 1e-5);
  }
}

TEST(AttentionByDistance, TakesThePackedProjectionInEitherPrecision) {
  const Tensor qkv = random_tensor({2, 40, 3, 3, 16}, 1);
  const Tensor distances = random_tensor({3, 2 * 39 + 1}, 7);
  const Tensor expected = ops::attention_packed(qkv, {.causal = true, .bias = as_matrix(distances, 40, 40)});
  expect_close(ops::attention_packed(qkv, {.causal = true, .distance_bias = distances}), expected, 1e-6);
  expect_close(ops::attention_packed(as_bf16(qkv), {.causal = true, .distance_bias = distances}), expected, 2e-2);
}

TEST(AttentionByDistance, SaysWhatIsWrongWithTheDistances) {
  const Tensor x = random_tensor({1, 2, 6, 4}, 1);
  const auto error = [&](const AttentionOptions& options) {
    return error_of([&] { ops::attention(x, x, x, options); });
  };
  EXPECT_EQ(error({.distance_bias = random_tensor({3, 11}, 1)}),
            "attention: the distance_bias must be [2, 2 C + 1] f32, not [3, 11] f32");
  EXPECT_EQ(error({.distance_bias = random_tensor({2, 9}, 1)}),
            "attention: the distance_bias [2, 9] has no distance of 5");
  EXPECT_EQ(error({.query_offsets = lengths_of({0, 1, 6}), .distance_bias = random_tensor({2, 7}, 1)}),
            "attention: the distance_bias [2, 7] has no distance of 4, which sequence 1 has");
  EXPECT_EQ(error({.bias = random_tensor({6, 6}, 1), .distance_bias = random_tensor({2, 11}, 1)}),
            "attention: there is a bias beside the distance_bias: add them");
}

}  // namespace
}  // namespace vitrail
