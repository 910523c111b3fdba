// Data that are learned and evaluated on.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class EvaluationData : public Commands {};

TEST_F(EvaluationData, AreSaidToBeThoseToTrainOn) {
  const std::string says = "the images to evaluate on are those to train on";
  EXPECT_THAT(train(path("data"), "same", " --val-split train" + small()).out, HasSubstr(says));
  EXPECT_THAT(train(path("data"), "same-folder", " --val-dir " + path("data/train") + small()).out, HasSubstr(says));
  EXPECT_THAT(train(path("data/train"), "itself", " --val-dir " + path("data/train") + small()).out, HasSubstr(says));
  const std::string frames = path("frames");
  for (const char* name : {"a/1/0.png", "a/1/1.png", "b/2/0.png", "b/2/1.png"}) {
    fs::create_directories(fs::path(frames + "/" + name).parent_path());
    fs::copy(path("data/train/red/0.png"), frames + "/" + name);
  }
  EXPECT_THAT(
      train(frames, "frames",
            " --val-dir " + frames + " --task frames --model gru_rows --img-size 16 --model-kwargs hidden_size=8 " +
                "--cell gru --cell-kwargs hidden_size=8 --no-aug -b 2 --threads 1")
          .out,
      HasSubstr(says));
  const Outcome described = vitrail("info " + path("runs/frames/best"));
  EXPECT_EQ(described.status, 0) << described.err;
  EXPECT_THAT(described.out, HasSubstr("which reads sequences of images and tells the class of each"));
  EXPECT_EQ(nlohmann::json::parse(vitrail("info --json " + path("runs/frames/best")).out)["target"]["kind"],
            "sequence");
  const std::string both = copy_of_data("both");
  fs::copy(both + "/validation", both + "/val", fs::copy_options::recursive);
  const Outcome twice = train(both, "both");
  EXPECT_THAT(twice.out, HasSubstr("takes 'validation' and leaves 'val'"));
  EXPECT_THAT(twice.out, Not(HasSubstr(says)));
  EXPECT_THAT(vitrail("eval " + best() + " " + both + " --split val").err,
              HasSubstr("takes 'val' and leaves 'validation'"));
}

class EvaluationDataOfTasks : public InAFolder {};

TEST_F(EvaluationDataOfTasks, AreSaidToBeThoseToTrainOn) {
  const std::string says = "evaluate on are those to train on";
  const std::string texts = write("classes.tsv", "O\ttwo dogs\nB-animal\tsnow\nO\ta man\nB-animal\tdogs\n");
  const std::string classes = texts + " --model " + golden_model("predictions/classes") + " --epochs 1 --val-data ";
  EXPECT_THAT(train_task(classes + texts, "same").out, HasSubstr("the texts to " + says));
  EXPECT_THAT(train_task(classes + write("others.tsv", "O\ta dog\n"), "others").out, Not(HasSubstr(says)));
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    lines += "der Bär ist da.\n";
  }
  const std::string text = write("text.txt", lines);
  EXPECT_THAT(train_task(text + " --task lm --val-data " + text +
                             " --model-kwargs n_layer=1 n_head=2 n_embd=16 --block-size 20 --epochs 1 -b 4",
                         "lm")
                  .out,
              HasSubstr("the texts to " + says));
  const std::string pairs = " --src " + text + " --tgt " + text + " --val-src " + text + " --val-tgt " + text;
  EXPECT_THAT(train_task("--task embed --model " + golden_model("sentences/mean") + pairs + " --epochs 1", "embed").out,
              HasSubstr("the pairs to " + says));
  const std::string sets =
      "--task set2set --data sets:task=sort,count=64,size=2-3,validation=8 --model-kwargs "
      "d_model=16 --epochs 1";
  EXPECT_THAT(train_task(sets + " --val-split train", "sets").out, HasSubstr("the sets to " + says));
  EXPECT_THAT(train_task(sets, "more-sets").out, Not(HasSubstr(says)));
  EXPECT_THAT(
      train_task("scenes:count=8 --val-dir scenes:count=8 --task detect --model detr_scenes --model-kwargs "
                 "d_model=32 encoder_layers=1 decoder_layers=1 encoder_ffn_dim=32 decoder_ffn_dim=32 num_queries=7 "
                 "'backbone_kwargs={\"channels\": [8, 8, 16], \"stem_width\": 8}' --no-random-resize -b 8 "
                 "--epochs 1",
                 "drawn")
          .out,
      HasSubstr("the images to " + says));
}

}  // namespace
}  // namespace vitrail::test
