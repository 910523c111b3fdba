#include "vitrail/ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <omp.h>

#include "tests/ops/attention/attention_problem.h"
#include "tests/support/golden.h"
#include "tests/support/gradients.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/shape/shape.h"
#include "vitrail/tensor/allocator.h"

namespace vitrail {
namespace {

using attention_test::as_bf16;
using attention_test::as_f32;
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

class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

TEST(Attention, AgreesWithPyTorchInValuesAndGradients) {
  const io::Safetensors file = test::golden("ops/attention.safetensors");
  std::set<std::string> cases;
  for (const std::string& name : file.names()) {
    cases.insert(name.substr(0, name.rfind('.')));
  }
  ASSERT_GE(cases.size(), 25U);
  for (const std::string& name : cases) {
    const auto tensor = [&](const std::string& part) {
      return file.contains(name + "." + part) ? file.get(name + "." + part) : Tensor();
    };
    AttentionOptions options;
    options.scale = tensor("settings").data<float>()[0];
    options.causal = tensor("settings").data<float>()[1] != 0;
    options.mask = tensor("mask");
    options.bias = tensor("bias");
    const Tensor q = tensor("q"), k = tensor("k"), v = tensor("v"), dout = tensor("dout");
    const Results f32 = run(as_f32(q), as_f32(k), as_f32(v), as_f32(dout), options);
    const Results half = run(q, k, v, dout, options);
    const auto compare = [&](const char* part, const Tensor& single, const Tensor& twice) {
      const Tensor expected = tensor(part);
      const std::vector<float> values = expected.values();
      const bool vanishes = std::all_of(values.begin(), values.end(), [](float x) { return std::abs(x) < 1e-12F; });
      if (vanishes) {  // nothing to choose, as with one key: only the absolute error makes sense
        for (const float x : single.values()) {
          EXPECT_NEAR(x, 0, 1e-5) << name << " " << part;
        }
        return;
      }
      const double large = name == "large scores" ? 10 : 1;  // scores near 1000 cost three digits
      expect_close(single, expected, 1e-5 * large, name + " " + part);
      expect_close(twice, expected, 2e-2, name + " " + part + " in bf16");
    };
    compare("out", f32.out, half.out);
    compare("dq", f32.dq, half.dq);
    compare("dk", f32.dk, half.dk);
    compare("dv", f32.dv, half.dv);
    if (options.bias.defined()) {
      compare("dbias", f32.dbias, half.dbias);
    }
  }
}

TEST(Attention, AgreesWithFiniteDifferences) {
  const Problem p(2, 2, 5, 7, 6, 3);
  const Tensor bias = random_tensor({2, 5, 7}, 5);
  test::check_gradients(
      [](const std::vector<Tensor>& x) {
        AttentionOptions options;
        options.bias = x[3];
        return attention(x[0], x[1], x[2], options);
      },
      {p.q, p.k, p.v, bias});
  test::check_gradients(
      [](const std::vector<Tensor>& x) {
        AttentionOptions options;
        options.causal = true;
        options.dropout = 0.3F;
        options.draws = Philox(5, 6);
        return attention(x[0], x[1], x[2], options);
      },
      {p.q, p.k, p.v});
}

TEST(Attention, TakesFurtherColumnsAsIfTheyStoodBehindTheOthers) {
  const Problem p(2, 3, 7, 9, 10, 4);
  const Tensor k_extra = random_tensor({1, 1, 9, 4}, 6);
  const Tensor k = ops::concat({p.k.narrow(3, 0, 6), k_extra.expand({2, 3, 9, 4})}, 3);
  const Results whole = run(p.q, k, p.v, p.dout, {.scale = 0.3F});
  const Tensor q = leaf(p.q.narrow(3, 0, 6).contiguous()), more = leaf(p.q.narrow(3, 6, 4).contiguous());
  autograd::Tape tape;
  const AttentionOptions options{.scale = 0.3F, .q_extra = more, .k_extra = k_extra};
  const Tensor out = attention(q, k.narrow(3, 0, 6), p.v, options);
  tape.backward(out, p.dout);
  expect_equal(out, whole.out);
  expect_equal(autograd::grad(q), whole.dq.narrow(3, 0, 6));
  expect_equal(autograd::grad(more), whole.dq.narrow(3, 6, 4));
  expect_equal(attention_probabilities(q, k.narrow(3, 0, 6), options),
               attention_probabilities(p.q, k, {.scale = 0.3F}));
}

TEST(Attention, LaysItsResultOutSoThatJoiningTheHeadsIsAView) {
  const Tensor out = Problem(2, 3, 5, 5, 8, 4).run().out;
  EXPECT_EQ(out.shape(), Shape({2, 3, 5, 4}));
  EXPECT_TRUE(out.transpose(1, 2).is_contiguous());
}

TEST(Attention, ReadsAnyStrides) {
  const Problem p(2, 3, 9, 11, 16, 8);
  const Results expected = p.run();
  const auto across = [](const Tensor& x) { return x.transpose(2, 3).contiguous().transpose(2, 3); };
  const auto between = [](const Tensor& x) { return x.transpose(1, 2).contiguous().transpose(1, 2); };
  for (const Results& r : {run(across(p.q), across(p.k), across(p.v), across(p.dout)),
                           run(between(p.q), between(p.k), between(p.v), between(p.dout))}) {
    expect_equal(r.out, expected.out);
    expect_equal(r.dq, expected.dq);
    expect_equal(r.dk, expected.dk);
    expect_equal(r.dv, expected.dv);
  }
  // One key and value for all heads.
  const Tensor k = random_tensor({2, 1, 11, 16}, 7), v = random_tensor({2, 1, 11, 8}, 8);
  const Shape all_k{2, 3, 11, 16}, all_v{2, 3, 11, 8};
  expect_equal(attention(p.q, k.expand(all_k), v.expand(all_v)),
               attention(p.q, k.expand(all_k).contiguous(), v.expand(all_v).contiguous()));
}

TEST(Attention, OfAPackedProjectionEqualsThatOfItsParts) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::int64_t dim : {1, 16, 20}) {
      const Shape shape{2, 17, 3, 2, dim};
      const Tensor values = random_tensor(shape, 1), gradient = random_tensor({2, 17, 2, dim}, 2);
      const Tensor qkv = leaf(dtype == DType::f32 ? values.clone() : as_bf16(values));
      const Tensor dout = dtype == DType::f32 ? gradient : as_bf16(gradient);
      AttentionOptions options;
      options.bias = leaf(random_tensor({2, 17, 17}, 3));
      options.dropout = 0.2F;
      autograd::Tape tape;
      const Tensor out = attention_packed(qkv, options);
      EXPECT_EQ(out.shape(), Shape({2, 17, 2, dim}));
      EXPECT_TRUE(out.is_contiguous());
      tape.backward(out, dout);

      const auto part = [&](const Tensor& x, int i) { return x.detach().select(2, i).transpose(1, 2); };
      const Results parts = run(part(qkv, 0), part(qkv, 1), part(qkv, 2), dout.transpose(1, 2), options);
      expect_equal(out.transpose(1, 2), parts.out);
      const Tensor dqkv = autograd::grad(qkv);
      expect_equal(part(dqkv, 0), parts.dq);
      expect_equal(part(dqkv, 1), parts.dk);
      expect_equal(part(dqkv, 2), parts.dv);
      expect_equal(autograd::grad(options.bias), parts.dbias);
    }
  }
}

