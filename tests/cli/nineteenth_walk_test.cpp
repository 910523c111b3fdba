// What a nineteenth newcomer stumbled over, who brought folders of transformers and archives of parts.
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"

namespace vitrail::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class NineteenthWalk : public Commands {
 protected:
  // A folder of the golden ones, of which the config.json says `key` too.
  static std::string with(const std::string& golden, const std::string& name, const std::string& key,
                          const std::string& value) {
    fs::copy(golden_path("models/" + golden), path(name), fs::copy_options::recursive);
    Json config = io::read_json(path(name + "/config.json"));
    config[key] = value;
    write(name + "/config.json", config.dump());
    return path(name);
  }
};

// The probabilities of a folder's classes for an image, in their order.
std::vector<double> probabilities(const std::string& model, const std::string& image) {
  const Outcome told = vitrail("predict " + model + " " + image + " --format json --topk 100");
  EXPECT_EQ(told.status, 0) << told.err;
  const Json said = Json::parse(told.out);
  std::vector<double> result(said[0]["top"].size());
  for (const Json& one : said[0]["top"]) {
    result.at(one["index"].get<std::size_t>()) = one["probability"].get<double>();
  }
  return result;
}

TEST_F(NineteenthWalk, GivesEachClassItsOwnProbabilityWhereTheyDoNotExcludeEachOther) {
  const std::string image = path("data/train/red/0.png");
  const std::string several = with("hf_vit", "several", "problem_type", "multi_label_classification");
  const std::vector<double> alone = probabilities(several, image);
  const std::vector<double> together = probabilities(golden_path("models/hf_vit"), image);
  ASSERT_EQ(alone.size(), together.size());
  const auto logit = [&](std::size_t i) { return std::log(alone[i] / (1 - alone[i])); };
  for (std::size_t i = 1; i < alone.size(); ++i) {
    EXPECT_NEAR(logit(i) - logit(0), std::log(together[i] / together[0]), 1e-4);
  }
  EXPECT_GT(std::abs(std::accumulate(alone.begin(), alone.end(), 0.0) - 1), 1e-2);
  ASSERT_EQ(vitrail("convert " + several + " --output " + path("timm") + " --layout timm").status, 0);
  EXPECT_EQ(probabilities(path("timm"), image), alone);
  fs::create_directories(path("ants"));
  fs::copy(path("data/train/red"), path("ants/ant"));
  fs::copy(path("data/train/blue"), path("ants/bee"));
  refuses("eval " + several + " " + path("ants"), "its 'problem_type' is");
  const std::string numbers = with("hf_vit", "numbers", "problem_type", "regression");
  refuses("predict " + numbers + " " + image, "predicts numbers ('problem_type' is 'regression'");
  refuses("predict " + with("hf_vit", "other", "problem_type", "multi_label") + " " + image, "'problem_type'");
}

TEST_F(NineteenthWalk, TrainsLabelsThatExcludeEachOtherFromThoseThatDoNot) {
  const std::string several = with("predictions/classes", "labels", "problem_type", "multi_label_classification");
  write("moods.tsv", "good\ttwo dogs\nbad\tsnow\ngood\tthe man\nbad\ttwo snow\n");
  const Outcome trained =
      vitrail("train " + path("moods.tsv") + " --task classify-text --model " + several +
              " --epochs 1 -b 2 --val-share 0 --threads 1 --output " + path("runs") + " --experiment moods");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_FALSE(io::read_json(path("runs/moods/last/config.json")).contains("problem_type"));
  refuses("eval " + several + " " + path("moods.tsv"), "do not exclude each other ('problem_type' is");
  write("moods.csv", "text,label\ntwo dogs,good\nsnow,bad\n");
  refuses("train " + path("moods.csv") + " --output " + path("runs"), "what is there is for --task classify-text");
}

TEST_F(NineteenthWalk, KeepsHowAModelGenerates) {
  write("text.txt", "a cat and a dog and a cat and a dog and a bird and a cat and a bird and a dog\n");
  const std::string flags = " --task lm --block-size 4 --epochs 1 -b 2 --threads 1 --output " + path("runs");
  ASSERT_EQ(vitrail("train " + path("text.txt") + " --model-kwargs n_layer=1 n_head=1 n_embd=8" + flags +
                    " --experiment first")
                .status,
            0);
  const std::string said = R"({"max_new_tokens": 3, "repetition_penalty": 1.3})";
  write("runs/first/best/generation_config.json", said);
  ASSERT_EQ(
      vitrail("train " + path("text.txt") + " --model " + path("runs/first") + flags + " --experiment second").status,
      0);
  EXPECT_EQ(io::read_text(path("runs/second/best/generation_config.json")), said);
}

TEST_F(NineteenthWalk, DoesNotTakeAModelForItsBaseOrItsWeightsForAnOutput) {
  const std::string adapted = with("text/gpt2", "adapted", "model_type", "gpt2");
  write("adapted/adapter_config.json", "{}");
  refuses("generate " + adapted + " x", "join it with its model first");
  const std::string weights = path("weights/model.safetensors");
  fs::copy(golden_path("models/text/gpt2"), path("weights"), fs::copy_options::recursive);
  const std::string before = io::read_text(weights);
  refuses("embed " + best() + " " + path("data") + " --output " + weights, "belongs to a model");
  EXPECT_EQ(io::read_text(weights), before);
}

TEST_F(NineteenthWalk, SaysHowToLearnFromPartsWithYears) {
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 4").status, 0);
  fs::create_directories(path("coco/annotations"));
  for (const char* part : {"train2017", "val2017"}) {
    fs::copy(path("scenes/images"), path("coco/") + part);
    fs::copy(path("scenes/instances.json"), path("coco/annotations/instances_") + part + ".json");
  }
  EXPECT_THAT(vitrail("info " + path("coco")).out, HasSubstr("vitrail train " + path("coco") + " --task detect\n"));
}

TEST_F(NineteenthWalk, DoesNotSayOfATableWithPartsThatItIsLearnt) {
  write("parts.csv", "text,label,split\ntwo dogs,good,train\nsnow,bad,train\nthe man,good,test\n");
  const std::string runs = path("parted");
  ASSERT_EQ(vitrail("train " + path("parts.csv") + " --task classify-text --model " +
                    golden_path("models/predictions/classes").string() +
                    " --val-split test --epochs 1 -b 2 --threads 1 --output " + runs + " --experiment one")
                .status,
            0);
  const Outcome whole = vitrail("eval " + runs + "/one " + path("parts.csv") + " --threads 1");
  EXPECT_THAT(whole.err, AllOf(HasSubstr("choose one of them (--split"), Not(HasSubstr("has learnt these"))));
}

TEST_F(NineteenthWalk, TakesPartsInAnArchiveForNoClasses) {
  const std::string archive = path("parts.tar");
  ASSERT_EQ(std::system(("tar cf " + archive + " -C " + path("data") + " .").c_str()), 0);
  const Outcome info = vitrail("info " + archive);
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_THAT(info.out, AllOf(HasSubstr("Images of classes"), HasSubstr("validation   32 images"),
                              HasSubstr("vitrail train " + archive + "\n"), Not(HasSubstr("Sequences"))));
  const std::string loose = copy_of_data("loose");
  fs::copy(path("data/train/red/0.png"), loose + "/train/0.png");
  ASSERT_EQ(std::system(("tar cf " + path("loose.tar") + " -C " + loose + " .").c_str()), 0);
  EXPECT_THAT(train(path("loose.tar"), "loose").err, HasSubstr("train/0.png lies outside of any class folder"));
}

}  // namespace
}  // namespace vitrail::test
