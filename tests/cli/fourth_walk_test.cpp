// What one more newcomer was told wrongly or not at all: standard files that are closed or full, inputs and models that
// an output would replace, images left out without a word.
#include <cstdlib>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class FourthWalk : public Commands {
 protected:
  // Runs the program in a shell, with redirections of its own; returns its exit status, or that of a signal.
  static int shell(const std::string& arguments) {
    const int status = std::system((std::string(VITRAIL_PROGRAM) + " " + arguments).c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // The data of the run, with a broken image in `part`.
  static std::string data_with_broken(const std::string& name, const std::string& part) {
    if (!fs::exists(path(name))) {
      copy_of_data(name);
      write(name + "/" + part + "/red/bad.png", "no image");
    }
    return path(name);
  }
  // Expects that a command refuses to write `file`, and leaves it as it is.
  static void expect_kept(const std::string& arguments, const std::string& file) {
    const std::string before = io::read_text(file);
    const Outcome outcome = vitrail(arguments);
    EXPECT_EQ(outcome.status, 1) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(": choose another --output")) << arguments;
    EXPECT_EQ(io::read_text(file), before) << arguments;
  }
};

TEST_F(FourthWalk, KeepsARunWholeWhoseOutputIsClosed) {
  EXPECT_EQ(shell("train " + path("data") + " --epochs 1 --output " + path("runs") + " --experiment closed" + small() +
                  " >&- 2>" + path("closed.err")),
            1);
  EXPECT_THAT(io::read_text(path("closed.err")), HasSubstr("the output could not be written"));
  EXPECT_THAT(io::read_text(path("runs/closed/metrics.jsonl")), StartsWith("{"));
  EXPECT_EQ(vitrail("compare " + path("runs/closed")).status, 0);
}

TEST_F(FourthWalk, WorksOnWhereNothingCanBeSaidOnStderr) {
  const std::string data = data_with_broken("unsaid", "validation");
  for (const std::string nowhere : {"2>/dev/full", "2>&-"}) {
    EXPECT_EQ(shell("predict " + best() + " " + path("nofile") + " >/dev/null " + nowhere), 1) << nowhere;
    EXPECT_EQ(shell("--foo >/dev/null " + nowhere), 2) << nowhere;
    EXPECT_EQ(shell("eval " + best() + " " + data + " --split validation --skip-broken >" + path("unsaid.txt") + " " +
                    nowhere),
              0)
        << nowhere;
    EXPECT_THAT(io::read_text(path("unsaid.txt")), HasSubstr("top-1")) << nowhere;
  }
}

TEST_F(FourthWalk, ReplacesNeitherInputsNorModels) {
  const std::string model = path("model");
  fs::copy(best(), model, fs::copy_options::recursive);
  const std::string image = path("data/train/red/0.png");
  const std::string picture = write("pictures/sheet.png", io::read_text(image));
  const std::string weights = model + "/model.safetensors";
  expect_kept("attention " + model + " " + image + " --raw " + weights + " --output " + path("maps"), weights);
  expect_kept("patches " + model + " " + image + " --raw " + weights + " --output " + path("maps"), weights);
  for (const std::string flag : {"--output", "--trace"}) {
    expect_kept("bench infer --model " + model + " --steps 1 --batch-size 1 " + flag + " " + model + "/config.json",
                model + "/config.json");
  }
  expect_kept("patches " + model + " " + picture + " --output " + path("pictures"), picture);
  fs::create_directories(path("places"));
  ASSERT_EQ(
      vitrail("embed " + model + " " + path("data") + " --split validation --output " + path("places/map.safetensors"))
          .status,
      0);
  expect_kept("project " + path("places/map.safetensors") + " --output " + path("places"),
              path("places/map.safetensors"));
  expect_kept("report " + model + " " + path("data") + " --split validation --output " + path("data/train/red"), image);
}

