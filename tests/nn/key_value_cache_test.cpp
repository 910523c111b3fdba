#include "vitrail/nn/attention/key_value_cache.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace vitrail::nn {
namespace {

using test::error_of;
using test::expect_close;
using test::random_tensor;

TEST(KeyValueCache, HoldsWhatWasAddedInOrder) {
  const Tensor keys = random_tensor({2, 3, 150, 4}, 1);
  const Tensor values = random_tensor({2, 3, 150, 5}, 2);
  KeyValueCache cache;
  std::int64_t begin = 0;
  for (const std::int64_t count : {1, 60, 4, 85}) {  // beyond its first memory
    const auto [all_keys, all_values] = cache.append(keys.narrow(2, begin, count), values.narrow(2, begin, count));
    begin += count;
    EXPECT_EQ(cache.length(), begin);
    expect_close(all_keys, keys.narrow(2, 0, begin), 0);
    expect_close(all_values, values.narrow(2, 0, begin), 0);
  }
  EXPECT_GE(cache.bytes(), keys.bytes() + values.bytes());
  EXPECT_LE(cache.bytes(), 2 * (keys.bytes() + values.bytes()));
}

TEST(KeyValueCache, KeepsChosenSamplesAndForgetsTheEnd) {
  const Tensor keys = random_tensor({3, 1, 6, 2}, 1);
  KeyValueCache cache;
  cache.append(keys, keys);
  cache.select({2, 0, 2});
  cache.truncate(5);
  const Tensor more = random_tensor({3, 1, 1, 2}, 3);
  const Tensor all = cache.append(more, more).first;
  EXPECT_EQ(all.shape(), (Shape{3, 1, 6, 2}));
  expect_close(all.select(0, 0).narrow(1, 0, 5), keys.select(0, 2).narrow(1, 0, 5), 0);
  expect_close(all.select(0, 1).narrow(1, 0, 5), keys.select(0, 0).narrow(1, 0, 5), 0);
  expect_close(all.narrow(2, 5, 1), more, 0);
}

TEST(KeyValueCache, RefusesOtherShapes) {
  KeyValueCache cache;
  const Tensor keys = Tensor::zeros({1, 2, 3, 4});
  cache.append(keys, keys);
  const Tensor others = Tensor::zeros({1, 1, 3, 4});
  EXPECT_EQ(error_of([&] { cache.append(others, others); }),
            "the cache holds keys [1, 2, 64, 4] f32, to which [1, 1, 3, 4] f32 cannot be added");
  EXPECT_EQ(error_of([&] { cache.truncate(4); }), "the cache holds 3 tokens, not 4");
}

}  // namespace
}  // namespace vitrail::nn