TEST(Attention, ProbabilitiesAreThoseItWeighsTheValuesWith) {
  const Problem p(2, 2, 9, 13, 8, 13);
  Tensor identity = Tensor::zeros({2, 2, 13, 13});
  for (std::int64_t i = 0; i < identity.numel(); ++i) {
    identity.data<float>()[i] = i / 13 % 13 == i % 13 ? 1.0F : 0.0F;
  }
  AttentionOptions options;
  options.causal = true;
  options.bias = random_tensor({2, 1, 13}, 5);
  options.mask = Tensor::full({13}, 1, DType::boolean);
  options.mask.data<bool>()[1] = false;
  expect_close(attention_probabilities(p.q, p.k), attention(p.q, p.k, identity), 1e-6);
  expect_close(attention_probabilities(p.q, p.k, options), attention(p.q, p.k, identity, options), 1e-6);
  expect_close(attention_probabilities(as_bf16(p.q), as_bf16(p.k), options), attention(p.q, p.k, identity, options),
               2e-2);
  options.mask.fill(0);
  expect_equal(attention_probabilities(p.q, p.k, options), Tensor::zeros({2, 2, 9, 13}));
}

TEST(Attention, DropsTheAskedShareOfTheProbabilities) {
  // With equal scores each probability is 1/M, and the identity as values shows which are left.
  constexpr std::int64_t n = 64;
  Tensor identity = Tensor::zeros({2, 3, n, n});
  for (std::int64_t i = 0; i < identity.numel(); ++i) {
    identity.data<float>()[i] = i / n % n == i % n ? 1.0F : 0.0F;
  }
  const Tensor zero = Tensor::zeros({2, 3, n, 8});
  AttentionOptions options;
  options.dropout = 0.25F;
  options.draws = Philox(1, 2);
  const std::vector<float> kept = attention(zero, zero, identity, options).values();
  double count = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const bool expected = options.draws.uniform(i) >= 0.25F;
    EXPECT_NEAR(kept[i], expected ? 1 / 0.75 / n : 0, 1e-7);
    count += kept[i] != 0 ? 1 : 0;
  }
  EXPECT_NEAR(count / static_cast<double>(kept.size()), 0.75, 0.01);
}

