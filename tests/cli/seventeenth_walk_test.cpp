// What a seventeenth newcomer stumbled over: what waits for ever, numbers that are no classes, and what nobody said.

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SeventeenthWalk : public Commands {};

// Nobody writes into the pipe: the first signal ends what does nothing but wait for it.
TEST_F(SeventeenthWalk, EndsWhileItWaitsForInput) {
  std::string words;
  for (int i = 0; i < 60; ++i) {
    words += "a red circle and " + std::to_string(i) + " birds\n";
  }
  write("words.txt", words);
  const Outcome trained = vitrail("train " + path("words.txt") +
                                  " --task lm --model-kwargs n_layer=1 n_head=1 n_embd=8 --block-size 8 --epochs 1 "
                                  "--threads 1 --output " +
                                  path("runs") + " --experiment lm");
  ASSERT_EQ(trained.status, 0) << trained.err;
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& command : {"eval " + path("runs/lm") + " ", "generate " + path("runs/lm") + " --prompts ",
                                     std::string("train --task lm --data ")}) {
    EXPECT_EQ(vitrail(command + path("pipe"), "", "timeout -k 20 --preserve-status 1").status, 143) << command;
  }
}

TEST_F(SeventeenthWalk, DoesNotReadPipesOfAFolder) {
  fs::create_directories(path("mixed/red"));
  fs::copy_file(path("data/train/red/0.png"), path("mixed/red/0.png"));
  ASSERT_EQ(mkfifo(path("mixed/red/pipe.jpg").c_str(), 0600), 0);
  const Outcome predicted = vitrail("predict " + best() + " " + path("mixed"), "", "timeout 30");
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.out, Not(HasSubstr("pipe.jpg")));
  const Outcome embedded = vitrail(
      "embed " + best() + " " + path("mixed") + " --unlabeled --output " + path("mixed.safetensors"), "", "timeout 30");
  EXPECT_EQ(embedded.status, 0) << embedded.err;
}

TEST_F(SeventeenthWalk, TakesNoBottleneckForAClassifier) {
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

TEST_F(SeventeenthWalk, IsToldHowToGoOnWithoutABrokenImage) {
  fs::create_directories(path("some"));
  for (int i = 0; i < 8; ++i) {
    fs::copy_file(path("data/train/red/" + std::to_string(i) + ".png"), path("some/" + std::to_string(i) + ".png"));
  }
  write("some/9.jpg", "no image");
  const Outcome broken = vitrail("pretrain mae " + path("some") + small() +
                                 " --decoder-dim 16 --decoder-depth 1 --decoder-heads 2 --epochs 1 --output " +
                                 path("runs") + " --experiment mae");
  EXPECT_EQ(broken.status, 1);
  EXPECT_THAT(broken.err, HasSubstr("vitrail pretrain --resume " + path("runs/mae") + " --skip-broken"));
  EXPECT_EQ(vitrail("pretrain --resume " + path("runs/mae") + " --skip-broken").status, 0);
  EXPECT_EQ(
      vitrail("reconstruct " + path("runs/mae") + " " + path("some") + " --skip-broken --output " + path("some.png"))
          .status,
      0);
  EXPECT_EQ(vitrail("patches " + best() + " " + path("some") + " --skip-broken --output " + path("patched")).status, 0);
}

TEST_F(SeventeenthWalk, ReplacesNoPageOfAnotherOrigin) {
  const std::string attention = "attention " + best() + " " + path("data/train/red/0.png") + " --output " + path("own");
  fs::create_directories(path("own"));
  write("own/index.html", "<html>holidays</html>");
  refuses(attention, "own/index.html' is a page that vitrail has not made, and would be replaced");
  EXPECT_EQ(io::read_text(path("own/index.html")), "<html>holidays</html>");
  fs::remove(path("own/index.html"));
  EXPECT_EQ(vitrail(attention).status, 0);
  EXPECT_EQ(vitrail(attention).status, 0) << "over its own";
}

TEST_F(SeventeenthWalk, IsToldOfWordsThatAreSpeltOut) {
  const std::string image = path("data/train/red/0.png");
  const std::string ask = "zeroshot vitrail/scenes_clip " + image + " --labels ";
  EXPECT_THAT(vitrail(ask + "\"a red circle,xyzzy\"").err, HasSubstr("no pieces for 'xyzzy', only single characters"));
  EXPECT_THAT(vitrail(ask + "\"a red circle,a blue bird\"").err, Not(HasSubstr("note")));
}

TEST_F(SeventeenthWalk, IsToldOfWhatWorks) {
  fs::copy(path("data"), path("odd"), fs::copy_options::recursive);
  fs::rename(path("odd/validation/red"), path("odd/validation/violet"));
  EXPECT_THAT(vitrail("info " + path("odd")).out, HasSubstr("vitrail train " + path("odd") + " --val-split ''"));
  refuses("index " + path("data/train/red/0.png") + " --model " + best() + " --output " + path("x.index"),
          "one image is no data set: name the folder, archive or table that it is in");
  write("few.txt", "a b\nc d\n");
  refuses("train --task translate --src " + path("few.txt") + " --tgt " + path("few.txt") + " --output " + path("runs"),
          "cannot learn 8000 tokens (--vocab-size)");
}

}  // namespace
}  // namespace vitrail::test
