#include "vitrail/ops/attention/cached_attention.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/targets.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/int8.h"
#include "vitrail/ops/attention/attention.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::ops {
namespace {

using test::as;
using test::expect_close;
using test::random_tensor;

// What a cache holds of x [B, G, M, d], and what that stands for.
struct Held {
  CachedRows cached;
  Tensor meant;
};

Held held(const Tensor& x, DType dtype) {
  if (dtype != DType::i8) {
    const Tensor rows = as(x, dtype);
    return {{rows}, as(rows, DType::f32)};
  }
  const Tensor rows = Tensor::empty(x.shape(), DType::i8);
  const Tensor scales = Tensor::empty(x.shape().removed(3));
  kernels::quantize_rows(x.reshape({-1, x.size(3)}), {}, rows.reshape({-1, x.size(3)}), scales.reshape({-1}));
  return {{rows, scales}, cast(rows, DType::f32) * scales.unsqueeze(3)};
}

// Attention as it is elsewhere, of one sample and its keys up to `length`.
Tensor expected(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t b, std::int64_t length,
                AttentionOptions options) {
  const auto sample = [&](const Tensor& x) { return x.narrow(0, b, 1); };
  if (!options.mask.defined()) {  // a mask of nothing keeps it from reading the keys as they lie
    options.mask = Tensor::full({q.size(2), length}, 1, DType::boolean);
  }
  return attention(sample(q), sample(k).narrow(2, 0, length), sample(v).narrow(2, 0, length), options);
}

TEST(CachedAttention, IsAttention) {
  test::for_each_target([](const std::string& target) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::i8}) {
      for (const auto& [heads, groups, queries, keys, dim, width] :
           {std::tuple{4, 4, 1, 150, 64, 64}, {6, 2, 3, 70, 20, 17}, {8, 1, 1, 64, 33, 40}, {2, 2, 7, 9, 8, 8}}) {
        const Tensor q = random_tensor({2, heads, queries, dim}, 1);
        const Held k = held(random_tensor({2, groups, keys, dim}, 2), dtype);
        const Held v = held(random_tensor({2, groups, keys, width}, 3), dtype);
        for (const bool causal : {false, true}) {
          const Tensor lengths = Tensor::from(std::vector<std::int64_t>{keys, keys - 2}, {2});
          const Tensor out = cached_attention(q, k.cached, v.cached, {0.3F, lengths, {}, causal});
          for (const std::int64_t b : {0, 1}) {
            expect_close(out.narrow(0, b, 1),
                         expected(q, k.meant, v.meant, b, keys - 2 * b, {.scale = 0.3F, .causal = causal}), 2e-6,
                         target + " " + std::string(name_of(dtype)));
          }
        }
      }
    }
  });
}

TEST(CachedAttention, RoundsWhatItGivesInBf16) {
  const Tensor q = as(random_tensor({1, 4, 2, 64}, 1), DType::bf16);
  const Tensor k = as(random_tensor({1, 4, 80, 64}, 2), DType::bf16);
  const Tensor out = cached_attention(q, {k}, {k}, {.scale = 0.125F});
  EXPECT_EQ(out.dtype(), DType::bf16);
  const Tensor wide = as(k, DType::f32);
  expect_close(out, cached_attention(as(q, DType::f32), {wide}, {wide}, {.scale = 0.125F}), 4e-3);
}

// Tokens of two texts in the slots of one memory, of which the first three are shared.
TEST(CachedAttention, FindsKeysInTheirSlots) {
  const Tensor q = random_tensor({2, 4, 1, 16}, 1);
  const Tensor pool = random_tensor({2, 12, 16}, 2);
  const std::vector<std::vector<std::int32_t>> slots = {{7, 2, 9, 0, 11}, {7, 2, 9, 5}};
  Tensor table = Tensor::zeros({2, 5}, DType::i32);
  Tensor keys = Tensor::zeros({2, 2, 5, 16});
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t j = 0; j < std::ssize(slots[static_cast<std::size_t>(b)]); ++j) {
      const std::int32_t slot = slots[static_cast<std::size_t>(b)][static_cast<std::size_t>(j)];
      table.data<std::int32_t>()[b * 5 + j] = slot;
      keys.select(0, b).narrow(1, j, 1).copy_from(pool.narrow(1, slot, 1));
    }
  }
  const Tensor lengths = Tensor::from(std::vector<std::int64_t>{5, 4}, {2});
  const CachedRows rows = {pool.expand({2, 2, 12, 16})};
  const Tensor out = cached_attention(q, rows, rows, {0.25F, lengths, table});
  for (const std::int64_t b : {0, 1}) {
    expect_close(out.narrow(0, b, 1), expected(q, keys, keys, b, 5 - b, {.scale = 0.25F}), 2e-6);
  }
}

TEST(CachedAttention, SeesAWindow) {
  const Tensor q = random_tensor({1, 2, 3, 16}, 1);
  const Tensor k = random_tensor({1, 2, 90, 16}, 2);
  Tensor mask = Tensor::zeros({3, 90}, DType::boolean);
  for (std::int64_t i = 0; i < 3; ++i) {
    mask.narrow(0, i, 1).narrow(1, 88 + i - 10, 10).fill(1);
  }
  const Tensor out = cached_attention(q, {k}, {k}, {.scale = 0.25F, .causal = true, .window = 10});
  expect_close(out, attention(q, k, k, {.scale = 0.25F, .mask = mask}), 2e-6);
}

// attention() itself reads the keys as they lie where there are few queries and no gradient is wanted.
TEST(CachedAttention, IsWhatAttentionDoesWithFewQueries) {
  const Tensor q = random_tensor({3, 4, 2, 16}, 1);
  const Tensor k = random_tensor({3, 2, 40, 16}, 2);
  const Tensor lengths = Tensor::from(std::vector<std::int64_t>{40, 3, 17}, {3});
  const autograd::NoGrad no_grad;
  const Tensor out = attention(q, k, k, {.lengths = lengths});
  expect_close(out, cached_attention(q, {k}, {k}, {0.25F, lengths}), 0);
  for (const std::int64_t b : {0, 1, 2}) {
    expect_close(out.narrow(0, b, 1), expected(q, k, k, b, lengths.data<std::int64_t>()[b], {}), 2e-6);
  }
}

TEST(CachedAttention, SaysWhatDoesNotFit) {
  const Tensor q = Tensor::zeros({1, 4, 1, 8});
  const CachedRows keys = {Tensor::zeros({1, 4, 6, 8})};
  EXPECT_EQ(test::error_of([&] {
              cached_attention(q, keys, {Tensor::zeros({1, 4, 5, 8})}, {});
            }),
            "cached_attention: keys [1, 4, 6, 8] and values [1, 4, 5, 8] must have the same tokens and dtype, and keys "
            "the width of q [1, 4, 1, 8]");
  EXPECT_EQ(test::error_of([&] {
              cached_attention(q, {Tensor::zeros({1, 3, 6, 8})}, keys, {});
            }),
            "cached_attention: the keys must be [B, G, M, d] with the batch of q [1, 4, 1, 8] and a divisor of its "
            "heads, not [1, 3, 6, 8]");
  EXPECT_EQ(test::error_of([&] {
              cached_attention(q, keys, {Tensor::zeros({1, 4, 6, 8}, DType::i8)}, {});
            }),
            "cached_attention: the values must be f32, bf16, or i8 with a scale for each row, not i8");
}

}  // namespace
}  // namespace vitrail::ops