TEST(Attention, StaysFiniteWithHugeScores) {
  const Problem p(1, 2, 17, 19, 16, 16);
  AttentionOptions options;
  options.scale = 1e6F;
  for (const Results& r : {p.run(options), run(as_bf16(p.q), as_bf16(p.k), as_bf16(p.v), as_bf16(p.dout), options)}) {
    for (const Tensor& x : {r.out, r.dq, r.dk, r.dv}) {
      for (const float value : x.values()) {
        ASSERT_TRUE(std::isfinite(value));
      }
    }
  }
}

TEST(Attention, HandsNaNOn) {
  Problem p(1, 1, 5, 5, 16, 16);
  p.q.data<float>()[2 * 16] = NAN;
  const bool before = autograd::check_finite();
  autograd::set_check_finite(false);
  const std::vector<float> out = attention(p.q, p.k, p.v).values();
  autograd::set_check_finite(before);
  EXPECT_TRUE(std::isnan(out[2 * 16 + 5]));
  EXPECT_FALSE(std::isnan(out[0]));
}

TEST(Attention, TakesEmptyBatchesQueriesAndKeys) {
  EXPECT_EQ(Problem(0, 2, 3, 4, 5, 6).run().dq.shape(), Shape({0, 2, 3, 5}));
  const Results no_queries = Problem(1, 2, 0, 4, 5, 6).run();
  EXPECT_EQ(no_queries.out.shape(), Shape({1, 2, 0, 6}));
  expect_equal(no_queries.dk, Tensor::zeros({1, 2, 4, 5}));
  const Results no_keys = Problem(1, 2, 3, 0, 5, 6).run();
  expect_equal(no_keys.out, Tensor::zeros({1, 2, 3, 6}));
  expect_equal(no_keys.dq, Tensor::zeros({1, 2, 3, 5}));
}

TEST(Attention, GivesTheSameBitsAgainAndNearlyTheSameOnOtherNumbersOfThreads) {
  AttentionOptions options;
  options.bias = random_tensor({130, 150}, 9);
  // Three heads on two threads: one is shared between them.
  for (const bool half : {false, true}) {
    const Problem p(1, 3, 130, 150, 16, 16);
    const auto once = [&](int threads) {
      const Threads limit(threads);
      return half ? run(as_bf16(p.q), as_bf16(p.k), as_bf16(p.v), as_bf16(p.dout), options) : p.run(options);
    };
    const Results one = once(1);
    for (const int threads : {2, 3}) {
      const Results first = once(threads), second = once(threads);
      const auto compare = [&](const Tensor& a, const Tensor& b, const Tensor& alone) {
        expect_equal(a, b);
        expect_close(a, alone, half ? 1e-2 : 2e-6);
      };
      compare(first.out, second.out, one.out);
      compare(first.dq, second.dq, one.dq);
      compare(first.dk, second.dk, one.dk);
      compare(first.dv, second.dv, one.dv);
      compare(first.dbias, second.dbias, one.dbias);
    }
  }
}

TEST(Attention, TakesMemoryThatGrowsLinearlyWithTheTokens) {
  const auto peak = [](std::int64_t tokens) {
    const Tensor qkv = leaf(random_tensor({1, tokens, 3, 1, 8}, 1));
    const Tensor dout = random_tensor({1, tokens, 1, 8}, 2);
    Allocator::instance().reset_peak();
    const std::size_t before = Allocator::instance().statistics().in_use;
    autograd::Tape tape;
    tape.backward(attention_packed(qkv), dout);
    return Allocator::instance().statistics().peak - before;
  };
  const Threads two(2);
  const std::size_t at_1025 = peak(1025), at_4097 = peak(4097);
  EXPECT_LE(at_4097, 5 * at_1025);
  // The probabilities alone would take 4097² · 4 bytes = 67 MB.
  EXPECT_LE(at_4097, std::size_t{8} << 20);
}

TEST(Attention, AsksTheSystemForNoMemoryOnceItHasRun) {
  const Problem p(2, 2, 65, 65, 16, 16);
  const Results kept = p.run();
  p.run();
  const std::uint64_t before = Allocator::instance().statistics().system_allocations;
  p.run();
  EXPECT_EQ(Allocator::instance().statistics().system_allocations, before);
}

