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
  for (const auto& [dtype, tolerance] : {std::pair{DType::f32, 0.0}, {DType::bf16, 4e-3}, {DType::i8, 8e-3}}) {
    TextSlots texts;
    KeyValueCache cache(texts, dtype);
    std::int64_t begin = 0;
    for (const std::int64_t count : {1, 60, 4, 85}) {  // beyond its first memory
      texts.extend(2, count);
      cache.append(keys.narrow(2, begin, count), values.narrow(2, begin, count));
      begin += count;
      EXPECT_EQ(texts.length(), begin);
      const auto [all_keys, all_values] = cache.gathered(DType::f32);
      expect_close(all_keys, keys.narrow(2, 0, begin), tolerance);
      expect_close(all_values, values.narrow(2, 0, begin), tolerance);
    }
    const std::size_t numbers = (keys.bytes() + values.bytes()) / 4;
    EXPECT_GE(cache.bytes(), numbers * size_of(dtype));
    EXPECT_LE(cache.bytes(), 2 * numbers * size_of(dtype) + (dtype == DType::i8 ? 4 * numbers : 0));
  }
}

TEST(KeyValueCache, KeepsChosenTextsAndForgetsTheEnd) {
  const Tensor keys = random_tensor({3, 1, 6, 2}, 1);
  TextSlots texts;
  KeyValueCache cache(texts);
  texts.extend(3, 6);
  cache.append(keys, keys);
  texts.select({2, 0, 2});
  texts.drop_last(1);
  const Tensor more = random_tensor({3, 1, 1, 2}, 3);
  texts.extend(3, 1);
  cache.append(more, more);
  const Tensor all = cache.gathered(DType::f32).first;
  EXPECT_EQ(all.shape(), (Shape{3, 1, 6, 2}));
  expect_close(all.select(0, 0).narrow(1, 0, 5), keys.select(0, 2).narrow(1, 0, 5), 0);
  expect_close(all.select(0, 1).narrow(1, 0, 5), keys.select(0, 0).narrow(1, 0, 5), 0);
  expect_close(all.select(0, 2).narrow(1, 0, 5), keys.select(0, 2).narrow(1, 0, 5), 0);
  expect_close(all.narrow(2, 5, 1), more, 0);
}

// Five beams behind a prompt of 50 tokens take the memory of a prompt and of their own tokens.
TEST(KeyValueCache, SharesWhatTextsHaveInCommon) {
  TextSlots texts;
  texts.extend(1, 50);
  texts.select({0, 0, 0, 0, 0});
  texts.extend(5, 1);
  EXPECT_EQ(texts.slots(), 55);
  texts.select({1, 1, 1, 3, 3});
  texts.extend(5, 1);
  EXPECT_EQ(texts.slots(), 57) << "three slots were free again";
  EXPECT_EQ(texts.length(), 52);
}

TEST(KeyValueCache, TakesOverTextsOfAnyLength) {
  const Tensor keys = random_tensor({1, 2, 9, 4}, 1);
  const Tensor others = random_tensor({2, 2, 4, 4}, 2);
  for (const DType dtype : {DType::f32, DType::i8}) {
    TextSlots texts, other_texts;
    KeyValueCache cache(texts, dtype), other(other_texts, dtype);
    texts.extend(1, 9);
    cache.append(keys, keys);
    other_texts.extend(2, 4);
    other.append(others, others);
    const Tensor held = other.gathered(DType::f32).first;
    cache.join(other, texts.join(other_texts));
    EXPECT_EQ(texts.lengths().values(), (std::vector<float>{9, 4, 4}));
    EXPECT_NE(error_of([&] { cache.gathered(DType::f32); }).find("texts of 4 and of 9 tokens"), std::string::npos);
    texts.select({2, 1});
    const Tensor left = cache.gathered(DType::f32).first;
    expect_close(left.select(0, 0), held.select(0, 1), 0);
    expect_close(left.select(0, 1), held.select(0, 0), 0);
  }
}

TEST(KeyValueCache, RefusesOtherShapes) {
  TextSlots texts;
  KeyValueCache cache(texts);
  texts.extend(1, 3);
  const Tensor keys = Tensor::zeros({1, 2, 3, 4});
  cache.append(keys, keys);
  const Tensor others = Tensor::zeros({1, 1, 3, 4});
  EXPECT_EQ(error_of([&] { cache.append(others, others); }),
            "the cache of 1 texts holds rows [2, 64, 4], to which [1, 1, 3, 4] cannot be added");
  EXPECT_EQ(error_of([&] { texts.drop_last(4); }), "the cache holds 3 tokens of a text, not 4");
  EXPECT_EQ(error_of([&] { texts.extend(2, 1); }), "the cache holds 1 texts, to which tokens of 2 cannot be added");
}

}  // namespace
}  // namespace vitrail::nn
