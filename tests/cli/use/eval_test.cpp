// vitrail eval on images.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Eval : public Commands {};

TEST_F(Eval, FindsTheClasses) {
  const Outcome text =
      vitrail("eval " + best() + " " + path("data") + " --split validation --output " + path("report"));
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("top-1"));
  EXPECT_THAT(text.out, HasSubstr("blue"));
  EXPECT_TRUE(fs::exists(path("report/confusion.svg")));
  const auto json =
      nlohmann::json::parse(vitrail("eval " + best() + " " + path("data") + " --split validation --json").out);
  EXPECT_EQ(json["count"], 32);
  EXPECT_GE(json["top1"].get<double>(), 90.0);
  EXPECT_EQ(json["confusion"].size(), 4U);
}

TEST_F(Eval, AveragesWithMirrorImages) {
  const Outcome outcome = vitrail("eval " + best() + " " + path("data") + " --split validation --tta 2 --threads 1");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("top-1"));
  const Outcome wrong = vitrail("eval " + best() + " " + path("data") + " --tta 3");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--tta takes 0"));
}

TEST_F(Eval, SaysThatWeightsHaveDiverged) {
  // A debug build looks at what each operation gives, so it names the operation before the command sees the outputs.
  const auto of_operation = ContainsRegex("holds -?(nan|inf) at element");
  const Outcome trained =
      vitrail("train " + path("data") + small() + " --epochs 1 --lr 1e30 --opt sgd --warmup-epochs 0" +
              " --batch-size 32 --output " + path("runs") + " --experiment diverged");
  EXPECT_EQ(trained.status, 1) << trained.out;
  EXPECT_THAT(trained.err, AnyOf(HasSubstr("the model gives NaN"), HasSubstr("the loss is "), of_operation));
  const std::string weights = path("nan-weights");
  fs::copy(best(), weights);
  std::fstream file(weights + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-8, std::ios::end);
  file.write("\xff\xff\xff\xff\xff\xff\xff\xff", 8);  // NaN
  file.close();
  for (const std::string& command : {"eval " + weights + " " + path("data") + " --split validation",
                                     "predict " + weights + " " + path("data/train/red/3.png")}) {
    const Outcome outcome = vitrail(command);
    EXPECT_EQ(outcome.status, 1) << command << outcome.out;
    EXPECT_THAT(outcome.err, AnyOf(HasSubstr("the model gives NaN where numbers were expected"), of_operation))
        << command;
  }
}

}  // namespace
}  // namespace vitrail::test
