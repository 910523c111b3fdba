#include "vitrail/train/bench/benchmark.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/train/bench/generation.h"
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
  EXPECT_DOUBLE_EQ(train.flops_per_unit, 3 * infer.flops_per_unit) << "forward and two products of backward";
  for (const BenchmarkResult& result : {train, infer}) {
    EXPECT_GT(result.step_ms_min, 0);
    EXPECT_GE(result.step_ms_median, result.step_ms_min);
    EXPECT_NEAR(result.units_per_second, 5e3 / result.step_ms_median, 1e-6);
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
  EXPECT_LT(most_hidden.flops_per_unit, with_ratio(0.25).flops_per_unit);
}

BenchmarkOptions tiny_text(bool training) {
  BenchmarkOptions options;
  options.model = "gpt2";
  options.create.model_kwargs = R"({"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 50})";
  options.training = training;
  options.batch_size = 3;
  options.seq_len = 20;
  options.steps = 4;
  options.warmup = 1;
  return options;
}

TEST(Benchmark, CountsTheTokensOfALanguageModel) {
  const BenchmarkResult train = benchmark(tiny_text(true));
  EXPECT_EQ(train.unit, "token");
  EXPECT_EQ(train.model, "gpt2");
  EXPECT_DOUBLE_EQ(train.flops_per_unit, 3 * benchmark(tiny_text(false)).flops_per_unit);
  EXPECT_NEAR(train.units_per_second, 3 * 20 * 1e3 / train.step_ms_median, 1e-6);
  const nlohmann::json json = nlohmann::json::parse(to_json(train));
  EXPECT_TRUE(json.at("tokens_per_second").is_number());
  EXPECT_TRUE(json.at("flops_per_token").is_number());
  BenchmarkOptions long_texts = tiny_text(false);
  long_texts.seq_len = 1025;
  EXPECT_EQ(test::error_of([&] { benchmark(long_texts); }),
            "texts of 1025 tokens are longer than the 1024 positions of 'gpt2' (--seq-len)");
}

TEST(Benchmark, TrainsTheHeadsOfAnEncoder) {
  BenchmarkOptions options = tiny_text(true);
  options.model = "bert-tiny";
  options.create.model_kwargs = R"({"vocab_size": 50})";
  const BenchmarkResult train = benchmark(options);
  EXPECT_EQ(train.unit, "sentence");
  const nlohmann::json json = nlohmann::json::parse(to_json(train));
  EXPECT_NEAR(json.at("tokens_per_second").get<double>() / json.at("sentences_per_second").get<double>(),
              static_cast<double>(options.seq_len), 1e-6);
  options.training = false;
  EXPECT_GT(train.flops_per_unit, 3 * benchmark(options).flops_per_unit) << "of masked words, beside the states alone";
}

TEST(Benchmark, TrainsATranslatorOnPairsOfGivenLengths) {
  BenchmarkOptions options;
  options.model = "transformer-small";
  options.create.model_kwargs = R"({"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 50,
    "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "pad_token_id": 49, "decoder_start_token_id": 49})";
  options.steps = 2;
  options.warmup = 1;
  options.batch_size = 40;
  EXPECT_THAT(test::error_of([&] { benchmark(options); }), testing::HasSubstr("the lengths of some are to be given"));
  options.pair_lengths = {{5, 7}, {9, 4}};
  const BenchmarkResult result = benchmark(options);
  EXPECT_EQ(result.unit, "token");
  EXPECT_GT(result.mfu, 0);
  // 7 + 4 + 7 + 4 + 7 + 4 + 7 tokens of translations: one more would be too many.
  EXPECT_NEAR(result.units_per_second, 40 * 1e3 / result.step_ms_median, 1e-6);
  options.pair_lengths = {{5, 1025}};
  EXPECT_EQ(test::error_of([&] { benchmark(options); }),
            "a text of 1025 tokens is longer than the 1024 positions of 'transformer-small'");
}

TEST(Benchmark, TimesRecurrentTranslators) {
  for (const char* name : {"lstm_bahdanau", "gru_seq2seq"}) {
    BenchmarkOptions options;
    options.model = name;
    options.create.model_kwargs = R"({"hidden_size": 8, "vocab_size": 50})";
    options.steps = 1;
    options.warmup = 0;
    options.batch_size = 20;
    options.pair_lengths = {{5, 7}, {9, 4}};
    const BenchmarkResult trained = benchmark(options);
    EXPECT_EQ(trained.unit, "token") << name;
    EXPECT_NEAR(trained.units_per_second, 18 * 1e3 / trained.step_ms_median, 1e-6) << name;
    options.training = false;
    options.batch_size = 2;
    options.seq_len = 6;
    const BenchmarkResult read = benchmark(options);
    EXPECT_EQ(read.unit, "sentence") << name;
    EXPECT_NEAR(read.units_per_second, 2 * 1e3 / read.step_ms_median, 1e-6) << name;
    GenerationBenchmarkOptions generation;
    generation.model = name;
    generation.create.model_kwargs = options.create.model_kwargs;
    generation.prompt_len = 5;
    generation.new_tokens = 3;
    generation.steps = 1;
    generation.warmup = 0;
    const GenerationBenchmarkResult translated = benchmark_generation(generation);
    EXPECT_GT(translated.tokens_per_second, 0) << name;
    EXPECT_LT(translated.bytes_per_token, 4 * translated.parameters) << name << " reads its source before";
  }
}

TEST(Benchmark, TimesGeneration) {
  GenerationBenchmarkOptions options;
  options.create.model_kwargs = tiny_text(false).create.model_kwargs;
  options.prompt_len = 10;
  options.new_tokens = 7;
  options.steps = 2;
  const GenerationBenchmarkResult one = benchmark_generation(options);
  EXPECT_GT(one.tokens_per_second, 0);
  EXPECT_GT(one.prompt_tokens_per_second, 0);
  // Keys and values of 16 tokens (the last is not read), two layers, width 16.
  EXPECT_GE(one.cache_bytes, 16 * 2 * 2 * 16 * 4);
  // Each weight of two blocks (12 D²) and the head is read once, and a product over one key counts two of width D.
  const double weights = 4.0 * (2 * (12 * 16 * 16 + 2 * 16) + 50 * 16);
  EXPECT_GT(one.bytes_per_token, weights);
  EXPECT_LT(one.bytes_per_token, weights + static_cast<double>(one.cache_bytes));
  EXPECT_GT(one.bandwidth_share, 0);
  options.num_beams = 3;
  EXPECT_GE(benchmark_generation(options).cache_bytes, one.cache_bytes);  // beams share their prompt
  options.batch_size = 2;
  EXPECT_EQ(benchmark_generation(options).batch_size, 2);
  const nlohmann::json json = nlohmann::json::parse(to_json(one));
  for (const char* key : {"prompt_tokens_per_second", "tokens_per_second", "bytes_per_token",
                          "bandwidth_bytes_per_second", "bandwidth_share"}) {
    EXPECT_TRUE(json.at(key).is_number()) << key;
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
  EXPECT_NEAR(flops, result.flops_per_unit * 5, 0.2 * flops);
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