// A mask and a bias of W windows serve a batch of B = W · samples in turn, as if they had been repeated.
TEST(Attention, TakesMasksAndBiasesOfWindowsWhereAskedTo) {
  const Problem p(6, 2, 9, 9, 8, 8);
  const Tensor dout = random_tensor(p.q.shape(), 9);
  const auto repeated = [](const Tensor& x) { return ops::concat({x, x, x}, 0); };
  AttentionOptions some;
  some.bias = random_tensor({2, 2, 9, 9}, 7);
  some.mask = random_tensor({2, 1, 9, 9}, 8);
  some.windows = 2;
  AttentionOptions all;
  all.bias = repeated(some.bias) + ops::expand(repeated(some.mask), {6, 2, 9, 9});
  const Results few = run(p.q, p.k, p.v, dout, some);
  const Results many = run(p.q, p.k, p.v, dout, all);
  expect_close(few.out, many.out, 1e-6);
  expect_close(few.dq, many.dq, 1e-5);
  expect_close(few.dk, many.dk, 1e-5);
  expect_close(few.dv, many.dv, 1e-5);
  expect_close(few.dbias, ops::sum(many.dbias.reshape({3, 2, 2, 9, 9}), {0}), 1e-5);
  expect_close(attention_probabilities(p.q, p.k, some), attention_probabilities(p.q, p.k, all), 1e-6);
  some.windows = 3;
  EXPECT_THROW(attention(p.q, p.k, p.v, some), Error) << "the mask is of 2 windows";
  some.windows = 4;
  EXPECT_THROW(attention(p.q, p.k, p.v, some), Error) << "6 is not a multiple of 4";
  some.windows = 0;
  EXPECT_THROW(attention(p.q, p.k, p.v, some), Error) << "nobody asked for windows";
}

// scale q / |q| and k / |k| by steps.
TEST(Attention, MakesQueriesAndKeysOfUnitLength) {
  const Tensor qkv = random_tensor({2, 5, 3, 2, 19});
  const Tensor scale = Tensor::from<float>({0.5F, 30}, {2});
  const auto unit = [](const Tensor& x) { return x / ops::sqrt(ops::sum(x * x, {-1}, true)); };
  const auto by_steps = [&](const Tensor& x, const Tensor& factors) {
    return ops::stack({unit(ops::select(x, 2, 0)) * ops::reshape(factors, {1, 1, 2, 1}), unit(ops::select(x, 2, 1)),
                       ops::select(x, 2, 2)},
                      2);
  };
  expect_close(ops::cosine_queries(qkv, scale), by_steps(qkv, scale), 1e-6);
  expect_close(ops::cast(ops::cosine_queries(as_bf16(qkv), scale), DType::f32), by_steps(qkv, scale), 1e-2);
  test::check_gradients([](const std::vector<Tensor>& in) { return ops::cosine_queries(in[0], in[1]); },
                        {random_tensor({2, 3, 3, 2, 5}), scale});
  // Nothing has a direction: what is 0 stays 0, with a gradient that is finite.
  const Tensor x = leaf(Tensor::zeros({1, 1, 3, 2, 4})), s = leaf(scale.detach());
  autograd::Tape tape;
  const Tensor y = ops::cosine_queries(x, s);
  tape.backward(y, random_tensor(y.shape()));
  expect_close(y, Tensor::zeros(y.shape()), 0);
  for (const float value : autograd::grad(x).values()) {
    EXPECT_TRUE(std::isfinite(value));
  }
  EXPECT_THROW(ops::cosine_queries(qkv, Tensor::zeros({3})), Error);
  EXPECT_THROW(ops::cosine_queries(qkv.select(0, 0), scale), Error);
}

