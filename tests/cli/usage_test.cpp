// What a person meets who mistypes, asks for help, or names what is not there.
#include <algorithm>

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
       {"train", "eval", "predict", "embed", "knn", "attention", "positions", "report", "forward", "quantize",
        "convert", "pretrain", "reconstruct", "info", "models", "augment", "soup", "bench", "completion"}) {
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
  EXPECT_EQ(vitrail("").status, 2);
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

TEST(Completion, IsAScriptThatBashAccepts) {
  const Outcome script = vitrail("completion bash");
  EXPECT_EQ(script.status, 0);
  const TemporaryFolder folder;
  std::ofstream(folder / "c.sh")
      << script.out << "COMP_WORDS=(vitrail tr); COMP_CWORD=1; _vitrail; echo ${COMPREPLY[@]}\n"
      << "COMP_WORDS=(vitrail train --batch); COMP_CWORD=2; _vitrail; echo ${COMPREPLY[@]}\n";
  const std::string command = "bash -u " + (folder / "c.sh").string() + " > " + (folder / "o").string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream file(folder / "o");
  const std::string out(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(out, "train\n--batch-size\n");
}

}  // namespace
}  // namespace vitrail::test
