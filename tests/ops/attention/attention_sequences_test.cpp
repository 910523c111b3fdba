// Attention over sequences that follow each other in one row.
#include <vector>

#include "tests/ops/attention/attention_problem.h"
#include "tests/support/errors.h"

namespace vitrail {
namespace {

using attention_test::as_bf16;
using attention_test::lengths_of;
using attention_test::Results;
using attention_test::run;
using ops::attention;
using ops::AttentionOptions;
using test::error_of;
using test::expect_close;
using test::random_tensor;

// Queries, keys and values of sequences in one row, with `heads` heads of which `groups` have keys.
struct Row {
  std::vector<std::int64_t> queries, keys;  // offsets
  Tensor q, k, v, dout;

  Row(std::vector<std::int64_t> query_offsets, std::vector<std::int64_t> key_offsets, std::int64_t heads,
      std::int64_t groups)
      : queries(std::move(query_offsets)),
        keys(std::move(key_offsets)),
        q(random_tensor({1, heads, queries.back(), 24}, 1)),
        k(random_tensor({1, groups, keys.back(), 24}, 2)),
        v(random_tensor({1, groups, keys.back(), 40}, 3)),
        dout(random_tensor({1, heads, queries.back(), 40}, 4)) {}

  Results all(AttentionOptions options, DType dtype = DType::f32) const {
    options.query_offsets = lengths_of(queries);
    if (keys != queries) {
      options.key_offsets = lengths_of(keys);
    }
    const auto in = [&](const Tensor& x) { return dtype == DType::bf16 ? as_bf16(x) : x; };
    return run(in(q), in(k), in(v), in(dout), options);
  }
};

// All sequences at once must give what each of them gives by itself.
void expect_as_apart(const Row& row, const AttentionOptions& options) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Results whole = row.all(options, dtype);
    for (std::size_t s = 0; s + 1 < row.queries.size(); ++s) {
      const auto part = [s](const Tensor& x, const std::vector<std::int64_t>& offsets) {
        return x.narrow(2, offsets[s], offsets[s + 1] - offsets[s]);
      };
      const auto in = [&](const Tensor& x, const std::vector<std::int64_t>& offsets) {
        return dtype == DType::bf16 ? as_bf16(part(x, offsets).contiguous()) : part(x, offsets).contiguous();
      };
      const Results one =
          run(in(row.q, row.queries), in(row.k, row.keys), in(row.v, row.keys), in(row.dout, row.queries), options);
      const double tolerance = dtype == DType::bf16 ? 1e-2 : 2e-6;
      expect_close(part(whole.out, row.queries), one.out, tolerance);
      expect_close(part(whole.dq, row.queries), one.dq, tolerance);
      expect_close(part(whole.dk, row.keys), one.dk, tolerance);
      expect_close(part(whole.dv, row.keys), one.dv, tolerance);
    }
  }
}

TEST(AttentionOverSequences, IsThatOfEachByItself) {
  const std::vector<std::int64_t> some = {0, 1, 8, 148, 149, 680}, others = {0, 3, 5, 305, 325, 390};
  for (const bool causal : {false, true}) {
    for (const Row& row : {Row(some, some, 4, 4), Row(some, some, 6, 2), Row(others, others, 3, 1)}) {
      expect_as_apart(row, {.causal = causal});
    }
  }
  expect_as_apart(Row(some, others, 4, 2), {.scale = 0.3F});
}

// out is linear in v: with the same elements dropped in both passes, <out, dout> is <v, dv>.
TEST(AttentionOverSequences, DropsTheSameInBackward) {
  const Row row({0, 40, 100, 260}, {0, 40, 100, 260}, 4, 4);
  const AttentionOptions dropout{.causal = true, .dropout = 0.4F, .draws = Philox(5, 6)};
  const Results dropped = row.all(dropout);
  const auto dot = [](const Tensor& a, const Tensor& b) {
    const std::vector<float> x = a.contiguous().values(), y = b.contiguous().values();
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum += static_cast<double>(x[i]) * y[i];
    }
    return sum;
  };
  EXPECT_NEAR(dot(dropped.out, row.dout), dot(row.v, dropped.dv), 1e-3);
  EXPECT_GT(test::relative_error(dropped.out, row.all({.causal = true}).out), 0.1);
}

TEST(AttentionOverSequences, SaysWhatIsWrongWithTheOffsets) {
  const Tensor x = random_tensor({1, 2, 6, 4}, 1), two = random_tensor({2, 2, 6, 4}, 1);
  const auto error = [&](const Tensor& in, const AttentionOptions& options) {
    return error_of([&] { attention(in, in, in, options); });
  };
  EXPECT_EQ(error(x, {.query_offsets = lengths_of({0, 5})}),
            "attention: the offsets of queries must go from 0 to 6, not from 0 to 5");
  EXPECT_EQ(error(x, {.query_offsets = lengths_of({0, 3, 3, 6})}),
            "attention: the offsets of queries must grow, but 3 comes behind 3");
  EXPECT_EQ(error(x, {.query_offsets = Tensor::zeros({2})}),
            "attention: the offsets of queries must be [S + 1] i64, not [2] f32");
  EXPECT_EQ(error(x, {.query_offsets = lengths_of({0, 2, 6}), .key_offsets = lengths_of({0, 6})}),
            "attention: 2 sequences of queries cannot see 1 of keys");
  EXPECT_EQ(error(x, {.key_offsets = lengths_of({0, 6})}), "attention: offsets of keys come with offsets of queries");
  EXPECT_EQ(error(two, {.query_offsets = lengths_of({0, 6})}),
            "attention: sequences with offsets are one row, not a batch of 2");
  EXPECT_EQ(error(x, {.query_offsets = lengths_of({0, 6}), .bias = random_tensor({6, 6}, 1)}),
            "attention: sequences with offsets take no lengths, mask, bias or further columns");
  EXPECT_EQ(error_of([&] {
              ops::attention_probabilities(x, x, {.query_offsets = lengths_of({0, 6})});
            }),
            "attention: there are no maps of sequences with offsets: give them as a batch");
}

}  // namespace
}  // namespace vitrail
