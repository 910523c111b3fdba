// What people try first, and what they are told if it is not what they think.
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"
#include "vitrail/io/toml.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Newcomer : public Commands {};

std::string run_flags(const std::string& folder, const std::string& name) {
  return " --output " + folder + " --experiment " + name + " --epochs 1";
}

TEST_F(Newcomer, TrainsOnATableWithoutParts) {
  std::string rows;
  for (const char* name : {"red/1", "red/2", "red/3", "red/4", "blue/1", "blue/2", "blue/3", "blue/4", "blue/5"}) {
    rows += std::string("data/train/") + name + ".png," + std::string(name).substr(0, 3) + "\n";
  }
  std::ofstream(path("table.csv")) << rows;
  const std::string train = "train " + path("table.csv") + small();
  const Outcome refused = vitrail(train + run_flags(path("runs"), "refused"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("no column 'split' says which they are; name another folder with --val-dir, or "
                                     "train without evaluation by --val-split ''"));
  const Outcome all = vitrail(train + " --val-split ''" + run_flags(path("runs"), "all"));
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("9 training and 0 validation images"));
  EXPECT_THAT(all.out, HasSubstr("each epoch leaves out 1 of the 9 training images, which do not fill a batch of 8"));
  const Outcome few = vitrail(train + " --val-split '' --batch-size 64" + run_flags(path("runs"), "few"));
  EXPECT_EQ(few.status, 0) << few.err;
  EXPECT_THAT(few.out, HasSubstr("each epoch is one batch of 9 training images, fewer than --batch-size 64 asks for"));
  const Outcome other = vitrail(train + " --val-dir " + path("data/validation") + run_flags(path("runs"), "other"));
  EXPECT_EQ(other.status, 1) << "other classes";
}

TEST_F(Newcomer, IsToldWhichTaskHasAFlag) {
  const Outcome outcome = vitrail("pretrain " + path("data") + " --teacher-model /nonexist --tta 2");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("there is no flag '--teacher-model': only the task classify (vitrail train) has"));
  EXPECT_THAT(vitrail("train " + path("data") + " --mask-ratio 0.5").err, HasSubstr("only the task mae"));
}

