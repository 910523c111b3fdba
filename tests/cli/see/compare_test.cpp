// vitrail compare.
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Compare : public Commands {};

TEST_F(Compare, TakesTheRunsThatCanBeCompared) {
  fs::create_directories(path("runs/empty"));
  const Outcome some = vitrail("compare " + path("runs/empty") + " " + path("runs/one"));
  EXPECT_EQ(some.status, 0) << some.err;
  EXPECT_THAT(some.out, HasSubstr("| one "));
  EXPECT_THAT(some.err, HasSubstr("passed over: "));
  EXPECT_THAT(some.err, HasSubstr("runs/empty' is not a run folder"));
  EXPECT_EQ(vitrail("compare " + path("runs/empty")).status, 1);
  EXPECT_EQ(vitrail("compare " + path("runs/empty") + " " + path("runs/empty")).status, 1);
}

TEST_F(Compare, TellsRunsOfOneNameApart) {
  fs::create_directories(path("elsewhere"));
  fs::copy(path("runs/one"), path("elsewhere/one"), fs::copy_options::recursive);
  const Outcome outcome = vitrail("compare " + path("runs/one") + " " + path("elsewhere/one"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("runs/one "), HasSubstr("elsewhere/one ")));
}

// A probe of features that are the same in each epoch computes them once, before its steps.
TEST_F(Compare, SaysWhichPaceIsThatOfAHeadAlone) {
  for (const auto& [name, flag] : {std::pair("probe", ""), {"mixed", " --mixup 0.2"}}) {
    ASSERT_EQ(train(path("data"), name, small() + " --linear-probe" + flag).status, 0);
  }
  EXPECT_THAT(vitrail("compare " + path("runs/probe")).err, HasSubstr("'probe' is a linear probe"));
  EXPECT_THAT(vitrail("compare " + path("runs/mixed")).err, Not(HasSubstr("linear probe")));
}

class CompareRuns : public OnImages {};

// Runs of pretraining have no --eval-metric, and runs of different kinds no unit in common.
TEST_F(CompareRuns, OfAnyKind) {
  const std::string flags =
      " --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=2 "
      "num_heads=3 --threads 1 -b 8 --epochs 1 --output " +
      path("runs");
  const Outcome trained = vitrail("pretrain simclr " + path("data/train") + flags + " --experiment views --knn-data " +
                                  path("data") + " --projection-dim 8 --hidden-dim 16");
  if (trained.status != 0) {
    GTEST_FAIL() << trained.err;
  }
  const Outcome compared = vitrail("compare " + path("runs/views"));
  EXPECT_EQ(compared.status, 0) << compared.err;
}

TEST_F(CompareRuns, OfTexts) {
  write("speakers.tsv", "a\tder Mann\nb\tdie Frau\na\tder Hund\nb\tdie Katze\n");
  const std::string flags =
      " --model bert-tiny --model-kwargs hidden_size=16 num_attention_heads=2 "
      "num_hidden_layers=1 intermediate_size=16 --tokenizer " +
      golden_model("predictions/tokens") + " --val-data " + path("speakers.tsv") + " --epochs 1 --threads 1 --output " +
      path("runs");
  const Outcome trained = vitrail("train " + path("speakers.tsv") + flags + " --experiment speakers");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome compared = vitrail("compare " + path("runs/speakers"));
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("best accuracy"));
  EXPECT_EQ(vitrail("eval " + path("runs/speakers") + " " + path("speakers.tsv")).status, 0);
}

TEST_F(CompareRuns, WhoseNamesHaveSpaces) {
  const Outcome dino = vitrail("pretrain dino " + path("data/train") +
                               " --model vit_tiny_patch16_224 --model-kwargs "
                               "img_size=32 patch_size=16 embed_dim=16 depth=1 num_heads=2 --batch-size 8 --out-dim 16 "
                               "--epochs 3 --threads 1 --output " +
                               path("runs") + " --experiment 'a dino'");
  ASSERT_EQ(dino.status, 0) << dino.err;
  EXPECT_THAT(vitrail("compare '" + path("runs/a dino") + "'").out, HasSubstr("(epoch 3)"));
  EXPECT_THAT(vitrail("help").out, HasSubstr("Examples:"));
  EXPECT_THAT(vitrail("help train").out, HasSubstr("--epochs"));
}

TEST_F(CompareRuns, ButNoneWithoutEvaluation) {
  ASSERT_EQ(vitrail("pretrain mae " + path("data/train") + " --epochs 1 --output " + path("runs") +
                    " --experiment mae" + small())
                .status,
            0);
  refuses("compare " + path("runs/mae"), "is one without evaluation: there are no figures to compare");
}

TEST_F(CompareRuns, OfWhichOneWasKilled) {
  ASSERT_EQ(train(path("data"), "killed").status, 0);
  ASSERT_EQ(train(path("data"), "other").status, 0);
  std::ofstream(path("runs/killed/metrics.jsonl"), std::ios::app) << "{\"step\": 9, \"epo";
  const Outcome compared = vitrail("compare " + path("runs/killed") + " " + path("runs/other"));
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("killed"));
}

TEST_F(CompareRuns, AndCountNoneTwice) {
  run("s1", "--seed 1");
  run("s2", "--seed 2");
  fs::copy(path("runs/s1"), path("runs/copy"), fs::copy_options::recursive);
  const std::string both = "compare --seeds " + path("runs/s1") + " " + path("runs/s2");
  EXPECT_THAT(vitrail(both).err, Not(HasSubstr("note")));
  EXPECT_THAT(vitrail(both + " " + path("runs/copy")).err, HasSubstr("note: copy has the seed 1 of s1"));
  const Outcome soup = vitrail("soup " + path("runs/s1") + " " + path("runs/s2") + " " + path("runs/s1/best") +
                               " --output " + path("soup"));
  EXPECT_THAT(soup.out, HasSubstr("the average of 2 models"));
  EXPECT_THAT(soup.err, HasSubstr("s1/best is named twice"));
}

}  // namespace
}  // namespace vitrail::test