TEST(Attention, SaysWhatIsWrongWithItsInputs) {
  const Problem p(1, 2, 3, 4, 8, 8);
  const auto message = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  AttentionOptions options;
  EXPECT_THAT(message([&] { attention(p.q, random_tensor({2, 2, 4, 8}), p.v); }), testing::HasSubstr("must agree"));
  EXPECT_THAT(message([&] { attention(p.q, as_bf16(p.k), p.v); }), testing::HasSubstr("not f32 and bf16"));
  EXPECT_THAT(message([&] { attention(p.q, p.k, random_tensor({1, 2, 5, 8})); }), testing::HasSubstr("v [1, 2, 5, 8]"));
  EXPECT_THAT(message([&] { attention(p.q, p.k, as_bf16(p.v)); }), testing::HasSubstr("v is bf16"));
  EXPECT_THAT(message([&] { attention_packed(p.q); }), testing::HasSubstr("[B, N, 3, H, d]"));
  options.dropout = 1;
  EXPECT_THAT(message([&] { attention(p.q, p.k, p.v, options); }), testing::HasSubstr("dropout"));
  options.dropout = 0;
  options.mask = Tensor::zeros({3, 4}, DType::i64);
  EXPECT_THAT(message([&] { attention(p.q, p.k, p.v, options); }), testing::HasSubstr("mask must be bool"));
  options.mask = Tensor::zeros({3, 5}, DType::boolean);
  EXPECT_THAT(message([&] { attention(p.q, p.k, p.v, options); }), testing::HasSubstr("mask [3, 5]"));
  const Problem four(4, 2, 3, 4, 8, 8);
  options.mask = Tensor::zeros({2, 1, 3, 4}, DType::boolean);
  EXPECT_THAT(message([&] { attention(four.q, four.k, four.v, options); }),
              testing::HasSubstr("the mask [2, 1, 3, 4] does not broadcast to [B, H, N, M] = [4, 2, 3, 4]"));
  options.windows = 3;
  EXPECT_THAT(message([&] { attention(four.q, four.k, four.v, options); }),
              testing::HasSubstr("a batch of 4 does not consist of images of 3 windows each"));
  options.windows = 4;
  EXPECT_THAT(message([&] { attention(four.q, four.k, four.v, options); }),
              testing::HasSubstr("nor is it of 4 windows"));
  options = {.lengths = lengths_of({3, 4})};
  EXPECT_THAT(message([&] { attention(p.q, p.k, p.v, options); }),
              testing::HasSubstr("the lengths must be [1] i64, not [2] i64"));
  for (const std::int64_t length : {0, 5}) {
    options.lengths = lengths_of({length});
    EXPECT_THAT(message([&] { attention(p.q, p.k, p.v, options); }),
                testing::HasSubstr(fmt::format("the length of sample 0 must lie in 1 … 4, but is {}", length)));
  }
  options = {.q_extra = random_tensor({1, 2, 3, 5}), .k_extra = random_tensor({1, 1, 4, 6})};
  EXPECT_THAT(message([&] { attention(p.q, p.k, p.v, options); }),
              testing::HasSubstr("q_extra has 5 columns, but k_extra 6"));
  EXPECT_THAT(message([&] {
                attention_packed(random_tensor({1, 3, 3, 2, 8}), options);
              }),
              testing::HasSubstr("packed"));
  options.q_extra = random_tensor({1, 1, 3, 6});
  EXPECT_THAT(message([&] { attention(p.q, p.k, p.v, options); }),
              testing::HasSubstr("q_extra must be [1, 2, 3, r] f32, not [1, 1, 3, 6] f32"));
}

// A decoder may see j < i of the texts that it continues, or j ≤ i of texts that are shifted by one: with the queries
// of the tokens before, the two are the same, and the first token sees nothing.
TEST(Attention, IsInItsStrictFormTheShiftedOne) {
  constexpr std::int64_t n = 40;
  const Tensor q = random_tensor({2, 3, n, 16}, 1), k = random_tensor({2, 3, n, 16}, 2);
  const Tensor v = random_tensor({2, 3, n, 16}, 3), dout = random_tensor({2, 3, n, 16}, 4);
  const Tensor shifted = q.clone();  // its first query is of no use
  shifted.narrow(2, 1, n - 1).copy_from(q.narrow(2, 0, n - 1));
  const Tensor strict = Tensor::empty({n, n}, DType::boolean);
  for (std::int64_t i = 0; i < n * n; ++i) {
    strict.data<bool>()[i] = i % n < i / n;
  }
  const Tensor before = dout.clone();  // the gradients of the shifted outputs
  before.narrow(2, 0, n - 1).copy_from(dout.narrow(2, 1, n - 1));
  before.narrow(2, n - 1, 1).fill(0);
  const Results a = run(shifted, k, v, dout, {.mask = strict});
  const Results b = run(q, k, v, before, {.causal = true});
  for (const float value : a.out.narrow(2, 0, 1).contiguous().values()) {
    EXPECT_EQ(value, 0);
  }
  expect_close(a.out.narrow(2, 1, n - 1), b.out.narrow(2, 0, n - 1), 1e-6);
  expect_close(a.dq.narrow(2, 1, n - 1), b.dq.narrow(2, 0, n - 1), 1e-5);
  expect_close(a.dk, b.dk, 1e-5);
  expect_close(a.dv, b.dv, 1e-5);
}

}  // namespace
}  // namespace vitrail
