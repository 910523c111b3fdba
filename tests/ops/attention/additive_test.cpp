#include "vitrail/ops/attention/additive.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/gradients.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::additive_attention_test {
namespace {

using ops::additive_attention;
using test::expect_close;
using test::random_tensor;

// The sizes are no multiples of a vector's.
constexpr std::int64_t memories = 3, length = 21, dim = 37, width = 19;

struct Operands {
  Tensor query, key = random_tensor({memories, length, dim}, 2), value = random_tensor({memories, length, width}, 3),
                weight = random_tensor({dim}, 4);
};

// The equation by other ops, for the first memories.
Tensor by_equation(const Operands& o, const Tensor& lengths, std::int64_t each) {
  const std::int64_t rows = o.query.size(0);
  const auto repeated = [&](const Tensor& x) {
    const Tensor some = ops::unsqueeze(ops::narrow(x, 0, 0, rows / each), 1);
    return ops::reshape(ops::expand(some, {rows / each, each, x.size(1), x.size(2)}), {rows, x.size(1), x.size(2)});
  };
  const Tensor t = ops::tanh(ops::unsqueeze(o.query, 1) + repeated(o.key));
  Tensor scores = ops::reshape(ops::matmul(t, ops::unsqueeze(o.weight, 1)), {rows, length});
  if (lengths.defined()) {
    const Tensor hidden = Tensor::zeros({rows, length});
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t m = lengths.data<std::int64_t>()[r / each]; m < length; ++m) {
        hidden.data<float>()[r * length + m] = -1e30F;
      }
    }
    scores = scores + hidden;
  }
  const Tensor p = ops::softmax(scores, -1);
  return ops::squeeze(ops::matmul(ops::unsqueeze(p, 1), repeated(o.value)), 1);
}

TEST(AdditiveAttention, IsTheEquationOfThePaper) {
  const Tensor lengths = Tensor::from<std::int64_t>({21, 1, 8}, {3});
  for (const Tensor& own : {Tensor(), lengths}) {
    for (const auto& [rows, each] : {std::pair<std::int64_t, std::int64_t>{3, 1}, {2, 1}, {12, 4}}) {
      std::vector<std::vector<Tensor>> gradients;
      std::vector<Tensor> results;
      for (const bool fused : {true, false}) {
        Operands o{.query = random_tensor({rows, dim}, 1)};
        for (Tensor* x : {&o.query, &o.key, &o.value, &o.weight}) {
          autograd::require_grad(*x);
        }
        autograd::Tape tape;
        // Used twice, so that gradients of a part are added to what is there.
        const auto run = [&](float factor) {
          Operands scaled = o;
          scaled.query = o.query * factor;
          return fused ? additive_attention(scaled.query, o.key, o.value, o.weight, own, each).context
                       : by_equation(scaled, own, each);
        };
        const Tensor result = run(1) + run(0.5F);
        tape.backward(result, random_tensor({rows, width}, 5));
        results.push_back(result);
        gradients.push_back(
            {autograd::grad(o.query), autograd::grad(o.key), autograd::grad(o.value), autograd::grad(o.weight)});
      }
      expect_close(results[0], results[1], 1e-6);
      for (std::size_t i = 0; i < 4; ++i) {
        expect_close(gradients[0][i], gradients[1][i], 1e-5, "gradient " + std::to_string(i));
      }
    }
  }
}

TEST(AdditiveAttention, GivesProbabilities) {
  const Tensor lengths = Tensor::from<std::int64_t>({21, 1, 8}, {3});
  const Operands o{.query = random_tensor({memories, dim}, 1)};
  const Tensor p = additive_attention(o.query, o.key, o.value, o.weight, lengths).probabilities;
  for (std::int64_t r = 0; r < memories; ++r) {
    double sum = 0;
    for (std::int64_t m = 0; m < length; ++m) {
      const float one = p.data<float>()[r * length + m];
      EXPECT_EQ(one > 0, m < lengths.data<std::int64_t>()[r]);
      sum += one;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(AdditiveAttention, LeavesWhatIsFrozenAlone) {
  const Operands o{.query = random_tensor({memories, dim}, 1)};
  test::check_gradients(
      [&](const std::vector<Tensor>& in) { return additive_attention(in[0], o.key, o.value, o.weight).context; },
      {o.query});
  test::check_gradients(
      [&](const std::vector<Tensor>& in) { return additive_attention(o.query, o.key, in[0], o.weight).context; },
      {o.value});
}

TEST(AdditiveAttention, SaysWhatDoesNotFit) {
  const Operands o{.query = random_tensor({4, dim}, 1)};
  EXPECT_EQ(test::error_of([&] { additive_attention(o.query, o.key, o.value, o.weight); }),
            "additive_attention: 4 queries, 1 of a memory, do not fit 3 memories of 21");
  const Tensor three = random_tensor({3, dim}, 1);
  EXPECT_EQ(test::error_of([&] {
              additive_attention(three, o.key, o.value, o.weight, Tensor::from<std::int64_t>({1, 22, 3}, {3}));
            }),
            "additive_attention: length 1 is 22, expected 1 … 21");
  EXPECT_EQ(test::error_of([&] { additive_attention(three, o.key, o.value, random_tensor({5})); }),
            "additive_attention: weight must be [37] f32, not [5] f32");
}

}  // namespace
}  // namespace vitrail::additive_attention_test
