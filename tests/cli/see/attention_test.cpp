// vitrail attention on images.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "vitrail/io/image.h"
#include "vitrail/io/safetensors.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

class Attention : public Commands {};

TEST_F(Attention, DrawsMapsAndWritesThemRaw) {
  const Outcome outcome = vitrail("attention " + best() + " " + path("data/validation/blue/1.png") + " --output " +
                                  path("maps") + " --query 1,2 --raw " + path("maps.safetensors"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* name :
       {"image.png", "sheet.png", "rollout.png", "index.html", "layer01.png", "layer01-head02.png"}) {
    EXPECT_TRUE(fs::exists(path("maps/") + name)) << name;
  }
  EXPECT_EQ(io::read_image(path("maps/layer00-head00.png")).width, 224);
  const io::Safetensors raw = io::Safetensors::open(path("maps.safetensors"));
  EXPECT_EQ(raw.shape("attention.1").str(), "[1, 3, 17, 17]");
  const std::vector<float> row = raw.get("attention.1").narrow(2, 0, 1).narrow(1, 0, 1).values();
  float sum = 0;
  for (const float p : row) {
    sum += p;
  }
  EXPECT_NEAR(sum, 1.0F, 1e-5);
  const Outcome outside = vitrail("attention " + best() + " " + path("data/validation/blue/1.png") + " --output " +
                                  path("none") + " --query 4,0");
  EXPECT_EQ(outside.status, 1);
  EXPECT_THAT(outside.err, HasSubstr("4,0"));
  EXPECT_FALSE(fs::exists(path("none")));
}

class AttentionOfKinds : public OnImages {};

// What lies beside the blocks: a hybrid's stages, the map of attention pooling, layers of a coarser grid than the
// query's.
TEST_F(AttentionOfKinds, IsOfHybridsPoolingsAndPyramidsToo) {
  const auto forward = [](const std::string& name) {
    const std::string model = golden_path("models/" + name).string();
    const Outcome outcome = vitrail("forward " + model + " --input " + model + "/expected.safetensors --output " +
                                    path(name + ".safetensors") + " --features --attention");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return io::Safetensors::open(path(name + ".safetensors"));
  };
  const io::Safetensors hybrid = forward("hybrid");
  EXPECT_EQ(hybrid.shape("features.stem.0").str(), "[2, 128, 8, 10]");
  EXPECT_EQ(hybrid.shape("features.stem.1").str(), "[2, 128, 4, 5]");
  EXPECT_EQ(hybrid.shape("features.0").str(), "[2, 21, 24]");
  EXPECT_EQ(forward("map").shape("attention.pool").str(), "[2, 3, 1, 16]");
  const auto attention = [](const std::string& name, const std::string& flags) {
    const Outcome outcome =
        vitrail("attention " + golden_path("models/" + name).string() + " " + path("data/validation/blue/1.png") +
                " --output " + path("maps_" + name) + " --raw " + path("maps_" + name + ".safetensors") + flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  };
  attention("map", "");
  EXPECT_TRUE(fs::exists(path("maps_map/pool.png")));
  const io::Safetensors raw = io::Safetensors::open(path("maps_map.safetensors"));
  EXPECT_EQ(raw.shape("attention.pool").str(), "[1, 3, 1, 16]");
  attention("swin", " --query 15,15");
  EXPECT_TRUE(fs::exists(path("maps_swin/layer04.png")));
}

}  // namespace
}  // namespace vitrail::test