TEST_F(Newcomer, IsToldOfRandomWeights) {
  const std::string image = path("data/validation/red/3.png");
  const std::string bare = " vit_tiny_patch16_224 ";
  const std::string tiny = " --img-size 16 --model-kwargs patch_size=4 depth=1 --num-classes 2";
  for (const std::string& command :
       {"predict" + bare + image, "attention" + bare + image + " --output " + path("maps"),
        "eval" + bare + path("data/validation"), "embed" + bare + path("data/validation") + " --output " + path("x.st"),
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

TEST_F(Newcomer, NamesARunForItsBestModel) {
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

TEST_F(Newcomer, ComparesTheRunsThatCanBe) {
  fs::create_directories(path("runs/empty"));
  const Outcome some = vitrail("compare " + path("runs/empty") + " " + path("runs/one"));
  EXPECT_EQ(some.status, 0) << some.err;
  EXPECT_THAT(some.out, HasSubstr("| one "));
  EXPECT_THAT(some.err, HasSubstr("passed over: "));
  EXPECT_THAT(some.err, HasSubstr("runs/empty' is not a run folder"));
  EXPECT_EQ(vitrail("compare " + path("runs/empty")).status, 1);
  EXPECT_EQ(vitrail("compare " + path("runs/empty") + " " + path("runs/empty")).status, 1);
}

TEST_F(Newcomer, UsesFlagsWronglyWithStatus2) {
  const std::string image = path("data/validation/red/3.png");
  for (const auto& [arguments, words] : std::vector<std::pair<std::string, std::string>>{
           {"train " + path("data") + " --batch-size 0", "vitrail train: --batch-size must be at least 1, but is 0"},
           {"train", "vitrail train: --data-dir is missing"},
           {"train " + path("data") + " --smoothing 1", "vitrail train: --smoothing must be from 0 to below 1"},
           {"train " + path("data") + " --scale 1", "vitrail train: --scale"},
           {"train " + path("data") + " --interpolation best", "vitrail train: --interpolation must be one of nearest"},
           {"train " + path("data") + " --resume x --config y", "vitrail train: --config and --resume"},
           {"train " + path("data") + " --threads 99999", "vitrail train: --threads must be from 0 (all cores) to "},
           {"pretrain mae " + path("data") + " --mask-ratio 2", "vitrail pretrain: --mask-ratio must be above 0"},
           {"predict " + best() + " " + image + " --threads 99999", "vitrail predict: --threads must be from 0"},
           {"predict " + best() + " " + image + " --crop-mode middle", "vitrail predict: --crop-mode"},
           {"predict " + best() + " " + image + " --mean 1 2", "vitrail predict: --mean takes"},
           {"predict " + best() + " " + image + " --model-kwargs depth", "vitrail predict: "},
           {"eval " + best() + " " + path("data") + " --tta 1", "vitrail eval: --tta takes 0"},
           {"embed " + best() + " x --unlabeled --split test --output y", "vitrail embed: --unlabeled takes all"},
           {"knn " + path("data") + " " + path("data"), "vitrail knn: features"},
           {"soup " + best() + " --greedy --output " + path("soup"), "vitrail soup: --greedy"},
           {"augment " + image + " --hflip 2 --output x.png", "vitrail augment: --hflip must be from 0 to 1"},
           {"completion tcsh", "vitrail completion: SHELL: tcsh not in"},
           {"bench train --model vit_tiny_patch16_224 --batch-size -3",
            "vitrail bench: --batch-size: must be at least 1, but is -3"},
       }) {
    const Outcome outcome = vitrail(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << arguments;
    EXPECT_LT(outcome.err.size(), 400U) << arguments;
  }
  EXPECT_EQ(vitrail("predict " + best() + " " + image + " --threads 0").status, 0);
}

TEST_F(Newcomer, IsToldOfFilesThatAreNoImages) {
  fs::copy(path("data"), path("mixed"), fs::copy_options::recursive);
  for (const char* name : {"train/red/notes.txt", "train/blue/2.gif", "validation/red/list.csv"}) {
    std::ofstream(path("mixed/") + name) << "something else";
  }
  const Outcome trained = vitrail("train " + path("mixed") + run_flags(path("runs"), "mixed") + small());
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("3 files that are not images by their names were passed over"));
  const Outcome evaluated = vitrail("eval " + best() + " " + path("mixed/validation") + " --json");
  EXPECT_THAT(evaluated.err, HasSubstr("1 file that is not an image by its name was passed over"));
  EXPECT_EQ(nlohmann::json::parse(evaluated.out)["count"], 32);
}

TEST_F(Newcomer, FindsALinkToNothingBrokenEverywhere) {
  fs::copy(path("data"), path("links"), fs::copy_options::recursive);
  fs::create_symlink("nowhere.png", path("links/train/red/99.png"));
  const std::string predict = "predict " + best() + " " + path("links/train");
  EXPECT_EQ(vitrail(predict).status, 1);
  const Outcome predicted = vitrail(predict + " --skip-broken");
  EXPECT_EQ(predicted.status, 0);
  EXPECT_THAT(predicted.err, HasSubstr("left out: "));
  EXPECT_THAT(predicted.err, HasSubstr("red/99.png"));
  const std::string train = "train " + path("links") + small();
  EXPECT_EQ(vitrail(train + run_flags(path("runs"), "link")).status, 1);
  const Outcome trained = vitrail(train + run_flags(path("runs"), "links") + " -b 11 --skip-broken");
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("1 broken image left out so far"));
  EXPECT_THAT(trained.out, HasSubstr("red/99.png"));
}

TEST_F(Newcomer, TrainsOnWhenNobodyReadsTheOutput) {
  // The pipe's reader has gone before the first line.
  vitrail("train " + path("data") + run_flags(path("runs"), "piped") + small() + " | true");
  EXPECT_TRUE(fs::exists(path("runs/piped/best/config.json")));
  EXPECT_THAT(io::read_text(path("runs/piped/metrics.jsonl")), HasSubstr("top1"));
}

TEST_F(Newcomer, ResumesARunFromAnotherFolder) {
  const Outcome first =
      vitrail("train data --output runs --experiment moved --epochs 1 --val-dir data/validation" + small(), "",
              "cd " + folder_->path().string() + " &&");
  ASSERT_EQ(first.status, 0) << first.err;
  const nlohmann::json config = io::read_toml(path("runs/moved/config.toml"));
  EXPECT_EQ(config["data"]["data_dir"], path("data"));
  EXPECT_EQ(config["data"]["val_dir"], path("data/validation"));
  EXPECT_EQ(config["model"]["model"], "vit_tiny_patch16_224");
  const Outcome more = vitrail("train --resume " + path("runs/moved") + " --epochs 2", "", "cd / &&");
  ASSERT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.out, Not(HasSubstr("--data-dir was")));
  const Outcome again =
      vitrail("train data --resume runs/moved --epochs 3", "", "cd " + folder_->path().string() + " &&");
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, Not(HasSubstr("--data-dir was")));

  fs::copy(path("data"), path("elsewhere"), fs::copy_options::recursive);
  const Outcome begun = vitrail("train " + path("elsewhere") + run_flags(path("runs"), "left") + small());
  ASSERT_EQ(begun.status, 0) << begun.err;
  fs::remove_all(path("elsewhere"));
  const Outcome lost = vitrail("train --resume " + path("runs/left") + " --epochs 2");
  EXPECT_EQ(lost.status, 1);
  EXPECT_THAT(lost.err, HasSubstr("name them again by vitrail train DATA --resume " + path("runs/left")));
  const Outcome found = vitrail("train " + path("data") + " --resume " + path("runs/left") + " --epochs 2");
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("--data-dir was"));
}

