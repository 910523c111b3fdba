#include "vitrail/nn/positions/distance_bias.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/nn/positions/alibi.h"

namespace vitrail::nn {
namespace {

using test::error_of;
using test::expect_close;

// Element `offset` of the distances -(length - 1) … length - 1.
float at(const Tensor& bias, std::int64_t head, std::int64_t offset) {
  return bias.data<float>()[head * bias.size(1) + bias.size(1) / 2 + offset];
}

TEST(RelativePositionBucket, IsThatOfT5) {
  const io::Safetensors golden = test::golden("models/text_positions/buckets.safetensors");
  ASSERT_EQ(golden.names().size(), 10U);
  for (const std::string& name : golden.names()) {
    const std::size_t dot = name.find('.');
    const std::int64_t count = std::stoll(name.substr(0, dot));
    const std::int64_t farthest = std::stoll(name.substr(dot + 1));
    const Tensor expected = golden.get(name);
    for (std::int64_t i = 0; i < expected.numel(); ++i) {
      ASSERT_EQ(relative_position_bucket(i - 5000, name.ends_with("both"), count, farthest),
                expected.data<std::uint8_t>()[i])
          << name << " at " << i - 5000;
    }
  }
}

TEST(DistanceBias, IsLinearWithSlopesThatMayBeTrained) {
  ParameterStore store;
  const DistanceBias fixed(Scope(store), {.kind = DistanceBiasKind::alibi, .num_heads = 6});
  EXPECT_TRUE(store.all().empty());
  const DistanceBias trained(Scope(store) / "places", {.kind = DistanceBiasKind::alibi_learned, .num_heads = 6});
  const std::vector<float> slopes = alibi_slopes(6);
  EXPECT_EQ(store.at("places.alibi_slopes").value.values(), slopes);
  const Tensor bias = fixed(5);
  ASSERT_EQ(bias.shape(), (Shape{6, 9}));
  expect_close(trained(5), bias, 0);
  for (std::int64_t h = 0; h < 6; ++h) {
    EXPECT_FLOAT_EQ(at(bias, h, -3), -3 * slopes[static_cast<std::size_t>(h)]);
    EXPECT_FLOAT_EQ(at(bias, h, 3), -3 * slopes[static_cast<std::size_t>(h)]);
    EXPECT_EQ(at(bias, h, 0), 0);
  }
  store.at("places.alibi_slopes").value.fill(2);
  EXPECT_EQ(at(trained(5), 4, -4), -8);
}

TEST(DistanceBias, LooksOffsetsUpAndClipsThem) {
  ParameterStore store;
  const DistanceBias both(Scope(store) / "both",
                          {.kind = DistanceBiasKind::offsets, .num_heads = 2, .max_distance = 3});
  const DistanceBias back(
      Scope(store) / "back",
      {.kind = DistanceBiasKind::offsets, .num_heads = 2, .bidirectional = false, .max_distance = 3});
  const Tensor table = store.at("both.relative_attention_bias.weight").value;
  const Tensor half = store.at("back.relative_attention_bias.weight").value;
  ASSERT_EQ(table.shape(), (Shape{7, 2}));
  ASSERT_EQ(half.shape(), (Shape{4, 2}));
  for (std::int64_t offset = -5; offset <= 5; ++offset) {
    const std::int64_t near = std::clamp<std::int64_t>(offset, -3, 3);
    EXPECT_EQ(at(both(6), 1, offset), table.values()[static_cast<std::size_t>(2 * (3 + near) + 1)]) << offset;
    if (offset <= 0) {
      EXPECT_EQ(at(back(6), 1, offset), half.values()[static_cast<std::size_t>(2 * -near + 1)]) << offset;
    }
  }
}

TEST(DistanceBias, SaysWhatCannotBe) {
  ParameterStore store;
  const auto error = [&](const DistanceBiasConfig& config) {
    return error_of([&] { DistanceBias(Scope(store) / "places", config); });
  };
  EXPECT_EQ(error({.kind = DistanceBiasKind::buckets, .num_heads = 2, .num_buckets = 3}),
            "places: 3 buckets of relative positions cannot reach up to 128: there are 1 for a direction, half of them "
            "for one distance each");
  EXPECT_EQ(error({.kind = DistanceBiasKind::buckets, .num_heads = 2, .num_buckets = 32, .max_distance = 8}),
            "places: 32 buckets of relative positions cannot reach up to 8: there are 16 for a direction, half of them "
            "for one distance each");
  EXPECT_EQ(error({.kind = DistanceBiasKind::offsets, .num_heads = 2, .max_distance = 0}),
            "places: relative positions need a distance of at least 1, not 0");
}

}  // namespace
}  // namespace vitrail::nn