TEST_F(FourthWalk, PrintsOneObjectWithTheParameters) {
  const nlohmann::json info = nlohmann::json::parse(vitrail("info " + best() + " --parameters --json").out);
  EXPECT_EQ(info["tensors"][0]["name"], "cls_token");
  EXPECT_EQ(info["tensors"][0]["shape"], nlohmann::json({1, 1, 24}));
  EXPECT_EQ(nlohmann::json::parse(vitrail("info mvitv2_tiny --json").out)["depth"], 10);
}

TEST_F(FourthWalk, IsToldOfTheModelThatIsNotThere) {
  const std::string table = write("labels.tsv", "pos\tgood\nneg\tbad\n");
  for (const std::string task : {"", "--task tag ", "--task classify-text "}) {
    EXPECT_THAT(vitrail("train " + task + table + " --model " + path("nope")).err,
                HasSubstr("there is no model folder '" + path("nope") + "', nor a model of texts of this name"))
        << task;
  }
}

TEST_F(FourthWalk, LeavesNoSoupBehindThatFailed) {
  const std::string soup = "soup " + best() + " " + best() + " --output " + path("soup") + " --data ";
  EXPECT_EQ(vitrail(soup + path("nosuch")).status, 1);
  EXPECT_FALSE(fs::exists(path("soup")));
  EXPECT_EQ(vitrail(soup + path("data") + " --split validation").status, 0);
  EXPECT_THAT(
      vitrail("soup " + golden_path("models/detection/detr").string() + " " + best() + " --output " + path("no")).err,
      HasSubstr("finds objects: soups are made of models that classify images, or of texts"));
}

TEST_F(FourthWalk, IsToldOfImagesThatEvaluationsLeaveOut) {
  const std::string data = data_with_broken("broken", "validation");
  EXPECT_THAT(train(data, "broken", small() + " --skip-broken").out,
              HasSubstr("left out 1 broken image: " + data + "/validation/red/bad.png: "));
  EXPECT_THAT(vitrail("soup " + best() + " " + best() + " --output " + path("soup2") + " --data " + data +
                      " --split validation --skip-broken")
                  .err,
              HasSubstr("left out: " + data + "/validation/red/bad.png"));
  EXPECT_THAT(vitrail("quantize " + best() + " --output " + path("int8") + " --eval " + data +
                      " --split validation --skip-broken")
                  .err,
              HasSubstr("left out: " + data + "/validation/red/bad.png"));
  const std::string pixels =
      " --task pixels --model-kwargs n_layer=1 n_head=2 n_embd=16 --img-size 4 --clusters 4 "
      "--threads 1 -b 8";
  EXPECT_THAT(train(data, "pixels", pixels).err, HasSubstr("(--skip-broken leaves out such images)"));
  EXPECT_THAT(train(data, "pixels2", pixels + " --skip-broken").out, HasSubstr("left out 1 broken image: "));
}

TEST_F(FourthWalk, IsToldWhatChangesNothing) {
  EXPECT_THAT(train(path("data"), "both", small() + " --val-dir " + path("data/validation") + " --val-split test").err,
              HasSubstr("there is no part 'test'"));
  EXPECT_THAT(vitrail("bench train --model " + best() + " --lengths " + write("lengths.txt", "3 4\n")).err,
              HasSubstr("is no translator"));
  for (const std::string& command :
       {"scenes " + path("never") + " --count 1", "patches " + best() + " x.png --method kmeans"}) {
    EXPECT_THAT(vitrail(command + " --seed=-1").err, HasSubstr("must be at least 0, but is -1")) << command;
  }
  const Outcome twice = vitrail("compare " + path("runs/one") + " " + path("runs/one/") + " --seeds");
  EXPECT_THAT(twice.err, HasSubstr("is named twice"));
  EXPECT_THAT(twice.out, Not(HasSubstr("(2 runs)")));
}

}  // namespace
}  // namespace vitrail::test
