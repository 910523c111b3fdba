#include "vitrail/train/bench/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace vitrail::train {
namespace {

// 8 images in 100 ms, then 10 ms of the optimizer; two buckets of 1 MB, complete after half of it and at the end.
MeasuredStep step() {
  MeasuredStep step;
  step.unit = "image";
  step.units = 8;
  step.compute = {0.1};
  step.update = 0.01;
  step.buckets = {{1e6, 0.5}, {1e6, 1}};
  step.addition = 1e12;
  step.threads = 1;
  return step;
}

Fabric fabric(double bytes_per_second) { return {.bytes_per_second = bytes_per_second}; }

TEST(Scaling, OneRankWaitsForNobody) {
  const Prediction one = predict(step(), fabric(1e6), {.ranks = 1});
  EXPECT_NEAR(one.seconds, 0.11, 1e-9);
  EXPECT_EQ(one.exposed, 0);
  EXPECT_NEAR(one.efficiency, 1, 1e-9);
  EXPECT_NEAR(one.units_per_second, 8 / 0.11, 1e-6);
}

TEST(Scaling, HidesWhatTravelsUnderBackward) {
  // A sum of 1 MB on two ranks at 50 MB/s takes 20 ms: the first is hidden, the second comes after backward.
  const Prediction two = predict(step(), fabric(50e6), {.ranks = 2});
  EXPECT_NEAR(two.exposed, 0.02, 1e-5);
  EXPECT_NEAR(two.seconds, 0.13, 1e-5);
  EXPECT_NEAR(two.efficiency, 0.11 / 0.13, 1e-4);
  EXPECT_NEAR(two.units_per_second, 16 / 0.13, 0.01);
}

TEST(Scaling, QueuesBucketsOnASlowLink) {
  // At 10 MB/s 100 ms each: the first ends 50 ms after backward, the second 100 ms later.
  EXPECT_NEAR(predict(step(), fabric(10e6), {.ranks = 2}).exposed, 0.15, 1e-5);
  EXPECT_NEAR(predict(step(), fabric(10e6), {.ranks = 2, .wire = 0.5}).exposed, 0.05, 1e-5);
}

TEST(Scaling, SendsOnceForAccumulatedBatches) {
  const Prediction four = predict(step(), fabric(50e6), {.ranks = 2, .accumulated = 4});
  EXPECT_NEAR(four.seconds, 0.4 + 0.02 + 0.01, 1e-5);
  EXPECT_NEAR(four.units_per_second, 64 / 0.43, 0.1);
}

TEST(Scaling, WaitsForTheSlowest) {
  MeasuredStep uneven = step();
  uneven.compute = {0.1, 0.3};
  uneven.buckets.clear();
  EXPECT_NEAR(predict(uneven, fabric(1e9), {.ranks = 1}).seconds, 0.2 + 0.01, 1e-9);
  EXPECT_NEAR(predict(uneven, fabric(1e9), {.ranks = 2}).seconds, 0.25 + 0.01, 1e-9);  // the largest of two draws
  EXPECT_NEAR(predict(uneven, fabric(1e9), {.ranks = 512}).seconds, 0.3 + 0.01, 1e-9);
}

TEST(Scaling, CountsTheProcessorsWork) {
  Fabric busy = fabric(1e12);
  busy.cpu_per_byte = 1e-8;  // 10 ns for each of 2 MB
  EXPECT_NEAR(predict(step(), busy, {.ranks = 2}).seconds, 0.11 + 0.02, 1e-4);
}

TEST(Scaling, ASumTakesTwoRoundsOfMessages) {
  const Fabric far{.latency = 1e-3, .per_message = 1e-4, .bytes_per_second = 1e8};
  EXPECT_EQ(sum_seconds(far, 1e6, 1e9, {.ranks = 1}), 0);
  EXPECT_NEAR(sum_seconds(far, 1e6, 1e9, {.ranks = 2}), 2e-3 + 0.01 + 0.0005, 1e-9);
  EXPECT_NEAR(sum_seconds(far, 1e6, 1e9, {.ranks = 4}), 2 * (1e-3 + 2e-4) + 0.015 + 0.00075, 1e-9);
}

TEST(Scaling, MeasuresAStep) {
  BenchmarkOptions options;
  options.create.model_kwargs = R"({"img_size": 8, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 2})";
  options.create.num_classes = 3;
  options.batch_size = 5;
  options.steps = 4;
  options.warmup = 1;
  const MeasuredStep step = measure_step(options, 1 << 10);
  EXPECT_EQ(step.compute.size(), 4U);
  EXPECT_NEAR(step.units, 5, 1e-6);
  EXPECT_GT(step.update, 0);
  EXPECT_GT(step.addition, 0);
  ASSERT_GT(step.buckets.size(), 3U);
  double bytes = 0;
  for (const MeasuredStep::Bucket& bucket : step.buckets) {
    EXPECT_GT(bucket.ready, 0.1) << "after the forward pass";
    EXPECT_LE(bucket.ready, 1);
    bytes += bucket.bytes;
  }
  const std::int64_t count = models::create_model(options.model, options.create).net->parameters.count();
  EXPECT_GE(bytes, 4.0 * static_cast<double>(count));
  EXPECT_LT(bytes, 4.4 * static_cast<double>(count)) << "cache lines are filled up";
  EXPECT_LT(step.buckets.front().ready, step.buckets.back().ready);
  options.training = false;
  EXPECT_THAT(test::error_of([&] { measure_step(options, 1 << 10); }), testing::HasSubstr("only training"));
}

}  // namespace
}  // namespace vitrail::train
