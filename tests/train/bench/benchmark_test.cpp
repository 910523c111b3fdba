#include "vitrail/train/bench/benchmark.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "vitrail/train/bench/profile_report.h"

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

TEST(Benchmark, MeasuresPretraining) {
  BenchmarkOptions options = tiny(true);
  options.create.model_kwargs = R"({"img_size": 16, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 2})";
  const auto with_ratio = [&](double ratio) {
    options.pretraining =
        models::MaeOptions{.mask_ratio = ratio, .decoder_dim = 16, .decoder_depth = 1, .decoder_heads = 2};
    return benchmark(options);
  };
  const BenchmarkResult most_hidden = with_ratio(0.75);
  EXPECT_EQ(most_hidden.mode, "pretrain");
  EXPECT_GT(most_hidden.step_ms_min, 0);
  EXPECT_LT(most_hidden.flops_per_image, with_ratio(0.25).flops_per_image);
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

TEST(Benchmark, ProfilesEveryOp) {
  BenchmarkOptions options = tiny(true);
  options.profile = true;
  const BenchmarkResult result = benchmark(options);
  const std::vector<ProfileRow> rows = profile_rows(result.events, result.steps);
  const auto row = [&](const std::string& op, Profile::Phase phase) {
    const auto it = std::ranges::find_if(rows, [&](const ProfileRow& r) { return r.op == op && r.phase == phase; });
    return it == rows.end() ? ProfileRow() : *it;
  };
  const ProfileRow forward = row("linear", Profile::Phase::forward);
  const ProfileRow backward = row("linear", Profile::Phase::backward);
  EXPECT_EQ(forward.calls, 10) << "the patches, four in each of two blocks, the head";
  EXPECT_EQ(backward.calls, 10);
  EXPECT_LT(backward.flops, 2 * forward.flops) << "no gradient of the images";
  EXPECT_GT(backward.flops, 1.9 * forward.flops) << "one product for dx and one for dW";
  EXPECT_GT(forward.bytes, 0);
  EXPECT_GT(row("optimizer", Profile::Phase::update).calls, 30) << "for each parameter when its gradient is complete";
  double share = 0;
  double seconds = 0;
  double flops = 0;
  for (const ProfileRow& r : rows) {
    share += r.share;
    seconds += r.seconds;
    flops += r.flops;
  }
  EXPECT_NEAR(share, 1, 1e-9);
  double end = 0;  // of the last event, since the profile began
  for (const Profile::Event& event : result.events) {
    end = std::max(end, event.begin + event.seconds);
  }
  EXPECT_LE(seconds * static_cast<double>(result.steps), end * (1 + 1e-9)) << "no time is counted twice";
  // Attention works out its scores once more in backward.
  EXPECT_NEAR(flops, result.flops_per_image * 5, 0.2 * flops);
  const std::string table = profile_table(rows, result.peak_gflops, result.bandwidth);
  EXPECT_NE(table.find("layer_norm"), std::string::npos) << table;
  const nlohmann::json trace = nlohmann::json::parse(chrome_trace(result.events));
  EXPECT_EQ(trace.at("traceEvents").size(), result.events.size());
  EXPECT_EQ(trace.at("traceEvents")[0].at("ph"), "X");
  EXPECT_TRUE(nlohmann::json::parse(to_json(result)).at("profile").is_array());
}

TEST(Benchmark, RunsInInt8) {
  BenchmarkOptions options = tiny(false);
  options.create.model_kwargs = R"({"img_size": 8, "patch_size": 4, "embed_dim": 64, "depth": 1, "num_heads": 2})";
  options.int8 = true;
  EXPECT_EQ(benchmark(options).dtype, "int8");
  options.training = true;
  EXPECT_THROW(benchmark(options), Error);
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
