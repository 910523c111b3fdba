#include "vitrail/train/vqa/official_accuracy.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/io/json.h"

namespace vitrail::train {
namespace {

TEST(OfficialVqaAccuracy, IsThatOfTheCodeOfItsAuthors) {
  for (const nlohmann::json& item : io::read_json(test::golden_path("sets/vqa_accuracy.json"))) {
    const auto answers = item.at("answers").get<std::vector<std::string>>();
    EXPECT_NEAR(100 * official_vqa_accuracy(answers, item.at("given").get<std::string>()), item.at("accuracy"), 1e-9)
        << item;
  }
}

TEST(OfficialVqaAccuracy, MakesWordsAlike) {
  EXPECT_EQ(processed_answer("The Dogs."), "dogs");
  EXPECT_EQ(processed_answer("Two"), "2");
  EXPECT_EQ(processed_answer("dont"), "don't");
  EXPECT_EQ(processed_answer("left/right"), "left right");
  EXPECT_EQ(processed_answer("3,000"), "3000");
  EXPECT_EQ(processed_answer("1.5"), "1.5");
  EXPECT_EQ(processed_answer(""), "");
}

TEST(OfficialVqaAccuracy, LeavesEachPersonOutOnce) {
  std::vector<std::string> answers(10, "red");
  EXPECT_EQ(official_vqa_accuracy(answers, "red"), 1);
  EXPECT_EQ(official_vqa_accuracy(answers, "Red"), 0);  // where people agree, nothing is made alike
  answers.assign(7, "red");
  answers.insert(answers.end(), 3, "orange");
  EXPECT_NEAR(official_vqa_accuracy(answers, "An orange."), 0.9, 1e-12);  // 7 * 1 + 3 * 2 / 3
}

}  // namespace
}  // namespace vitrail::train
