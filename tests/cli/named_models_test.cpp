// How a command is told its model, and what it says of one that is not there.
#include <initializer_list>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class NamedModels : public Commands {};

TEST_F(NamedModels, AreTheBestOfARun) {
  const std::string image = path("data/validation/red/3.png");
  const std::string run = path("runs/one");
  EXPECT_EQ(vitrail("predict " + run + " " + image).out, vitrail("predict " + best() + " " + image).out);
  EXPECT_EQ(vitrail("info " + run).out, vitrail("info " + best()).out);
  const Outcome evaluated = vitrail("eval " + run + " " + path("data/validation") + " --json");
  ASSERT_EQ(evaluated.status, 0) << evaluated.err;
  EXPECT_EQ(nlohmann::json::parse(evaluated.out)["count"], 32);
  const Outcome tuned =
      vitrail("train " + path("data") + " --model " + run + run_flags(path("runs"), "tuned") + " -b 8");
  EXPECT_EQ(tuned.status, 0) << tuned.err;
}

TEST_F(NamedModels, HaveRandomWeightsByAnArchitecture) {
  const std::string image = path("data/validation/red/3.png");
  const std::string bare = " vit_tiny_patch16_224 ";
  const std::string tiny = " --img-size 16 --model-kwargs patch_size=4 depth=1 --num-classes 2";
  for (const std::string& command :
       {"predict" + bare + image, "attention" + bare + image + " --output " + path("own_maps"),
        "eval" + bare + path("data/validation"),
        "embed" + bare + path("data/validation") + " --output " + path("x.safetensors"),
        "report" + bare + path("data/validation") + " --images 1 --output " + path("page"),
        "convert" + bare + " --output " + path("converted")}) {
    const Outcome outcome = vitrail(command + tiny);
    EXPECT_EQ(outcome.status, 0) << command << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("vit_tiny_patch16_224 is the name of an architecture, whose weights are random"))
        << command;
  }
  EXPECT_EQ(vitrail("predict " + best() + " " + image).err, "");
  EXPECT_THAT(vitrail("info vit_tiny_patch16_224").err, Not(HasSubstr("random")));
}

TEST_F(NamedModels, HaveANewHeadForOtherClasses) {
  const std::string image = path("data/validation/red/3.png");
  for (const std::string& command : {"predict " + best() + " " + image, "eval " + best() + " " + path("data/train"),
                                     "convert " + best() + " --output " + path("other_head")}) {
    const Outcome outcome = vitrail(command + " --num-classes 3");
    EXPECT_EQ(outcome.status, 0) << command << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("has 2 classes: the head for 3 is new, and its weights are random")) << command;
  }
  EXPECT_EQ(vitrail("predict " + best() + " " + image + " --num-classes 2").err, "");
}

TEST_F(NamedModels, AreCalledMissingInWordsOfTheirOwn) {
  const std::string text = write("letters.txt", "a b c d e f\n");
  const std::string pieces = path("letters");
  ASSERT_EQ(vitrail("tokenizer train " + text + " --vocab-size 257 --output " + pieces).status, 0);
  const std::string image = path("data/train/red/3.png");
  for (const auto& [arguments, words] : std::initializer_list<std::pair<std::string, std::string>>{
           {"zeroshot nope " + image + " --labels a,b", "there is no model folder 'nope'"},
           {"latent nope --between " + image + " " + image, "there is no model folder 'nope'"},
           {"reconstruct nope " + image, "there is no model folder 'nope'"},
           {"embed " + best() + " " + path("data") + " --split train --output x.npy",
            "'x.npy' does not end in .safetensors"},
           {"attention " + best() + " " + image + " --raw x.npz", "'x.npz' does not end in .safetensors"},
           {"tokenizer decode " + pieces + " 99999999999999999999", "'99999999999999999999' is not an id"},
       }) {
    const Outcome outcome = vitrail(arguments);
    EXPECT_NE(outcome.status, 0) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
  }
}

TEST_F(NamedModels, AreTakenForOneBesideWhatIsMissing) {
  refuses("predict nix.jpg", "there is no image 'nix.jpg'");
  refuses("attention " + best() + " --text ''", "there is no text in it", 2);
  refuses("probe " + path("data") + " " + path("data"),
          "is a folder: a file of features by `vitrail embed` was expected");
  refuses("attention " + best() + " " + path("data") + " --output " + path("seen"), "that is a folder");
}

class MissingModels : public InAFolder {};

TEST_F(MissingModels, AreNamed) {
  for (const char* command : {"embed nope --similarity a b", "eval nope --src a --tgt b", "predict nope a"}) {
    EXPECT_THAT(vitrail(command).err, HasSubstr("there is no model 'nope'")) << command;
  }
  for (const char* command : {"fill-mask nope \"a [MASK]\"", "generate nope a"}) {
    EXPECT_THAT(vitrail(command).err, HasSubstr("there is no model folder 'nope'")) << command;
  }
  EXPECT_THAT(vitrail("generate gpt2 a").err, HasSubstr("'gpt2' is the name of a model, whose weights are random"));
}

TEST_F(MissingModels, AreNamedByTrainingsOnTexts) {
  const std::string table = write("labels.tsv", "pos\tgood\nneg\tbad\n");
  for (const std::string task : {"", "--task tag ", "--task classify-text "}) {
    EXPECT_THAT(vitrail("train " + task + table + " --model " + path("nope")).err,
                HasSubstr("there is no model folder '" + path("nope") + "', nor a model of texts of this name"))
        << task;
  }
}

TEST_F(MissingModels, AreNamedBesideTexts) {
  const std::string gone = "runs/gone/best";
  refuses("predict " + gone + " 'a text' --output x.svg", "there is no model folder 'runs/gone/best'");
  refuses("embed " + gone + " --similarity a b", "there is no model folder 'runs/gone/best'");
}

TEST_F(MissingModels, AreNamedBesideFlagsOfAKind) {
  for (const std::string command : {"quantize r/none --output q --src a --tgt b", "eval r/none x --metric coco",
                                    "generate r/none pictures --output x.png"}) {
    refuses(command, "there is no model folder 'r/none'");
  }
}

}  // namespace
}  // namespace vitrail::test
