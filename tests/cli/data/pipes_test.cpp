// Pipes in place of files.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Pipes : public OnImages {
 protected:
  // Runs a command in which the words PIPE1, PIPE2 … stand for pipes that give these texts once.
  static Outcome with_pipes(std::string arguments, const std::vector<std::string>& texts) {
    std::string before;
    for (const std::string& text : texts) {
      const std::string number = std::to_string(++pipes_);
      const std::string pipe = path("pipe" + number);
      const std::string file = write("piped" + number, text);
      before += "mkfifo " + pipe + "; timeout 60 sh -c 'cat " + file + " >" + pipe + "' & ";
      const std::string word = "PIPE" + std::to_string(&text - texts.data() + 1);
      arguments.replace(arguments.find(word), word.size(), pipe);
    }
    return vitrail(arguments, "", before);
  }

  static inline int pipes_ = 0;
};

TEST_F(Pipes, GiveTexts) {
  const std::string classes = golden_model("predictions/classes");
  const Outcome said = with_pipes("predict " + classes + " PIPE1 --topk 1 --threads 1", {"two dogs\nsnow\n"});
  EXPECT_THAT(said.out, StartsWith("two dogs:  O 43.4 %\nsnow:"));
  EXPECT_THAT(said.err, Not(HasSubstr("note")));
  const Outcome judged = with_pipes("eval " + classes + " PIPE1 --threads 1", {"O\ttwo dogs\nB-animal\tsnow\n"});
  EXPECT_THAT(judged.out, StartsWith("accuracy ")) << judged.err;
  const Outcome tagged =
      with_pipes("eval " + golden_model("predictions/tokens") + " PIPE1 --threads 1", {"two B-person\ndogs O\n"});
  EXPECT_THAT(tagged.out, StartsWith("accuracy ")) << tagged.err;
  const std::string sentences = golden_model("sentences/mean");
  EXPECT_THAT(
      with_pipes("embed " + sentences + " PIPE1 --threads 1 --output " + path("x.safetensors"), {"a\nb\nc\n"}).out,
      HasSubstr("with 3 texts"));
  EXPECT_THAT(
      with_pipes("embed " + sentences + " 'two dogs' --topk 1 --threads 1 --search PIPE1", {"snow\ntwo dogs\n"}).out,
      StartsWith("1.0000  two dogs"));
  const Outcome pairs = with_pipes("eval " + sentences + " --src PIPE1 --tgt PIPE2 --threads 1",
                                   {"two dogs\nsnow\na man\n", "two dogs\nsnow\na man\n"});
  EXPECT_EQ(pairs.status, 0) << pairs.err;
}

TEST_F(Pipes, GiveLabelsListsAndOptions) {
  const std::string image = path("data/train/red/0.png");
  const Outcome told =
      with_pipes("zeroshot " + golden_model("joint/siglip") + " " + image + " --labels PIPE1 --format csv --threads 1",
                 {"a red bird\na blue circle\n"});
  EXPECT_THAT(told.out, HasSubstr("a blue circle")) << told.err;
  EXPECT_THAT(told.out, Not(HasSubstr("pipe")));
  ASSERT_EQ(vitrail("pretrain autoencoder " + path("data/train") + " --epochs 1 --output " + path("runs") +
                    " --experiment ae" + small())
                .status,
            0);
  const Outcome way = with_pipes("latent " + path("runs/ae") + " --direction PIPE1 PIPE2 --output " + path("way.png"),
                                 {path("data/train/red/0.png\n"), path("data/train/blue/0.png\n")});
  EXPECT_EQ(way.status, 0) << way.err;
  const Outcome trained =
      with_pipes("train " + path("data") + " -c PIPE1 --threads 1 --output " + path("runs") + " --experiment piped",
                 {"epochs = 1\nbatch_size = 16\nmodel = \"vit_tiny_patch16_224\"\nmodel_kwargs = '{\"img_size\": 16, "
                  "\"patch_size\": 8, \"embed_dim\": 8, \"depth\": 1, \"num_heads\": 1}'\n"});
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("16x16 pixels"));
  EXPECT_THAT(trained.out, HasSubstr("epoch 1/1"));
  EXPECT_THAT(
      with_pipes("train " + path("data") + " -c PIPE1 --output " + path("runs") + " --experiment none", {""}).err,
      HasSubstr("there are no options in it"));
}

// Nobody writes into the pipe: the first signal ends what does nothing but wait for it.
TEST_F(Pipes, MayBeWaitedForUntilASignal) {
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

}  // namespace
}  // namespace vitrail::test
