// Runs that go on with their options, and which of them may be others.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ResumedRun : public Commands {};

TEST_F(ResumedRun, IsARunFolder) {
  refuses("train --resume " + path("runs/one") + " --epochs 2", "is in epoch 3 already: it cannot end after 2");
  EXPECT_THAT(io::read_text(path("runs/one/config.toml")), HasSubstr("epochs = 3\n"));
  refuses("train --resume " + best(), "is not a run folder: it has no config.toml, but");
  const Outcome of_folder = vitrail("train -c " + path("runs/one") + " --epochs 1 --experiment of_folder");
  EXPECT_EQ(of_folder.status, 0) << of_folder.err;
  refuses("train " + path("data") + " -c " + write("nan.toml", "lr = nan\n"), "'lr' is nan, which is no number");
  refuses("predict " + best() + " " + path("data/train/red/1.png") + " --num-classes 0",
          "--num-classes 0 leaves no classes", 2);
}

TEST_F(ResumedRun, ThatHasEndedStaysAsItIs) {
  const std::string before = io::read_text(path("runs/one/config.toml"));
  const Outcome outcome = vitrail("train --resume " + path("runs/one") + " --lr 0.5");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("nothing is left to do"), Not(HasSubstr("is now"))));
  EXPECT_EQ(io::read_text(path("runs/one/config.toml")), before);
}

TEST_F(ResumedRun, HasNoOptionsAmongItsFacts) {
  const std::string run = path("facts");
  fs::copy(path("runs/one"), run, fs::copy_options::recursive);
  std::string config = io::read_text(run + "/config.toml");
  config.insert(config.find("[facts]\n") + 8, "weight_decay = 0.5\n");
  std::ofstream(run + "/config.toml") << config;
  refuses("train --resume " + run + " --epochs 9", "'weight_decay' stands in its table [facts]");
}

class ResumedTraining : public OnImages {
 protected:
  // The learning rates of the updates of a run.
  static std::vector<double> rates_of(const std::string& run) {
    std::vector<double> rates;
    std::ifstream metrics(run + "/metrics.jsonl");
    for (std::string line; std::getline(metrics, line);) {
      const nlohmann::json record = nlohmann::json::parse(line);
      if (record.contains("lr")) {
        rates.push_back(record["lr"].get<double>());
      }
    }
    return rates;
  }
};

TEST_F(ResumedTraining, WasStoppedInGoodOrder) {
  const std::string run = path("runs/stopped");
  // Signals the program, which it starts, as soon as the run's metrics have grown.
  std::ofstream(path("signal.sh")) << "signal=$1; shift\n"
                                      "lines() { cat '" +
                                          run +
                                          "/metrics.jsonl' 2>/dev/null | wc -l; }\n"
                                          "before=$(lines)\n"
                                          "\"$@\" & pid=$!\n"
                                          "while kill -0 $pid && [ $(lines) -le $before ]; do sleep 0.05; done\n"
                                          "kill -$signal $pid\n"
                                          "wait $pid\n";
  const auto steps = [&] {
    std::ifstream file(run + "/metrics.jsonl");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  };
  const Outcome stopped = vitrail("train " + path("data") + " --output " + path("runs") +
                                      " --experiment stopped --model vit_tiny_patch16_224 --model-kwargs img_size=16 "
                                      "patch_size=4 embed_dim=24 depth=2 num_heads=3 --epochs 100000 --batch-size 8 "
                                      "--no-aug --threads 1",
                                  "", "sh " + path("signal.sh") + " INT");
  EXPECT_EQ(stopped.status, 130);
  EXPECT_THAT(stopped.out, HasSubstr("go on with: vitrail train --resume " + run));
  const auto before = steps();
  EXPECT_GT(before, 0);
  const Outcome again = vitrail("train --resume " + run, "", "sh " + path("signal.sh") + " TERM");
  EXPECT_EQ(again.status, 143);
  EXPECT_THAT(again.out, HasSubstr("going on after step"));
  EXPECT_GT(steps(), before);
  const Outcome changed = vitrail("train --resume " + run + " --model vit_small_patch16_224");
  EXPECT_EQ(changed.status, 1);
  EXPECT_THAT(changed.err, HasSubstr("cannot go on with"));
}

