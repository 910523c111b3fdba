// Attention over samples of different lengths.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/ops/attention/attention_problem.h"
#include "tests/support/finite.h"
#include "tests/support/gradients.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail {
namespace {

using attention_test::as_bf16;
using attention_test::expect_equal;
using attention_test::leaf;
using attention_test::lengths_of;
using attention_test::Problem;
using attention_test::Results;
using attention_test::run;
using ops::attention;
using ops::attention_packed;
using ops::attention_probabilities;
using ops::AttentionOptions;
using test::expect_close;
using test::random_tensor;

// A mask [B, 1, 1, M] for the keys before each sample's length: true and false, or 0 and -∞.
Tensor mask_of(const std::vector<std::int64_t>& lengths, std::int64_t keys, DType dtype) {
  const auto samples = static_cast<std::int64_t>(lengths.size());
  const bool added = dtype == DType::f32;
  const Tensor mask = Tensor::full({samples, 1, 1, keys}, added ? -INFINITY : 0, dtype);
  for (std::int64_t b = 0; b < samples; ++b) {
    mask.select(0, b).narrow(2, 0, lengths[static_cast<std::size_t>(b)]).fill(added ? 0 : 1);
  }
  return mask;
}

// Without further terms, with each of those that attention takes, and with all of them.
std::vector<AttentionOptions> varied_options(const Shape& scores) {
  const AttentionOptions causal{.causal = true}, bias{.bias = random_tensor(scores, 6)};
  const AttentionOptions dropout{.dropout = 0.3F, .draws = Philox(5, 6)};
  const AttentionOptions all{.causal = true,
                             .mask = random_tensor({scores[2], scores[3]}, 7),
                             .bias = bias.bias,
                             .dropout = 0.3F,
                             .draws = Philox(5, 6)};
  return {{}, causal, bias, dropout, all};
}

TEST(AttentionWithLengths, TreatsTheKeysBehindThemAsMasked) {
  const test::AllowNonFinite allow;  // of the masks
  const std::vector<std::int64_t> lengths = {700, 1, 333, 512};
  const Problem p(4, 2, 150, 700, 8, 8);
  for (AttentionOptions options : varied_options({4, 2, 150, 700})) {
    AttentionOptions masked = options;
    options.lengths = lengths_of(lengths);
    masked.mask = options.mask.defined() ? options.mask + mask_of(lengths, 700, DType::f32)
                                         : mask_of(lengths, 700, DType::boolean);
    const auto compare = [](const Results& a, const Results& b, double tolerance) {
      expect_close(a.out, b.out, tolerance);
      expect_close(a.dq, b.dq, tolerance);
      expect_close(a.dk, b.dk, tolerance);
      expect_close(a.dv, b.dv, tolerance);
      if (a.dbias.defined()) {
        expect_close(a.dbias, b.dbias, tolerance);
      }
    };
    const Results f32 = p.run(options);
    compare(f32, p.run(masked), 2e-6);
    const auto in_bf16 = [&](const AttentionOptions& how) {
      return run(as_bf16(p.q), as_bf16(p.k), as_bf16(p.v), as_bf16(p.dout), how);
    };
    compare(in_bf16(options), in_bf16(masked), 1e-2);
    expect_close(attention_probabilities(p.q, p.k, options), attention_probabilities(p.q, p.k, masked), 1e-6);
    expect_equal(f32.dk.narrow(0, 1, 1).narrow(2, 1, 699), Tensor::zeros({1, 2, 699, 8}));
    expect_equal(f32.dv.narrow(0, 2, 1).narrow(2, 333, 367), Tensor::zeros({1, 2, 367, 8}));
  }
}

TEST(AttentionWithLengths, EqualsThatOfEachSampleAlone) {
  const std::vector<std::int64_t> lengths = {3, 9, 5};
  const Tensor qkv = random_tensor({3, 9, 3, 2, 8}, 1), dout = random_tensor({3, 9, 2, 8}, 2);
  for (const bool causal : {false, true}) {
    const auto both = [&](const Tensor& x, const Tensor& gradient, const Tensor& given) {
      const Tensor input = leaf(x.clone());
      autograd::Tape tape;
      const Tensor out = attention_packed(input, {.causal = causal, .lengths = given});
      tape.backward(out, gradient);
      return std::pair{out, autograd::grad(input)};
    };
    // Queries behind the length have no gradient here: nobody asked for their results.
    const Tensor real = dout.clone();
    for (std::int64_t b = 0; b < 3; ++b) {
      const std::int64_t length = lengths[static_cast<std::size_t>(b)];
      real.select(0, b).narrow(0, length, 9 - length).fill(0);
    }
    const auto [out, gradient] = both(qkv, real, lengths_of(lengths));
    for (std::int64_t b = 0; b < 3; ++b) {
      const std::int64_t length = lengths[static_cast<std::size_t>(b)];
      const auto alone = [&](const Tensor& x) { return x.narrow(0, b, 1).narrow(1, 0, length); };
      const auto [alone_out, alone_gradient] = both(alone(qkv), alone(dout).contiguous(), {});
      expect_close(alone(out), alone_out, 1e-6);
      expect_close(alone(gradient), alone_gradient, 2e-6);
      for (const float value : gradient.narrow(0, b, 1).narrow(1, length, 9 - length).values()) {
        EXPECT_EQ(value, 0);
      }
    }
  }
}

TEST(AttentionWithLengths, AgreesWithFiniteDifferences) {
  const Problem p(2, 2, 5, 7, 6, 3);
  test::check_gradients(
      [](const std::vector<Tensor>& x) {
        return attention(x[0], x[1], x[2], {.lengths = lengths_of({4, 7}), .bias = x[3]});
      },
      {p.q, p.k, p.v, random_tensor({2, 5, 7}, 5)});
  test::check_gradients(
      [](const std::vector<Tensor>& x) {
        return attention_packed(
            x[0], {.causal = true, .lengths = lengths_of({1, 5}), .dropout = 0.3F, .draws = Philox(5, 6)});
      },
      {random_tensor({2, 6, 3, 2, 4}, 1)});
}

TEST(AttentionWithLengths, DoesNotReadKeysBehindThem) {
  const Problem p(2, 2, 600, 600, 8, 8);
  const AttentionOptions options{.lengths = lengths_of({600, 13})};
  for (const Tensor& x : {p.k, p.v}) {
    x.narrow(0, 1, 1).narrow(2, 13, 587).fill(NAN);
  }
  const Results r = p.run(options);
  for (const Tensor& x : {r.out, r.dq, r.dk, r.dv, attention_probabilities(p.q, p.k, options)}) {
    const std::vector<float> values = x.values();
    EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }));
  }
}

}  // namespace
}  // namespace vitrail