TEST_F(Newcomer, LearnsThatTheOutputCouldNotBeWritten) {
  const auto status = [](const std::string& command) { return WEXITSTATUS(std::system(command.c_str())); };
  const std::string errors = path("errors");
  EXPECT_EQ(status(VITRAIL_PROGRAM " --version > /dev/full 2> " + errors), 1);
  EXPECT_EQ(io::read_text(errors), "vitrail: the output could not be written\n");
}

TEST_F(Newcomer, StartsRunsAtTheSameMoment) {
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

TEST_F(Newcomer, MeetsNamesThatAreNotUtf8) {
  const std::string odd = path("odd-\xff.png");
  fs::copy_file(path("data/validation/red/3.png"), odd);
  const Outcome predicted = vitrail("predict " + best() + " '" + odd + "' --format json");
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.out, HasSubstr("odd-\xef\xbf\xbd.png"));
  fs::copy(path("data"), path("named"), fs::copy_options::recursive);
  fs::rename(path("named/train/red"), path("named/train/r\xe9"
                                           "d"));
  const Outcome refused = vitrail("train " + path("named") + small() + run_flags(path("runs"), "named"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("is not valid UTF-8: rename it"));
}

TEST_F(Newcomer, AsksForMoreThanThereIs) {
  const Outcome epochs = vitrail("train " + path("data") + small() + " --epochs 9223372036854775807");
  EXPECT_EQ(epochs.status, 2);
  EXPECT_THAT(epochs.err, HasSubstr("--epochs must be at most 1000000"));
  const Outcome compared = vitrail("compare " + path("runs/one") + " " + path("runs/nope"));
  EXPECT_EQ(compared.status, 1);
  EXPECT_THAT(compared.err, HasSubstr("nope: no such folder"));
}

}  // namespace
}  // namespace vitrail::test
