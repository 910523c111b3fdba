// vitrail positions.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "vitrail/io/image.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

class Positions : public Commands {};

TEST_F(Positions, AreDrawnOfAModel) {
  const Outcome outcome = vitrail("positions " + best() + " --output " + path("positions.png"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("4 x 4 patches"));
  EXPECT_GT(io::read_image(path("positions.png")).width, 100);
  const std::string tiny = "positions vit_tiny_patch16_224 --img-size 64 --model-kwargs depth=1 pos_embed=";
  EXPECT_EQ(vitrail(tiny + "rope2d --output " + path("rope.png")).status, 0);
  const Outcome nothing = vitrail(tiny + "none --output " + path("none.png"));
  EXPECT_EQ(nothing.status, 1);
  EXPECT_THAT(nothing.err, HasSubstr("no positions to draw"));
  EXPECT_FALSE(fs::exists(path("none.png")));
  EXPECT_EQ(vitrail(tiny + "alibi1d --layer 1 --output " + path("none.png")).status, 1);
}

}  // namespace
}  // namespace vitrail::test
