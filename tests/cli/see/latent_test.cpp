// vitrail latent and vitrail reconstruct: what they refuse.
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

class Latent : public OnImages {};

TEST_F(Latent, TakesTwoImagesOrTwoLists) {
  ASSERT_EQ(vitrail("pretrain autoencoder " + path("data/train") + " --epochs 1 --output " + path("runs") +
                    " --experiment ae" + small())
                .status,
            0);
  const std::string latent = "latent " + path("runs/ae");
  refuses(latent + " --between " + path("data/train/red/0.png") + " --output " + path("way.png"),
          "--between takes two images, not 1", 2);
  refuses(latent + " --direction list.txt --output " + path("way.png"), "--direction takes two lists, not 1", 2);
}

TEST_F(Latent, RefusesToHideEverything) {
  const Outcome outcome = vitrail("reconstruct " + path("none") + " " + path("data") + " --mask-ratio 1");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("must be above 0 and below 1, but is 1"));
}

}  // namespace
}  // namespace vitrail::test
