// What a person meets who mistypes, asks for help, or names what is not there.
#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Usage, HelpNamesEveryCommandAndShowsExamples) {
  const Outcome help = vitrail("--help");
  EXPECT_EQ(help.status, 0);
  for (const char* command :
       {"train",   "eval",     "predict", "embed",    "knn",         "attention", "positions", "report",
        "forward", "quantize", "convert", "pretrain", "reconstruct", "compare",   "info",      "bleu",
        "models",  "augment",  "soup",    "bench",    "completion",  "tokenizer", "generate",  "gradients",
        "encoder", "detect",   "scenes",  "latent",   "probe",       "patches",   "zeroshot",  "scale"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    const Outcome own = vitrail(std::string(command) + " --help");
    EXPECT_EQ(own.status, 0) << command;
    EXPECT_THAT(own.out, HasSubstr("Examples:")) << command;
    EXPECT_THAT(own.out, HasSubstr("vitrail ")) << command;
  }
}

TEST(Usage, SuggestsTheCommandThatWasMeant) {
  const Outcome outcome = vitrail("trian photos");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("did you mean 'train'"));
  EXPECT_EQ(outcome.out, "");
}

TEST(Usage, SuggestsTheFlagThatWasMeant) {
  const Outcome outcome = vitrail("train photos --epoch 3");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("'--epoch'"));
  EXPECT_THAT(outcome.err, HasSubstr("--epochs"));
}

TEST(Usage, ValuesOfTheWrongKindAreWrongUsage) {
  EXPECT_EQ(vitrail("train photos --epochs many").status, 2);
  EXPECT_EQ(vitrail("eval model data --dtype f16").status, 2);
  EXPECT_EQ(vitrail("bench fly --model vit_tiny_patch16_224").status, 2);
  EXPECT_EQ(vitrail("eval").status, 2);
}

TEST(Usage, WithoutACommandTheHelpIsPrinted) {
  const Outcome alone = vitrail("");
  EXPECT_EQ(alone.status, 0);
  EXPECT_EQ(alone.out, vitrail("--help").out);
  EXPECT_EQ(alone.err, "");
}

TEST(Usage, ProcessesThatDoNotShareTheirWorkAreToldSoOnce) {
  const auto said = [](int rank) {
    return vitrail("models vit_tiny_patch16_224", "",
                   fmt::format("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK={}", rank))
        .err;
  };
  EXPECT_EQ(said(0),
            "note: each of the 2 processes does all of the work: train, pretrain and bench comm share theirs\n");
  EXPECT_EQ(said(1), "");
}

TEST(Usage, EveryTextOfTheHelpBeginsWithACapitalAndHasNoFullStop) {
  int texts = 0;
  const auto expect_help = [&](const std::string& word, const std::string& text) {
    ASSERT_FALSE(text.empty()) << word;
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(text[0])) != 0 || text.starts_with("'")) << word << " " << text;
    EXPECT_FALSE(text.ends_with(".")) << word << " " << text;
    ++texts;
  };
  for (const auto& [command, help] : completed("''")) {
    expect_help(command, help);
    for (const auto& [flag, text] : completed(command + " -")) {
      expect_help(command + " " + flag, text);
    }
  }
  for (const char* command : {"train --task ", "pretrain "}) {
    for (const auto& [task, none] : completed(command + std::string("''"))) {
      EXPECT_EQ(none, "");
      for (const auto& [flag, text] : completed(command + task + " -")) {
        expect_help(command + task + " " + flag, text);
      }
    }
  }
  EXPECT_GT(texts, 1500);
}

TEST(Usage, TheHelpHasNamesForValuesAndDefaultsInWords) {
  const std::string help = vitrail("pretrain --help").out;
  EXPECT_THAT(help, HasSubstr("-b, --batch-size N"));
  EXPECT_THAT(
      help,
      HasSubstr("--lr-base LR                    Learning rate at --lr-base-size images an update (default: 0.00015)"));
  EXPECT_THAT(help, HasSubstr("(default: 0.9 0.95)"));
  EXPECT_THAT(help, HasSubstr("\nLearning rate:\n"));
  EXPECT_THAT(help, Not(HasSubstr("\n\n\n")));
  EXPECT_THAT(help, Not(HasSubstr("--dtype"))) << "the name of earlier versions";
  std::istringstream lines(vitrail("eval --help").out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 111U) << line;
    EXPECT_THAT(line, Not(HasSubstr("POSITIVE")));
  }
}

TEST(Usage, OfAFlagGivenTwiceTheLastCounts) {
  const Outcome twice = vitrail("info vit_small_patch16_224 --num-classes 3 --num-classes 4 --json");
  ASSERT_EQ(twice.status, 0) << twice.err;
  EXPECT_EQ(twice.out, vitrail("info vit_small_patch16_224 --num-classes 4 --json").out);
}

TEST(Usage, SuggestsTheModelThatWasMeant) {
  const Outcome outcome = vitrail("info vit_tny_patch16_224");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("vit_tiny_patch16_224"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(Usage, NamesAnUnknownModelArgument) {
  const Outcome outcome = vitrail("info vit_tiny_patch16_224 --model-kwargs imgsize=32");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("imgsize"));
  EXPECT_THAT(outcome.err, HasSubstr("img_size"));
}

TEST(Usage, SaysWhatIsMissing) {
  const Outcome image = vitrail("attention vit_tiny_patch16_224 no-such.jpg");
  EXPECT_EQ(image.status, 1);
  EXPECT_THAT(image.err, HasSubstr("no-such.jpg"));
  const Outcome data = vitrail("train no-such-folder --model vit_tiny_patch16_224");
  EXPECT_EQ(data.status, 1);
  EXPECT_THAT(data.err, HasSubstr("no-such-folder"));
}

}  // namespace
}  // namespace vitrail::test
