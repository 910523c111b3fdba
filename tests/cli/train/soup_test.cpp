// vitrail soup.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

class Soup : public Commands {};

TEST_F(Soup, AveragesModels) {
  const std::string folders = best() + " " + path("runs/one/last");
  const std::string data = " --data " + path("data") + " --split validation --threads 1";
  const Outcome uniform = vitrail("soup " + folders + " --output " + path("soup") + data);
  ASSERT_EQ(uniform.status, 0) << uniform.err;
  EXPECT_THAT(uniform.out, HasSubstr("the average of 2 models, top-1"));
  const Outcome greedy = vitrail("soup " + folders + " --greedy --json --output " + path("greedy") + data);
  ASSERT_EQ(greedy.status, 0) << greedy.err;
  const auto report = nlohmann::json::parse(greedy.out);
  EXPECT_EQ(report.at("models").size(), 2U);
  EXPECT_TRUE(report.at("models")[0].at("used"));
  EXPECT_GE(report.at("top1").get<double>(), report.at("models")[0].at("top1").get<double>());
  const Outcome again = vitrail("eval " + path("greedy") + " " + path("data") + " --split validation --json");
  EXPECT_NEAR(nlohmann::json::parse(again.out).at("top1").get<double>(), report.at("top1").get<double>(), 1e-9);
  EXPECT_THAT(vitrail("soup " + folders + " --greedy --output " + path("other")).err, HasSubstr("--data"));
  EXPECT_THAT(vitrail("soup " + folders + " --output " + path("soup")).err, HasSubstr("exists"));
}

class SoupThatFails : public Commands {};

TEST_F(SoupThatFails, LeavesNothingBehind) {
  const std::string soup = "soup " + best() + " " + best() + " --output " + path("soup") + " --data ";
  EXPECT_EQ(vitrail(soup + path("nosuch")).status, 1);
  EXPECT_FALSE(fs::exists(path("soup")));
  EXPECT_EQ(vitrail(soup + path("data") + " --split validation").status, 0);
  EXPECT_THAT(
      vitrail("soup " + golden_path("models/detection/detr").string() + " " + best() + " --output " + path("no")).err,
      HasSubstr("finds objects: soups are made of models that classify images, or of texts"));
}

class SoupOfTexts : public InAFolder {};

TEST_F(SoupOfTexts, AveragesOnlyModelsOfTheSameTokens) {
  std::string texts[2];
  for (int i = 0; i < 40; ++i) {
    texts[0] += "abcde\n";
    texts[1] += "vwxyz\n";
  }
  for (const int i : {0, 1}) {
    const std::string name = "letters" + std::to_string(i);
    write(name + ".txt", texts[i]);
    ASSERT_EQ(train(path(name + ".txt"), name,
                    " --task lm --tokenizer char --model-kwargs n_layer=1 n_head=2 n_embd=8 --block-size 8 -b 2 "
                    "--threads 1")
                  .status,
              0);
  }
  refuses("soup " + path("runs/letters0") + " " + path("runs/letters1") + " --output " + path("soup"),
          "what one model has learnt of a token says nothing of another's");
  EXPECT_FALSE(fs::exists(path("soup")));
}

}  // namespace
}  // namespace vitrail::test
