// What the class token looks at and what patches have in common, drawn as a person asks for it.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/support/program.h"
#include "vitrail/io/image.h"
#include "vitrail/io/safetensors.h"

namespace vitrail::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Rendered scenes, and a small model whose weights are random.
class Patches : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 3 --seed 5").status, 0);
    ASSERT_EQ(vitrail("scenes " + path("wide") + " --count 1 --size 100").status, 0);
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  static std::string image(int i) { return path("scenes/images/00000" + std::to_string(i) + ".png"); }
  static std::string small() {
    return "vit_tiny_patch16_224 --model-kwargs img_size=32 patch_size=8 embed_dim=24 depth=2 num_heads=3 reg_tokens=2 "
           "--threads 1 ";
  }
  static inline TemporaryFolder* folder_ = nullptr;
};

TEST_F(Patches, TheClassTokensHeadsSegmentAnImageOfAnySize) {
  const Outcome drawn =
      vitrail("attention " + small() + path("wide/images/000000.png") + " --method dino --threshold 0.5 --output " +
              path("dino") + " --raw " + path("dino.safetensors"));
  ASSERT_EQ(drawn.status, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("3 heads on 12 x 12 patches"));
  for (const char* name : {"image.png", "heads.png", "sheet.png", "head00.png", "head02-mask.png", "index.html"}) {
    EXPECT_TRUE(fs::exists(path("dino") + "/" + name)) << name;
  }
  EXPECT_EQ(io::read_image(path("dino/heads.png")).width, 96 * 3);
  const io::Safetensors raw = io::Safetensors::open(path("dino.safetensors"));
  EXPECT_EQ(raw.get("attention").shape(), Shape({3, 12, 12}));
  EXPECT_EQ(raw.get("mask").shape(), Shape({3, 12, 12}));
  const Outcome larger =
      vitrail("attention " + small() + "--img-size 200 " + image(0) + " --method dino --output " + path("larger"));
  EXPECT_THAT(larger.out, HasSubstr("3 heads on 25 x 25 patches")) << larger.err;
}

TEST_F(Patches, MasksOfHeadsAreMeasured) {
  const Outcome measured = vitrail("attention " + small() + "--img-size 64 " + path("scenes/images") +
                                   " --method dino --masks " + path("scenes/masks"));
  ASSERT_EQ(measured.status, 0) << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("60 % of the class token's attention and the foreground of 3 images"));
  EXPECT_THAT(measured.out, HasSubstr("the best head"));
  EXPECT_THAT(measured.out, HasSubstr("the whole image"));
}

TEST_F(Patches, AreColouredGroupedAndMatched) {
  const std::string images = image(0) + " " + image(1) + " --output ";
  const Outcome pca =
      vitrail("patches " + small() + "--img-size 64 " + images + path("pca") + " --raw " + path("pca.safetensors"));
  ASSERT_EQ(pca.status, 0) << pca.err;
  EXPECT_THAT(pca.out, HasSubstr("of 2 images along their first three principal components"));
  EXPECT_TRUE(fs::exists(path("pca/pca01.png")) && fs::exists(path("pca/sheet.png")));
  EXPECT_EQ(io::Safetensors::open(path("pca.safetensors")).get("coordinates.1").shape(), Shape({8, 8, 3}));
  const Outcome groups = vitrail("patches " + small() + "--img-size 64 " + images + path("kmeans") +
                                 " --method kmeans --clusters 3 --seed 2");
  ASSERT_EQ(groups.status, 0) << groups.err;
  EXPECT_THAT(groups.out, HasSubstr("in 3 groups by k-means"));
  EXPECT_TRUE(fs::exists(path("kmeans/kmeans00.png")));
  const Outcome pairs =
      vitrail("patches " + small() + "--img-size 64 " + images + path("match") + " --method match --most 5");
  ASSERT_EQ(pairs.status, 0) << pairs.err;
  EXPECT_THAT(pairs.out, HasSubstr("pairs of patches whose tokens are each other's nearest"));
  EXPECT_EQ(io::read_image(path("match/match.png")).width, 2 * 256 + 24);
}

TEST_F(Patches, SayWhatIsWrong) {
  EXPECT_THAT(vitrail("patches " + small() + "--img-size 64 " + image(0) + " --method match").err,
              HasSubstr("patches of two images are matched, not of 1"));
  EXPECT_THAT(vitrail("patches " + small() + "--img-size 64 " + image(0) + " --clusters 3").err,
              HasSubstr("--clusters belongs to --method kmeans"));
  EXPECT_THAT(vitrail("attention " + small() + "--img-size 64 " + image(0) + " --threshold 0.5").err,
              HasSubstr("--threshold and --masks belong to --method dino"));
  EXPECT_THAT(vitrail("attention " + small() + "--img-size 64 " + image(0) + " --method dino --query 1,1").err,
              HasSubstr("--query and --head have no effect on --method dino"));
  EXPECT_THAT(vitrail("attention mixer_s32_224 " + image(0) + " --method dino").err,
              HasSubstr("is no Vision Transformer that reads images of any size"));
  EXPECT_THAT(vitrail("attention " + small() + "--img-size 4 " + image(0) + " --method dino").err,
              HasSubstr("an image of 4 x 4 pixels has no patch of 8 x 8"));
}

}  // namespace
}  // namespace vitrail::test
