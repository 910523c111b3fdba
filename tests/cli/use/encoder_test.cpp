// vitrail encoder, and what is refused of autoencoders.
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

class Encoder : public OnImages {};

TEST_F(Encoder, IsToBeTakenFromAnAutoencoder) {
  const Outcome made = vitrail("pretrain autoencoder " + path("data/train") + " --latent-dim 2 --epochs 1 --output " +
                               path("runs") + " --experiment bottle" + small());
  ASSERT_EQ(made.status, 0) << made.err;
  for (const std::string command : {"eval ", "report ", "predict "}) {
    const Outcome outcome = vitrail(command + path("runs/bottle") + " " + path("data/validation") +
                                    (command == "report " ? " --output " + path("page") : ""));
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_THAT(outcome.err, HasSubstr("is an autoencoder, which has no classifier")) << command;
  }
}

TEST_F(Encoder, EndsInABottleneckThatIsNoClassifier) {
  const Outcome trained = vitrail("pretrain autoencoder " + path("data/train") + small() +
                                  " --latent-dim 4 --decoder-depth 1 --decoder-dim 16 --epochs 1 --output " +
                                  path("runs") + " --experiment ae");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("next: `vitrail encoder " + path("runs/ae") + " --output encoder`"));
  ASSERT_EQ(vitrail("encoder " + path("runs/ae") + " --output " + path("bottleneck")).status, 0);
  const std::string image = path("data/train/red/0.png");
  refuses("predict " + path("bottleneck") + " " + image, "whose numbers are no classes: `vitrail embed --logits`");
  refuses("eval " + path("bottleneck") + " " + path("data/train"), "ends in the bottleneck of an autoencoder");
  EXPECT_EQ(vitrail("embed " + path("bottleneck") + " " + path("data/train") + " --logits --output " +
                    path("latent.safetensors"))
                .status,
            0);
  // A copy is one too.
  ASSERT_EQ(vitrail("convert " + path("bottleneck") + " --dtype bf16 --output " + path("copy")).status, 0);
  refuses("predict " + path("copy") + " " + image, "whose numbers are no classes");
  EXPECT_EQ(
      vitrail("index " + path("data/train") + " --model " + path("bottleneck") + " --output " + path("b.index")).status,
      0);
  EXPECT_EQ(train(path("data") + " --model " + path("bottleneck") + " --no-aug -b 8 --threads 1", "on-it").status, 0);
  ASSERT_EQ(vitrail("encoder " + path("runs/ae") + " --no-bottleneck --output " + path("bare")).status, 0);
  refuses("predict " + path("bare") + " " + image, "has no classifier");
}

}  // namespace
}  // namespace vitrail::test
