// vitrail train with a teacher.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Distillation : public Commands {};

TEST_F(Distillation, MakesAModelWhoseHeadsAreBothEvaluated) {
  const std::string run = "train " + path("data") + " --output " + path("runs") +
                          " --model deit_tiny_distilled_patch16_224 --model-kwargs img_size=16 patch_size=4 "
                          "embed_dim=24 depth=1 num_heads=3 --epochs 4 --batch-size 8 --no-aug --lr 3e-3 --threads 1 ";
  const Outcome outcome = vitrail(run + "--experiment distilled --teacher-model " + best() +
                                  " --distillation-type soft --distillation-alpha 0.5 --distillation-tau 2 "
                                  "--unlabeled-dir " +
                                  path("data/validation"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("the teacher is vit_tiny_patch16_224"), HasSubstr("soft distillation"),
                                 HasSubstr("32 of the training images have no labels")));
  const std::string command = "eval " + path("runs/distilled/best") + " " + path("data") + " --split validation";
  EXPECT_THAT(vitrail(command).out, AllOf(HasSubstr("class head"), HasSubstr("distillation head")));
  const auto json = nlohmann::json::parse(vitrail(command + " --json").out);
  EXPECT_TRUE(json["heads"]["head_dist"].contains("top1"));
  EXPECT_GE(json["top1"].get<double>(), 80.0);
  const Outcome wrong = vitrail(run + "--experiment wrong --distillation-type warm");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--distillation-type must be one of hard, soft, none"));
}

// A teacher may know more than its student.
TEST_F(Distillation, TakesATeacherOfMoreClasses) {
  const std::string data = path("three");
  fs::copy(path("data"), data, fs::copy_options::recursive);
  for (const std::string part : {"train", "validation"}) {
    fs::copy(path("data/" + part + "/red"), data + "/" + part + "/green");
  }
  ASSERT_EQ(train(data, "teacher").status, 0);
  const std::string taught = small() + " --distillation-type soft --teacher-model ";
  const Outcome student = train(path("data"), "student", taught + path("runs/teacher"));
  EXPECT_EQ(student.status, 0) << student.err;
  EXPECT_THAT(student.out, HasSubstr("soft distillation of 2 of its 3 classes"));
  const Outcome knows_less = train(data, "none", taught + best());
  EXPECT_EQ(knows_less.status, 1);
  EXPECT_THAT(knows_less.err, HasSubstr("the teacher '" + best() + "' does not know the class 'green'"));
}

}  // namespace
}  // namespace vitrail::test
