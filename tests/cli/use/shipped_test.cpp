// Checkpoints that ship with the program, as a person names them.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"
#include "tests/support/images.h"
#include "vitrail/io/image.h"
#include "vitrail/io/safetensors.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A folder of checkpoints with vitrail/tiny in it, made by the program itself.
class Shipped : public testing::Test {
 protected:
  static constexpr const char* small =
      "vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=2 num_heads=2 --num-classes 3";

  void SetUp() override {
    std::filesystem::create_directories(folder_ / "weights");
    const Outcome made = vitrail(std::string("convert ") + small + " --dtype bf16 --output " + tiny());
    ASSERT_EQ(made.status, 0) << made.err;
    std::ofstream(tiny() + "/card.json")
        << R"({"name": "vitrail/tiny", "what": "a tiny network", "data": "nothing", "data_licence": "none",
               "licence": "Apache-2.0", "command": "vitrail convert", "seed": 0, "machine": "any", "hours": 0,
               "date": "2026-11-24", "accuracy": "33 % top-1", "measured_by": "nothing", "limits": "knows nothing",
               "sha256": "0"})";
    io::write_png(folder_ / "photo.png", noise_image(20, 16));
  }
  std::string tiny() const { return (folder_ / "weights" / "tiny").string(); }
  std::string photo() const { return (folder_ / "photo.png").string(); }
  Outcome run(const std::string& arguments) const {
    return vitrail(arguments, "", "VITRAIL_WEIGHTS=" + (folder_ / "weights").string());
  }

  const TemporaryFolder folder_;
};

TEST_F(Shipped, IsListedWithSizeAccuracyAndLicence) {
  const Outcome list = run("models --shipped");
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_THAT(list.out, AllOf(HasSubstr("vitrail/tiny"), HasSubstr(" MB  a tiny network; 33 % top-1; Apache-2.0")));
  EXPECT_THAT(run("models --shipped --names").out, HasSubstr("vitrail/tiny\n"));
  EXPECT_THAT(run("models --shipped tin --json").out, HasSubstr(R"("limits": "knows nothing")"));
  EXPECT_THAT(run("models --shipped horse").err, HasSubstr("no checkpoint's name contains 'horse'"));
}

TEST_F(Shipped, IsTakenWhereverAModelIsNamed) {
  const Outcome predicted = run("predict vitrail/tiny " + photo());
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_EQ(predicted.out, run("predict " + tiny() + " " + photo()).out);
  EXPECT_EQ(run("info vitrail/tiny").out, run("info " + tiny()).out);
  const Outcome attention = run("attention vitrail/tiny " + photo() + " --output " + (folder_ / "maps").string());
  EXPECT_EQ(attention.status, 0) << attention.err;
}

TEST_F(Shipped, ThatIsNotThereIsToldWithTheNearest) {
  const Outcome wrong = run("predict vitrail/tyni " + photo());
  EXPECT_NE(wrong.status, 0);
  EXPECT_THAT(wrong.err, HasSubstr("there is no checkpoint 'vitrail/tyni' (did you mean 'vitrail/tiny'?)"));
}

TEST_F(Shipped, HasHalfTheSizeInBf16) {
  const std::string whole = (folder_ / "whole").string();
  ASSERT_EQ(vitrail(std::string("convert ") + small + " --output " + whole).status, 0);
  const io::Safetensors halves = io::Safetensors::open(tiny() + "/model.safetensors");
  const io::Safetensors full = io::Safetensors::open(whole + "/model.safetensors");
  ASSERT_EQ(halves.names(), full.names());
  for (const std::string& name : full.names()) {
    EXPECT_EQ(halves.get(name).dtype(), DType::bf16) << name;
    expect_close(halves.get(name), full.get(name), 1.0 / 256, name);
  }
}

class ShippedByDefault : public OnImages {};

// A picture is enough where a checkpoint ships.
TEST_F(ShippedByDefault, IsTakenWhereNoModelIsNamed) {
  if (vitrail("models --shipped vitrail/cifar10_resnet").status != 0) {
    GTEST_SKIP() << "no checkpoints are beside the program";
  }
  const std::string image = path("data/train/red/0.png");
  for (const std::string& command :
       {"predict " + image, "attention " + image + " --output " + path("maps"), "zeroshot " + image}) {
    const Outcome outcome = vitrail(command);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("no MODEL is named: 'vitrail/"));
  }
  refuses("predict " + path("nothing.png"), "there is no image");
  refuses("search " + image, "is an image: name the index to look through before it", 2);
}

TEST_F(ShippedByDefault, IsSuggestedByItsLastName) {
  refuses("predict scenes_dino " + path("data/train/red/0.png"), "there is no model 'scenes_dino'; did you mean");
  refuses("models scenes_dino", "vitrail models --shipped those that are trained");
}

}  // namespace
}  // namespace vitrail::test
