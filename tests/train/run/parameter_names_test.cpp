#include "vitrail/train/run/parameter_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "vitrail/models/model.h"

namespace vitrail::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Names = std::set<std::string>;

class ParameterNames : public ::testing::Test {
 protected:
  static models::Model make() {
    models::CreateOptions options;
    options.model_kwargs = R"({"img_size": 8, "patch_size": 4, "embed_dim": 4, "depth": 12, "num_heads": 1})";
    return models::describe_model("vit_tiny_patch16_224", options);
  }
  Names named(const std::vector<std::string>& patterns) { return parameters_named(*model_.net, patterns, "--freeze"); }
  // How many blocks the names lie in, and how many names there are besides.
  std::pair<std::size_t, std::size_t> blocks(const std::vector<std::string>& patterns) {
    Names in_blocks;
    std::size_t others = 0;
    for (const std::string& name : named(patterns)) {
      const bool inside = name.starts_with("blocks.");
      if (inside) {
        in_blocks.insert(name.substr(0, name.find('.', 7)));
      }
      others += inside ? 0 : 1;
    }
    return {in_blocks.size(), others};
  }
  const models::Model model_ = make();
};

TEST_F(ParameterNames, AreWholeParts) {
  EXPECT_EQ(named({"patch_embed"}), (Names{"patch_embed.proj.weight", "patch_embed.proj.bias"}));
  EXPECT_EQ(named({"patch_embed."}), named({"patch_embed"}));
  EXPECT_EQ(named({"norm", "cls_token"}), (Names{"norm.weight", "norm.bias", "cls_token"}));
  EXPECT_EQ(blocks({"blocks.1"}), std::pair(std::size_t{1}, std::size_t{0})) << "not 10 and 11";
  EXPECT_EQ(named({"blocks.1"}).size(), 12U);
}

TEST_F(ParameterNames, MayBeRangesAndStars) {
  EXPECT_EQ(blocks({"patch_embed", "blocks.0-5"}), std::pair(std::size_t{6}, std::size_t{2}));
  EXPECT_EQ(blocks({"blocks.9-11", "blocks.3-3"}).first, 4U);
  EXPECT_EQ(named({"*.norm1"}).size(), 24U);
  EXPECT_EQ(named({"*.bias"}).size(), 12 * 6 + 3U);
  EXPECT_EQ(named({"blocks.*.norm*"}).size(), 48U);
  EXPECT_EQ(named({"*_embed"}), (Names{"patch_embed.proj.weight", "patch_embed.proj.bias", "pos_embed"}));
}

TEST_F(ParameterNames, MayBeTimmsLayers) {
  EXPECT_EQ(blocks({"layer:0"}), std::pair(std::size_t{0}, std::size_t{4}));
  EXPECT_EQ(blocks({"layer:0-6"}), std::pair(std::size_t{6}, std::size_t{4}));
  EXPECT_EQ(named({"layer:13"}), (Names{"head.weight", "head.bias"}));
}

TEST_F(ParameterNames, ThatFitNothingAreNamed) {
  const auto refusal = [&](const std::string& pattern) { return test::error_of([&] { named({"head", pattern}); }); };
  EXPECT_THAT(refusal("patch"), AllOf(HasSubstr("--freeze patch:"), HasSubstr("patch_embed, blocks, norm, head")));
  for (const char* pattern :
       {"blocks.12", "blocks.13-20", "blocks.5-0", "layer:14", "", "*.nothing", "head.weight.0"}) {
    EXPECT_THAT(refusal(pattern), HasSubstr("no parameter's name begins so")) << pattern;
  }
  EXPECT_THAT(refusal("layer:all"), HasSubstr("a range of them"));
  EXPECT_THAT(refusal("blocks.9-99"), HasSubstr("--freeze blocks.9-99: there is no blocks.99"));
  EXPECT_THAT(refusal("*.0-12.norm1"), HasSubstr("there is no *.12"));
  EXPECT_THAT(refusal("layer:0-99"), HasSubstr("--freeze layer:0-99: the last layer is 13"));
}

}  // namespace
}  // namespace vitrail::train