TEST_F(ResumedTraining, MayHaveAnyName) {
  ASSERT_EQ(train(path("data"), "'a run'").status, 0);
  const Outcome again = train(path("data"), "'a run'");
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.err, HasSubstr("go on with it by --resume '" + path("runs/a run") + "'"));
}

TEST_F(ResumedTraining, CannotChangeItsModel) {
  const std::string run = path("runs/kept");
  ASSERT_EQ(vitrail("train " + path("data") + run_flags(path("runs"), "kept") + small()).status, 0);
  for (const std::string flag : {"--img-size 32", "--gp avg", "--in-chans 1", "--opt lion", "--freeze blocks.0",
                                 "--linear-probe", "--model-ema", "--model-kwargs depth=3", "--num-classes 3",
                                 "--seed 3", "--eval-metric loss", "--val-split ''", "--no-shuffle"}) {
    const Outcome outcome = vitrail("train --resume " + run + " --epochs 2 " + flag);
    EXPECT_EQ(outcome.status, 1) << flag;
    EXPECT_THAT(outcome.err, HasSubstr("vitrail: the run '" + run + "' has " + flag.substr(0, flag.find(' ')) + " "));
    EXPECT_THAT(outcome.err, HasSubstr(" and cannot go on with ")) << flag;
  }
  const Outcome changed = vitrail("train --resume " + run +
                                  " --epochs 2 --num-classes 2 --opt adam --lr 1e-4 -b 4 --sched step "
                                  "--decay-epochs 1 --weight-decay 0.1 --drop 0.1 --clip-grad 1");
  EXPECT_EQ(changed.status, 0) << changed.err;
  EXPECT_THAT(changed.out, HasSubstr("--opt was \"adamw\" and is now \"adam\""));
  EXPECT_THAT(changed.out, Not(HasSubstr("--num-classes")));
}

TEST_F(ResumedTraining, KeepsItsScheduleInOtherBatches) {
  const std::string begin = "train " + path("data") + " --model linear --img-size 8 --no-aug --threads 1 --lr 1e-3 " +
                            "--min-lr 0 --warmup-epochs 0 --epochs 4 -b 8 --output " + path("runs") + " --experiment ";
  ASSERT_EQ(vitrail(begin + "even").status, 0);
  const std::vector<double> even = rates_of(path("runs/even"));
  ASSERT_EQ(even.size(), 16U);
  const auto resumed = [&](const std::string& name, const std::string& flags) {
    EXPECT_EQ(vitrail(begin + name + " --epochs 2").status, 0);
    const Outcome outcome = vitrail("train --resume " + path("runs/" + name) + " --epochs 4 " + flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const std::vector<double> rates = rates_of(path("runs/" + name));
    EXPECT_EQ(rates.at(8), even[8]) << name << ": half way at the beginning of the third of four epochs";
    return rates;
  };
  EXPECT_EQ(resumed("larger", "-b 16").size(), 12U);
  EXPECT_EQ(resumed("smaller", "-b 4").size(), 24U);
  EXPECT_EQ(resumed("accumulated", "--grad-accum-steps 2").size(), 12U);
  EXPECT_LT(rates_of(path("runs/smaller")).back(), even.back()) << "the schedule comes to its end";
}

TEST_F(ResumedTraining, TakesNoOptionBehindItsFacts) {
  run("edited");
  std::ofstream(path("runs/edited/config.toml"), std::ios::app) << "epochs = 9\n";
  refuses("train --resume " + path("runs/edited"), "'epochs' stands in its last table, [facts.records]");
}

TEST_F(ResumedTraining, NeedsItsMetrics) {
  ASSERT_EQ(train(path("data"), "gone").status, 0);
  fs::remove(path("runs/gone/metrics.jsonl"));
  const Outcome outcome = go_on("gone");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("metrics.jsonl' is gone, with the history of the run: put it back, or"));
  EXPECT_FALSE(fs::exists(path("runs/gone/metrics.jsonl")));
}

}  // namespace
}  // namespace vitrail::test
