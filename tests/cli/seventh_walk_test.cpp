// What a seventh newcomer was told wrongly or not at all: pipes in place of files, features of two models, texts that
// are cut, data that judge themselves.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "tests/support/golden.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class SeventhWalk : public Commands {
 protected:
  static Outcome train(const std::string& flags, const std::string& name) {
    return vitrail("train " + flags + " --threads 1 --output " + path("runs") + " --experiment " + name);
  }
  static std::string model(const std::string& name) { return golden_path("models/" + name).string(); }
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

TEST_F(SeventhWalk, GivesPipesForTexts) {
  const std::string classes = model("predictions/classes");
  const Outcome said = with_pipes("predict " + classes + " PIPE1 --topk 1 --threads 1", {"two dogs\nsnow\n"});
  EXPECT_THAT(said.out, StartsWith("two dogs:  O 43.4 %\nsnow:"));
  EXPECT_THAT(said.err, Not(HasSubstr("note")));
  const Outcome judged = with_pipes("eval " + classes + " PIPE1 --threads 1", {"O\ttwo dogs\nB-animal\tsnow\n"});
  EXPECT_THAT(judged.out, StartsWith("accuracy ")) << judged.err;
  const Outcome tagged =
      with_pipes("eval " + model("predictions/tokens") + " PIPE1 --threads 1", {"two B-person\ndogs O\n"});
  EXPECT_THAT(tagged.out, StartsWith("accuracy ")) << tagged.err;
  const std::string sentences = model("sentences/mean");
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

TEST_F(SeventhWalk, GivesPipesForLabelsListsAndOptions) {
  const std::string image = path("data/train/red/0.png");
  const Outcome told =
      with_pipes("zeroshot " + model("joint/siglip") + " " + image + " --labels PIPE1 --format csv --threads 1",
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

TEST_F(SeventhWalk, IsToldOfFeaturesThatAreNotComparable) {
  const auto embed = [](const std::string& flags, const std::string& name) {
    const Outcome done = vitrail("embed " + flags + " --threads 1 --output " + path(name + ".safetensors"));
    EXPECT_EQ(done.status, 0) << done.err;
    return path(name + ".safetensors");
  };
  ASSERT_EQ(train(path("data") + small() + " --epochs 1 --seed 7", "other").status, 0);
  const std::string training = embed(best() + " " + path("data") + " --split train", "of-train");
  const std::string data = path("data") + " --split validation";
  const std::string other = embed(path("runs/other") + " " + data, "of-other");
  for (const std::string command : {"knn ", "probe --epochs 1 "}) {
    refuses(command + training + " " + other, "with other weights: they are not of one model");
  }
  refuses("knn " + training + " " + data + " --model " + path("runs/other"), "they are not of one model");
  refuses("knn " + training + " " + embed(best() + " " + data + " --layer 0", "of-layer"),
          "the training features have the layer '', but the test features '0'");
  const Outcome pooled = vitrail("knn " + training + " " + embed(best() + " " + data + " --pool token", "of-token"));
  EXPECT_EQ(pooled.status, 0) << pooled.err;
  EXPECT_THAT(pooled.err, HasSubstr("the test features are pooled by 'token', and the training features as their "
                                    "classifier does"));
  const Outcome cropped = vitrail("knn " + training + " " + embed(best() + " " + data + " --crop-pct 0.5", "of-crop"));
  EXPECT_EQ(cropped.status, 0) << cropped.err;
  EXPECT_THAT(cropped.err, HasSubstr("were prepared differently: crop_pct is 0.9 and 0.5"));
  const Outcome alike = vitrail("knn " + training + " " + data + " -k 3 --model " + best());
  EXPECT_EQ(alike.status, 0);
  EXPECT_THAT(alike.err, Not(HasSubstr("note")));
}

TEST_F(SeventhWalk, IsToldHowManyTextsAreCut) {
  const std::string longer = "two two two two two two two two two two two two two two two two two two two two two two";
  const std::string texts = write("long.tsv", "O\ttwo dogs\nB-animal\t" + longer + "\n");
  const std::string classes = model("predictions/classes");
  EXPECT_THAT(vitrail("eval " + classes + " " + texts + " --threads 1").err,
              HasSubstr("note: 1 of 2 texts has more than 20 tokens and is cut"));
  EXPECT_THAT(train(texts + " --model " + classes + " --val-data " + texts + " --epochs 1", "cut").out,
              HasSubstr("2 of 4 texts have more than 20 tokens and are cut"));
  std::string words;
  for (int i = 0; i < 30; ++i) {
    words += "two O\n";
  }
  const std::string tags = write("long.conll", words + "\ndogs B-animal\n");
  EXPECT_THAT(vitrail("eval " + model("predictions/tokens") + " " + tags + " --threads 1").err,
              HasSubstr("1 of 2 sentences has more than 20 tokens and is cut"));
  EXPECT_THAT(vitrail("eval " + classes + " " + write("short.tsv", "O\ttwo dogs\n") + " --threads 1").err, "");
  EXPECT_THAT(
      vitrail("eval " + classes + " " + write("latin.tsv", "O\ttwo\nO\tB\xe4r\n") + " --skip-broken --threads 1").err,
      HasSubstr("1 line that is not UTF-8 is left out"));
}

TEST_F(SeventhWalk, IsToldThatDataJudgeThemselves) {
  const std::string says = "evaluate on are those to train on";
  const std::string texts = write("classes.tsv", "O\ttwo dogs\nB-animal\tsnow\nO\ta man\nB-animal\tdogs\n");
  const std::string classes = texts + " --model " + model("predictions/classes") + " --epochs 1 --val-data ";
  EXPECT_THAT(train(classes + texts, "same").out, HasSubstr("the texts to " + says));
  EXPECT_THAT(train(classes + write("others.tsv", "O\ta dog\n"), "others").out, Not(HasSubstr(says)));
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    lines += "der Bär ist da.\n";
  }
  const std::string text = write("text.txt", lines);
  EXPECT_THAT(train(text + " --task lm --val-data " + text +
                        " --model-kwargs n_layer=1 n_head=2 n_embd=16 --block-size 20 --epochs 1 -b 4",
                    "lm")
                  .out,
              HasSubstr("the texts to " + says));
  const std::string pairs = " --src " + text + " --tgt " + text + " --val-src " + text + " --val-tgt " + text;
  EXPECT_THAT(train("--task embed --model " + model("sentences/mean") + pairs + " --epochs 1", "embed").out,
              HasSubstr("the pairs to " + says));
  const std::string sets =
      "--task set2set --data sets:task=sort,count=64,size=2-3,validation=8 --model-kwargs "
      "d_model=16 --epochs 1";
  EXPECT_THAT(train(sets + " --val-split train", "sets").out, HasSubstr("the sets to " + says));
  EXPECT_THAT(train(sets, "more-sets").out, Not(HasSubstr(says)));
  EXPECT_THAT(train("scenes:count=8 --val-dir scenes:count=8 --task detect --model detr_scenes --model-kwargs "
                    "d_model=32 encoder_layers=1 decoder_layers=1 encoder_ffn_dim=32 decoder_ffn_dim=32 num_queries=7 "
                    "'backbone_kwargs={\"channels\": [8, 8, 16], \"stem_width\": 8}' --no-random-resize -b 8 "
                    "--epochs 1",
                    "drawn")
                  .out,
              HasSubstr("the images to " + says));
}

TEST_F(SeventhWalk, FindsImagesWhoseFolderIsGone) {
  fs::copy(path("data/train/red"), path("album"), fs::copy_options::recursive);
  ASSERT_EQ(vitrail("index " + path("album") + " --model " + best() + " --output " + path("a.index")).status, 0);
  fs::rename(path("album"), path("moved"));
  const Outcome found = vitrail("search " + path("a.index") + " " + path("moved/3.png") + " -k 1");
  EXPECT_THAT(found.out, HasSubstr("1.0000  " + path("album/3.png")));
  EXPECT_THAT(found.err, HasSubstr("'" + path("album") + "' is not there any more"));
  EXPECT_THAT(vitrail("duplicates " + path("a.index")).err, HasSubstr("is not there any more"));
}

TEST_F(SeventhWalk, IsToldWhatFlagsTake) {
  refuses("bleu x --smooth-method floor --smooth-value -3", "--smooth-value: must be a number of 0 or more, but is -3",
          2);
  const Outcome none = train(path("data") + " --val-split= " + small() + " --epochs 1", "no-validation");
  EXPECT_EQ(none.status, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("32 training and 0 validation images"));
  refuses("train " + path("data") + " --epochs= ", "--epochs", 2);
  refuses("generate " + model("joint/blip_caption") + " 'a word'", "captions images");
}

}  // namespace
}  // namespace vitrail::test
