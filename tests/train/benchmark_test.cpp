#include "vitrail/train/benchmark.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"

namespace vitrail::train {
namespace {

BenchmarkOptions tiny(bool training) {
  BenchmarkOptions options;
  options.create.model_kwargs = R"({"img_size": 8, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 2})";
  options.create.num_classes = 3;
  options.training = training;
  options.batch_size = 5;
  options.steps = 4;
  options.warmup = 1;
  return options;
}

TEST(Benchmark, MeasuresTrainingAndInference) {
  const BenchmarkResult train = benchmark(tiny(true));
  const BenchmarkResult infer = benchmark(tiny(false));
  EXPECT_EQ(train.mode, "train");
  EXPECT_EQ(infer.mode, "infer");
  EXPECT_DOUBLE_EQ(train.flops_per_image, 3 * infer.flops_per_image) << "forward and two products of backward";
  for (const BenchmarkResult& result : {train, infer}) {
    EXPECT_GT(result.step_ms_min, 0);
    EXPECT_GE(result.step_ms_median, result.step_ms_min);
    EXPECT_NEAR(result.images_per_second, 5e3 / result.step_ms_median, 1e-6);
    EXPECT_GT(result.peak_gflops, 0);
    EXPECT_GT(result.mfu, 0);
    EXPECT_LT(result.mfu, 1);
    EXPECT_GT(result.peak_memory_bytes, 0);
  }
}

TEST(Benchmark, IsOneJsonObject) {
  const nlohmann::json json = nlohmann::json::parse(to_json(benchmark(tiny(false))));
  for (const char* key :
       {"images_per_second", "flops_per_image", "peak_gflops", "mfu", "peak_memory_bytes", "threads"}) {
    EXPECT_TRUE(json.at(key).is_number()) << key;
  }
  EXPECT_TRUE(json.at("step_ms").at("min").is_number());
  EXPECT_TRUE(json.at("step_ms").at("median").is_number());
  EXPECT_TRUE(json.at("cpu").is_string());
}

TEST(Benchmark, RefusesNothingToDo) {
  BenchmarkOptions options = tiny(true);
  options.steps = 0;
  EXPECT_THROW(benchmark(options), Error);
  options = tiny(true);
  options.create.num_classes = 0;
  EXPECT_THROW(benchmark(options), Error);
}

}  // namespace
}  // namespace vitrail::train
