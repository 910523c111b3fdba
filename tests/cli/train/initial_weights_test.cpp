// Weights that a training begins with.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class InitialWeights : public Commands {};

TEST_F(InitialWeights, OfImagesThatWerePreparedOtherwise) {
  const Outcome outcome = vitrail("train " + path("data") + small() + " --initial-checkpoint " + best() +
                                  " --mean 0.2 --std 0.4 --epochs 1 --output " + path("runs") + " --experiment other");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("were prepared otherwise: mean 0.5 0.5 0.5, not 0.2 0.2 0.2"));
}

TEST_F(InitialWeights, OfAnEncoderGetAHead) {
  const std::string before = " --output " + path("runs") + " --epochs 1 --threads 1 -b 8";
  const std::string vit =
      " --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 embed_dim=24 depth=1 num_heads=3";
  ASSERT_EQ(vitrail("pretrain autoencoder " + path("data/train") + vit +
                    " --latent-dim 4 --decoder-depth 1 --decoder-dim 16" + before + " --experiment ae")
                .status,
            0);
  ASSERT_EQ(vitrail("encoder " + path("runs/ae") + " --output " + path("ae")).status, 0);
  ASSERT_EQ(vitrail("pretrain mae " + path("data/train") + vit +
                    " --decoder-depth 1 --decoder-dim 16 --decoder-heads 2" + before + " --experiment mae")
                .status,
            0);
  for (const char* initial : {"ae", "runs/mae", "runs/one"}) {
    const Outcome tuned = vitrail("train " + path("data") + before + " --no-aug --initial-checkpoint " + path(initial));
    EXPECT_EQ(tuned.status, 0) << initial << ": " << tuned.err;
  }
  // A file of that name where the program is called is none of a model.
  fs::create_directories(path("elsewhere"));
  write("elsewhere/config.json", "{}");
  const Outcome beside = vitrail("train " + path("data") + before + small(), "", "cd " + path("elsewhere") + " &&");
  EXPECT_EQ(beside.status, 0) << beside.err;
  fs::create_directories(path("three"));
  for (const char* name : {"a", "b", "c"}) {
    fs::copy(path("data/train/red"), path(std::string("three/") + name), fs::copy_options::recursive);
  }
  refuses("train " + path("three") + before + " --initial-checkpoint " + best(),
          "has a classifier of 2 classes, and 3 are asked for: --pretrained-path gives it a new one");
  refuses("train " + path("data") + before + " --img-size 32 --initial-checkpoint " + best(),
          "is for images of 3 x 16 x 16, not of 3 x 32 x 32: --pretrained-path adapts it");
  fs::copy(path("runs/mae/best"), path("mae-alone"), fs::copy_options::recursive);
  EXPECT_THAT(vitrail("encoder " + path("mae-alone") + " --output " + path("mae-encoder")).out,
              HasSubstr("the encoder, without the decoder"));
  EXPECT_THAT(io::read_text(path("mae-encoder/config.json")), Not(HasSubstr("image_processor"))) << "timm knows none";
  ASSERT_EQ(vitrail("convert " + path("mae-alone") + " --output " + path("mae-timm")).status, 0);
  EXPECT_THAT(io::read_text(path("mae-timm/config.json")), Not(HasSubstr("image_processor")));
}

}  // namespace
}  // namespace vitrail::test
