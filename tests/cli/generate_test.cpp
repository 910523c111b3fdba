// `vitrail train --task lm` and `vitrail generate`, as a person types them.
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"

namespace vitrail {
namespace {

using test::Outcome;
using test::vitrail;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Generate : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryFolder;
    std::ofstream text(*folder_ / "text.txt");
    for (int i = 0; i < 60; ++i) {
      text << "der Bär ist da. ";
    }
    text.close();
    trained_ = vitrail("train " + path("text.txt") +
                       " --task lm --model-kwargs n_layer=2 n_head=2 n_embd=24 --block-size 40 "
                       "--epochs 30 --lr 1e-2 -b 4 --drop 0 --threads 1 --output " +
                       path("runs") + " --experiment one");
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static Outcome generate(const std::string& arguments, const std::string& input = "") {
    return vitrail("generate " + path("runs/one") + " " + arguments + " --threads 1", input);
  }

  static inline test::TemporaryFolder* folder_ = nullptr;
  static inline Outcome trained_;
};

TEST_F(Generate, HoldsWeightsInInt8) {
  const Outcome f32 = generate("'der B' --max-new-tokens 20"), int8 = generate("'der B' --max-new-tokens 20 --int8");
  EXPECT_EQ(int8.status, 0) << int8.err;
  EXPECT_EQ(int8.out, f32.out) << "what was learnt by heart is not forgotten";
  EXPECT_EQ(generate("'der B' --max-new-tokens 20 --dtype int8").out, int8.out);
}

TEST_F(Generate, ContinuesWhatWasLearned) {
  ASSERT_EQ(trained_.status, 0) << trained_.err;
  EXPECT_THAT(trained_.out, HasSubstr("what it writes by itself: "));
  const Outcome greedy = generate("'der B' --max-new-tokens 11");
  EXPECT_EQ(greedy.status, 0) << greedy.err;
  EXPECT_EQ(greedy.out, "der Bär ist da. \n");
  EXPECT_EQ(generate("'der B' --max-new-tokens 11 --stream").out, greedy.out);
  EXPECT_EQ(generate("- --max-new-tokens 11", "der B").out, greedy.out);
  EXPECT_EQ(generate("'der B' --num-beams 3 --max-new-tokens 11").out, greedy.out);
  EXPECT_EQ(generate("'der B' --stop ist").out, "der Bär ist\n");
  std::ofstream(path("prompts.txt")) << "der \ndie\n";
  EXPECT_THAT(generate("--prompts " + path("prompts.txt") + " --max-new-tokens 2").out, StartsWith("der Bä\ndie"));
  EXPECT_EQ(generate("'der B' --do-sample --temperature 2 --seed 4 --max-new-tokens 9").out,
            generate("'der B' --do-sample --temperature 2 --seed 4 --max-new-tokens 9").out);
}

TEST_F(Generate, TellsOfItsPaceAsJson) {
  const Outcome outcome = generate("'der B' --num-beams 4 --num-return-sequences 2 --max-new-tokens 6 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["prompt"], "der B");
  EXPECT_EQ(json["prompt_tokens"], 5);
  EXPECT_EQ(json["new_tokens"], 6);
  ASSERT_EQ(json["sequences"].size(), 2U);
  EXPECT_EQ(json["sequences"][0]["text"], "der Bär ist");
  EXPECT_GT(json["sequences"][0]["score"], json["sequences"][1]["score"]);
  EXPECT_GT(json["tokens_per_second"], 0);
}

TEST_F(Generate, ObeysTheModelsOwnConfigAndSaysSo) {
  const std::string folder = path("with_config");
  std::filesystem::copy(path("runs/one/best"), folder);
  std::ofstream(folder + "/generation_config.json") << R"({"max_new_tokens": 3, "num_beams": 2, "eos_token_id": null})";
  const Outcome outcome = vitrail("generate " + folder + " 'der B'");
  EXPECT_EQ(outcome.out, "der Bär \n");
  EXPECT_THAT(outcome.err, HasSubstr("generation_config.json: num_beams 2, max_new_tokens 3"));
  EXPECT_EQ(vitrail("generate " + folder + " 'der B' --max-new-tokens 1").out, "der Bä\n");
  std::ofstream(folder + "/generation_config.json") << R"({"top_p": 2})";
  EXPECT_THAT(vitrail("generate " + folder + " x").err, HasSubstr("generation_config.json: top_p must be above 0"));
}

TEST_F(Generate, SaysWhatIsWrong) {
  const auto fails = [](const Outcome& outcome, int status, const std::string& words) {
    EXPECT_EQ(outcome.status, status) << words;
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(outcome.out, "");
  };
  fails(generate("x --do-sample --top-p 0"), 2, "top_p must be above 0 and at most 1, not 0");
  fails(generate("x --num-beams 2 --num-return-sequences 3"), 2,
        "num_return_sequences 3 must not be more than num_beams 2");
  fails(generate("x --prompts y"), 2, "PROMPT and --prompts exclude each other");
  fails(generate("x --stream --json"), 2, "--stream prints one text as it comes");
  fails(generate(""), 1, "there is nothing to continue: name a prompt");
  fails(generate("'der' --max-new-tokens 50"), 1, "but the model is made for at most 40");
  fails(vitrail("generate gpt2 x"), 1, "'gpt2' is the name of a model, whose weights are random");
  fails(vitrail("generate nowhere x"), 1, "nowhere");
}

TEST_F(Generate, HasModelsThatInfoDescribes) {
  const Outcome info = vitrail("info " + path("runs/one"));
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("which predicts the next token"));
  const nlohmann::json json = nlohmann::json::parse(vitrail("info smollm2-135m --json").out);
  EXPECT_EQ(json["parameters"], 134515008);
  EXPECT_EQ(json["num_kv_heads"], 3);
}

}  // namespace
}  // namespace vitrail
