// vitrail train on images: the run that it makes, and what it says of the data and the model.
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Train : public Commands {};

TEST_F(Train, FillsARunFolder) {
  ASSERT_EQ(trained_.status, 0) << trained_.err;
  for (const char* name : {"config.toml", "metrics.jsonl", "curves.svg", "best/config.json", "best/model.safetensors",
                           "last/config.json", "last/model.safetensors"}) {
    EXPECT_TRUE(fs::exists(path("runs/one/") + name)) << name;
  }
  EXPECT_EQ(trained_.out.find('\r'), std::string::npos) << "control characters in a pipe";
}

TEST_F(Train, DoesNotWriteOverARun) {
  const Outcome again = vitrail("train " + path("data") + " --output " + path("runs") + " --experiment one -b 8");
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, HasSubstr("--resume"));
}

TEST_F(Train, RepeatsARunFromItsConfig) {
  const Outcome again =
      vitrail("train --config " + path("runs/one/config.toml") + " --output " + path("runs") + " --experiment two");
  ASSERT_EQ(again.status, 0) << again.err;
  const auto bytes = [](const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(bytes(path("runs/two/last/model.safetensors")), bytes(path("runs/one/last/model.safetensors")));
}

TEST_F(Train, SaysThatUpdatesAreSmallerThanAsked) {
  EXPECT_THAT(train(path("data"), "short-updates", small() + " --grad-accum-steps 50").out,
              HasSubstr("an update has 4 batches instead of 50: an epoch has no more"));
  EXPECT_THAT(trained_.out, Not(HasSubstr("an epoch has no more")));
}

TEST_F(Train, SaysWhichPixelsPatchesLeaveOut) {
  const std::string flags =
      " --model vit_tiny_patch16_224 --model-kwargs patch_size=4 embed_dim=24 depth=2 num_heads=3 --threads 1 -b 8";
  EXPECT_THAT(train(path("data"), "cut", flags + " --img-size 15").out,
              HasSubstr("15x15 pixels (its patches leave out the last 3 rows and 3 columns)"));
  EXPECT_THAT(trained_.out, Not(HasSubstr("leave out")));
}

class Trainings : public OnImages {};

TEST_F(Trainings, MayStartAtTheSameMoment) {
  const std::string train = VITRAIL_PROGRAM " train " + path("data") + small() + " --epochs 1 --output " + path("many");
  const auto both = [&](const std::string& flags) {
    return std::system((train + flags + " >/dev/null 2>&1 & " + train + flags + " >/dev/null 2>&1; wait").c_str());
  };
  EXPECT_EQ(both(""), 0);
  std::size_t runs = 0;
  for (const auto& run : fs::directory_iterator(path("many"))) {
    runs += fs::exists(run.path() / "last/train-state.safetensors") ? 1U : 0U;
  }
  EXPECT_EQ(runs, 2U) << "each has a folder of its own";
  both(" --experiment same");
  std::ifstream metrics(path("many/same/metrics.jsonl"));
  std::size_t evaluations = 0;
  for (std::string line; std::getline(metrics, line);) {
    evaluations += line.find("top1") != std::string::npos ? 1U : 0U;
  }
  EXPECT_EQ(evaluations, 1U) << "one of them has the folder, the other one is refused";
}

TEST_F(Trainings, MayDoWithoutValidation) {
  const Outcome outcome =
      vitrail("train " + path("data/train") + " --val-split mine --output " + path("runs") + " -b 8");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("--val-split ''"));
  EXPECT_THAT(outcome.err, HasSubstr("hold images out by --val-share"));
}

TEST_F(Trainings, SayThatAnAverageHasHardlyBegun) {
  const std::string train = "train " + path("data") + small() + " --epochs 1 --model-ema --output " + path("runs");
  EXPECT_THAT(vitrail(train).out,
              HasSubstr("the average of --model-ema is still to 100 % the weights that it began with"));
  EXPECT_THAT(vitrail(train + " --model-ema-decay 0.2").out, Not(HasSubstr("note: after all")));
}

TEST_F(Trainings, NameFlagsOfSeveralRanks) {
  const Outcome outcome =
      vitrail("train " + path("data") + small() + " --epochs 1 --grad-dtype bf16 --comm-timeout 5 " + "--output " +
              path("runs") + " --experiment lonely");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("note: --grad-dtype, --comm-timeout are for several ranks"));
}

class ModelArguments : public OnImages {
 protected:
  static void SetUpTestSuite() {
    OnImages::SetUpTestSuite();
    scenes("scenes", 8);
  }
};

TEST_F(ModelArguments, ThatAreNoneAreNamed) {
  refuses(
      "train " + path("scenes") + " --output " + path("runs") + scenes_detector() + " --model-kwargs backbone_kwargs=3",
      "'backbone_kwargs' must be an object, such as {\"channels\": [32, 64, 128]}, but is 3");
  refuses("train " + path("scenes") + " --output " + path("runs") + scenes_detector() +
              " --model-kwargs backbone_kwargs=None",
          "'backbone_kwargs' must be an object");
  const Outcome usual = train_epoch(path("scenes") + scenes_detector() + " --model-kwargs backbone=None", "usual");
  EXPECT_EQ(usual.status, 0) << "as in transformers, the usual one: " << usual.err;
  write("wrong.toml", "model_kwargs = \"img_size=32\"\n");
  refuses(
      "train " + path("data") + " -c " + path("wrong.toml") + " --output " + path("runs"),
      "wrong.toml: 'model_kwargs' must be a text with a JSON object, such as '{\"key\": 32}', but is 'img_size=32'");
  write("list.toml", "decoder_kwargs = \"[]\"\n");
  refuses("train " + path("scenes") + scenes_captioner() + " -c " + path("list.toml") + " --output " + path("runs"),
          "list.toml: 'decoder_kwargs' must be");
}

}  // namespace
}  // namespace vitrail::test
