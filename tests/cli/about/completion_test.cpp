// vitrail completion: what shells offer while a command is typed.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(Completion, CompletesATrainingThatIsLaunched) {
  EXPECT_THAT(vitrail("completion bash -- launch -n 2 -- tr").out, HasSubstr("train\n"));
  EXPECT_THAT(vitrail("completion bash -- launch -n 2 -- train --ep").out, HasSubstr("--epochs\n"));
}

TEST(Completion, CompletesModelsOfTheKindThatIsTaken) {
  EXPECT_THAT(vitrail("completion bash -- train --task detect --model detr_s").out, HasSubstr("detr_scenes"));
  EXPECT_THAT(vitrail("completion bash -- train --task vqa --model vqa").out, HasSubstr("vqa_joint"));
  EXPECT_THAT(vitrail("completion bash -- generate gpt2 --dtype ''").out, HasSubstr("bf16"));
  EXPECT_THAT(vitrail("completion bash -- detect vit").out, Not(HasSubstr("vit_tiny")));
  EXPECT_THAT(vitrail("completion bash -- embed vit_t").out, HasSubstr("vit_tiny"));
}

}  // namespace
}  // namespace vitrail::test
