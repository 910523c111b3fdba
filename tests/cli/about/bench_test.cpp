// vitrail bench.
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

class Bench : public Commands {};

TEST_F(Bench, PrintsOneJsonObject) {
  const Outcome outcome = vitrail("bench train --model " + best() + " --batch-size 2 --steps 2 --json --threads 1");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  for (const char* key : {"step_ms", "images_per_second", "flops_per_image", "peak_gflops", "mfu", "peak_memory_bytes",
                          "threads", "cpu"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_GT(json["step_ms"]["min"].get<double>(), 0);
  EXPECT_LE(json["step_ms"]["min"].get<double>(), json["step_ms"]["median"].get<double>());
}

TEST_F(Bench, ProfilesTheOps) {
  const Outcome outcome = vitrail("bench infer --model " + best() + " --batch-size 2 --steps 2 --threads 1 --profile " +
                                  "--trace " + path("trace.json") + " --output " + path("bench.json"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("attention"));
  EXPECT_THAT(outcome.out, HasSubstr("GB/s"));
  EXPECT_TRUE(nlohmann::json::parse(std::ifstream(path("trace.json"))).contains("traceEvents"));
  EXPECT_TRUE(nlohmann::json::parse(std::ifstream(path("bench.json"))).contains("profile"));
}

class BenchOfTexts : public InAFolder {};

TEST_F(BenchOfTexts, TakesLanguageModels) {
  const std::string small =
      " --model gpt2 --model-kwargs n_layer=1 n_embd=16 n_head=2 vocab_size=30 --steps 2 --threads 1";
  const Outcome train = vitrail("bench train --batch-size 2 --seq-len 8" + small);
  ASSERT_EQ(train.status, 0) << train.err;
  EXPECT_THAT(train.out, HasSubstr("tokens/s"));
  const Outcome generate = vitrail("bench generate --prompt-len 4 --new-tokens 5 --json" + small);
  ASSERT_EQ(generate.status, 0) << generate.err;
  EXPECT_GT(nlohmann::json::parse(generate.out)["tokens_per_second"].get<double>(), 0);
  EXPECT_THAT(vitrail("bench generate --prompt-len 4 --new-tokens 5" + small).out, HasSubstr("MB a token"));
  const Outcome refused = vitrail("bench train --new-tokens 5" + small);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--new-tokens has no effect on train: only generate continues texts"));
}

TEST_F(BenchOfTexts, TimesRecurrentTranslators) {
  const std::string bench = " --model lstm_bahdanau --model-kwargs hidden_size=8 vocab_size=50 --steps 1 --warmup 0";
  const std::string lengths = " --lengths " + write("lengths.txt", "5 6\n7 8\n");
  EXPECT_THAT(vitrail("bench train" + bench + lengths).out, HasSubstr("tokens/s"));
  EXPECT_THAT(vitrail("bench infer --seq-len 8" + bench).out, HasSubstr("sentences/s"));
  EXPECT_THAT(vitrail("bench generate --new-tokens 4" + bench).out, HasSubstr("new tokens"));
  EXPECT_THAT(vitrail("bench train --seq-len 8" + bench).out, HasSubstr("tokens/s")) << "pairs of that length";
}

}  // namespace
}  // namespace vitrail::test
