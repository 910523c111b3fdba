// vitrail info of models, and vitrail models.
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/models/recurrent/recurrent.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(Info, DescribesDetectorsByName) {
  EXPECT_THAT(vitrail("info detr_resnet50").out, HasSubstr("41555015"));
  EXPECT_THAT(vitrail("models detr").out, HasSubstr("detr_scenes"));
}

TEST(Models, ListsByPattern) {
  const Outcome names = vitrail("models 'deit*distilled*' --names");
  EXPECT_THAT(names.out, HasSubstr("deit_tiny_distilled_patch16_224\n"));
  EXPECT_THAT(names.out, Not(HasSubstr("vit_tiny")));
  EXPECT_THAT(vitrail("models vit_base_patch16_224").out, HasSubstr("86.6 M"));
  EXPECT_EQ(vitrail("models nothing-like-it").status, 1);
}

class InfoOfARun : public Commands {};

TEST_F(InfoOfARun, DescribesARecurrentNetworkByItself) {
  nn::RecurrentConfig config;
  config.kind = nn::RecurrentKind::gru;
  config.input_size = 3;
  config.hidden_size = 4;
  models::save_recurrent(models::RecurrentModel(config), path("gru"));
  EXPECT_THAT(vitrail("info " + path("gru")).out, HasSubstr("a recurrent network by itself (gru)"));
  EXPECT_EQ(nlohmann::json::parse(vitrail("info " + path("gru") + " --json").out)["hidden_size"], 4);
  refuses("info " + path("gru") + " --num-classes 3", "is a recurrent network", 2);
}

TEST_F(InfoOfARun, PrintsOneObjectWithTheParameters) {
  const nlohmann::json info = nlohmann::json::parse(vitrail("info " + best() + " --parameters --json").out);
  EXPECT_EQ(info["tensors"][0]["name"], "cls_token");
  EXPECT_EQ(info["tensors"][0]["shape"], nlohmann::json({1, 1, 24}));
  EXPECT_EQ(nlohmann::json::parse(vitrail("info mvitv2_tiny --json").out)["depth"], 10);
}

}  // namespace
}  // namespace vitrail::test
