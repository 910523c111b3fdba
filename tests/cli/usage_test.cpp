// What a person meets who mistypes, asks for help, or names what is not there.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"

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

// What may stand in place of the last of `words`, with its help: a line "WORD\tHELP" each.
std::vector<std::pair<std::string, std::string>> completed(const std::string& words) {
  std::istringstream lines(vitrail("completion fish -- " + words).out);
  std::vector<std::pair<std::string, std::string>> found;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t tab = line.find('\t');
    found.emplace_back(line.substr(0, tab), tab == std::string::npos ? "" : line.substr(tab + 1));
  }
  return found;
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

TEST(Info, DescribesAModelAsTextAndAsJson) {
  const std::string model = "vit_tiny_patch16_224 --model-kwargs img_size=32 patch_size=4 --num-classes 10";
  const Outcome text = vitrail("info " + model);
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("65 = 1 + 8 x 8 patches"));
  const Outcome json = vitrail("info " + model + " --json");
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_EQ(parsed["parameters"], 5362762);
  EXPECT_EQ(parsed["num_features"], 192);
  EXPECT_EQ(parsed["input_size"], (nlohmann::json{3, 32, 32}));
}

TEST(Models, ListsByPattern) {
  const Outcome names = vitrail("models 'deit*distilled*' --names");
  EXPECT_THAT(names.out, HasSubstr("deit_tiny_distilled_patch16_224\n"));
  EXPECT_THAT(names.out, Not(HasSubstr("vit_tiny")));
  EXPECT_THAT(vitrail("models vit_base_patch16_224").out, HasSubstr("86.6 M"));
  EXPECT_EQ(vitrail("models nothing-like-it").status, 1);
}

// Has `shell` run the completion script for it between some lines, and returns what that prints.
std::string run_in(const std::string& shell, const std::string& flags, const std::string& before,
                   const std::string& after) {
  const Outcome script = vitrail("completion " + shell);
  EXPECT_EQ(script.status, 0) << script.err;
  const TemporaryFolder folder;
  std::ofstream(folder / "script") << before << script.out << after;
  const std::string command =
      fmt::format("PATH={}:$PATH {} {} {} > {}", std::filesystem::path(VITRAIL_PROGRAM).parent_path().string(), shell,
                  flags, (folder / "script").string(), (folder / "out").string());
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream file(folder / "out");
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_installed(const std::string& shell) {
  return std::system(("command -v " + shell + " > /dev/null").c_str()) == 0;
}

TEST(Completion, WorksInBash) {
  EXPECT_EQ(run_in("bash", "-u", "",
                   "complete_words() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _vitrail; echo ${COMPREPLY[@]}; }\n"
                   "complete_words vitrail trai\n"
                   "complete_words vitrail train --batch-s\n"
                   "complete_words vitrail pretrain dino --local-crops-n\n"
                   "complete_words vitrail train --task la\n"
                   "cd / && complete_words vitrail train --task la && complete_words vitrail train --task det\n"
                   "complete_words vitrail train et\n"
                   "cd / && complete_words vitrail info deit3_small_patch16_2\n"),
            "train\n--batch-size\n--local-crops-number\n\n\ndetect\netc\ndeit3_small_patch16_224\n");
}

TEST(Completion, WorksInZsh) {
  if (!is_installed("zsh")) {
    GTEST_SKIP() << "zsh is not installed";
  }
  EXPECT_EQ(run_in("zsh", "-n", "", ""), "");
  EXPECT_EQ(run_in("zsh", "-f", "autoload -U compinit; compinit -u -D\n",
                   "echo $_comps[vitrail]\n_describe() { echo ${(P)2}; }\n"
                   "words=(vitrail pretrain dino --local-crops-n); CURRENT=4; _vitrail\n_files() { echo files; }\n"
                   "words=(vitrail train --task det); CURRENT=4; _vitrail\n"
                   "words=(vitrail train et); CURRENT=3; _vitrail\n"),
            "_vitrail\n--local-crops-number:Small crops of each image, besides the two large ones\ndetect\nfiles\n");
}

TEST(Completion, WorksInFish) {
  if (!is_installed("fish")) {
    GTEST_SKIP() << "fish is not installed";
  }
  EXPECT_EQ(run_in("fish", "--no-execute", "", ""), "");
  EXPECT_EQ(
      run_in("fish", "--no-config", "",
             "complete -C 'vitrail reco'\ncomplete -C 'vitrail train --batch-s'\ncomplete -C 'vitrail train --kd-te'\n"
             "cd /\ncomplete -C 'vitrail train --task det'\ncomplete -C 'vitrail train --task et'\ncomplete -C "
             "'vitrail train et'\n"),
      "reconstruct\tDraw images, with patches hidden or not, and what an autoencoder makes of them\n"
      "--batch-size\tImages a batch\n"
      "--kd-temperature\tTemperature of both probabilities (soft)\n"
      "detect\netc/\n");
}

TEST(Completion, KnowsTheFlagsOfTheTaskThatIsTyped) {
  const auto words = [](const std::string& typed) {
    std::vector<std::string> found;
    for (const auto& [word, help] : completed(typed)) {
      found.push_back(word);
    }
    return found;
  };
  using ::testing::Contains;
  EXPECT_THAT(words("train --task lm --"), Contains("--block-size"));
  EXPECT_THAT(words("train --"), Not(Contains("--block-size")));
  EXPECT_THAT(words("pretrain mae --"), Contains("--mask-ratio"));
  EXPECT_THAT(words("pretrain dino --"), Not(Contains("--mask-ratio")));
  EXPECT_THAT(words("pretrain ''"), Contains("simclr"));
  EXPECT_THAT(words("train --task ''"), Contains("translate"));
  EXPECT_THAT(words("tokenizer ''"), Contains("encode"));
  EXPECT_THAT(words("tokenizer train --"), Contains("--vocab-size"));
  EXPECT_THAT(words("train photos --model bert-t"), Contains("bert-tiny"));
  EXPECT_THAT(words("trian ''"), testing::IsEmpty()) << "no command";
  EXPECT_THAT(words("train --resume no-such-run --"), Contains("--epochs"));
  EXPECT_EQ(vitrail("completion csh").status, 2);
}

}  // namespace
}  // namespace vitrail::test
