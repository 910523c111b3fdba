// What a nineteenth newcomer stumbled over, who brought folders of transformers and archives of parts.
#include <filesystem>
#include <fstream>
#include <string>

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
  static void write(const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; }
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

TEST_F(NineteenthWalk, TellsNoClassesApartThatDoNotExcludeEachOther) {
  const std::string image = " " + path("data/train/red/0.png");
  const std::string several = with("hf_vit", "several", "problem_type", "multi_label_classification");
  refuses("predict " + several + image, "'problem_type' is 'multi_label_classification'");
  const Outcome anew = vitrail("predict " + several + image + " --num-classes 2");
  EXPECT_EQ(anew.status, 0) << anew.err;
}

TEST_F(NineteenthWalk, TrainsLabelsThatExcludeEachOtherFromThoseThatDoNot) {
  const std::string several = with("predictions/classes", "labels", "problem_type", "multi_label_classification");
  write("moods.tsv", "good\ttwo dogs\nbad\tsnow\ngood\tthe man\nbad\ttwo snow\n");
  const Outcome trained =
      vitrail("train " + path("moods.tsv") + " --task classify-text --model " + several +
              " --epochs 1 -b 2 --val-share 0 --threads 1 --output " + path("runs") + " --experiment moods");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_FALSE(io::read_json(path("runs/moods/last/config.json")).contains("problem_type"));
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
  EXPECT_THAT(info.out, AllOf(HasSubstr("Images of classes"), Not(HasSubstr("Sequences"))));
}

}  // namespace
}  // namespace vitrail::test
