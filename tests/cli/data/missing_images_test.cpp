// Images that tables and annotations name and that do not exist: refused at once, or left out by --skip-broken.
#include <fstream>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;

class MissingImages : public Commands {
 protected:
  static std::string scenes(const std::string& name) {
    EXPECT_EQ(vitrail("scenes " + path(name) + " --count 12").status, 0);
    fs::remove(path(name) + "/images/000003.png");
    return path(name);
  }
  static std::string training(const std::string& data, const std::string& name, const std::string& flags) {
    return "train " + data + " --epochs 1 --val-split '' --threads 1 --output " + path("runs") + " --experiment " +
           name + flags;
  }
  static void is_left_out(const std::string& command, const std::string& told) {
    refuses(command, "(--skip-broken, where a command has it, leaves such ");
    const Outcome outcome = vitrail(command + " --skip-broken");
    EXPECT_EQ(outcome.status, 0) << command << outcome.err;
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr(told)) << command;
  }
};

TEST_F(MissingImages, OfTables) {
  std::string rows = "path,label\ntrain/red/none.png,red\n";
  std::string frames = "path,sequence,label\ntrain/red/none.png,a,x\n";
  for (int i = 0; i < 16; ++i) {
    for (const std::string name : {"red", "blue"}) {
      rows += "train/" + name + "/" + std::to_string(i) + ".png," + name + "\n";
      frames += "train/" + name + "/" + std::to_string(i) + ".png," + name + std::to_string(i / 4) + "," + name + "\n";
    }
  }
  std::ofstream(path("data/table.csv")) << rows;
  std::ofstream(path("data/frames.csv")) << frames;
  is_left_out(training(path("data/table.csv"), "table", small()), "1 broken image left out");
  is_left_out("eval " + path("runs/table") + " " + path("data/table.csv") + " --split '' --threads 1",
              "none.png': No such file or directory");
  std::ofstream(path("data/none.csv")) << "path,label\nred/x.png,red\nblue/x.png,blue\n";
  refuses(training(path("data/none.csv"), "none", small()) + " --skip-broken",
          "nothing is left to learn from: 2 broken images, e.g. ");
  is_left_out("predict " + best() + " " + path("data/table.csv") + " --threads 1", "none.png");
  is_left_out(training(path("data/frames.csv"), "frames",
                       " --task frames --model vit_tiny_patch16_224 --model-kwargs img_size=16 patch_size=4 "
                       "embed_dim=24 depth=1 num_heads=3 --no-aug"),
              "1 broken sequence left out");
}

TEST_F(MissingImages, OfWhatIsPackedIntoShards) {
  std::ofstream(path("data/packed.csv")) << "path,label\ntrain/red/0.png,red\ntrain/blue/none.png,blue\ntrain/blue/"
                                            "damaged.png,blue\ntrain/blue/0.png,blue\n";
  std::ofstream(path("data/train/blue/damaged.png")) << "no image";
  const std::string packs = "shard " + path("data/packed.csv") + " --output ";
  // A file that is there is packed as it lies unless it has to be decoded.
  refuses(packs + path("all"), "none.png");
  const Outcome outcome = vitrail(packs + path("whole") + " --skip-broken");
  fs::remove(path("data/train/blue/damaged.png"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2 images in 1 shard"));
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("none.png"));
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("damaged.png"));
  EXPECT_THAT(vitrail("info " + path("whole")).out, HasSubstr("2 images"));
  std::ofstream(path("data/none.csv")) << "path,label\nred/x.png,red\nblue/x.png,blue\n";
  refuses("shard " + path("data/none.csv") + " --skip-broken --output " + path("nothing"),
          "none of the 2 images could be read");
  EXPECT_FALSE(fs::exists(path("nothing") + "/train.json"));
}

TEST_F(MissingImages, OfBoxesCaptionsAndQuestions) {
  const std::string data = scenes("scenes");
  is_left_out(training(data, "boxes",
                       " --task detect --model detr_scenes --model-kwargs d_model=32 encoder_layers=1 decoder_layers=1 "
                       "encoder_ffn_dim=32 decoder_ffn_dim=32 num_queries=8"),
              "1 broken image left out");
  is_left_out(training(data, "captions",
                       " --task caption --model gru_rows --img-size 16 --model-kwargs hidden_size=8 --decoder gru "
                       "--decoder-kwargs hidden_size=8 --no-aug"),
              "1 broken image left out");
  is_left_out(training(data, "questions",
                       " --task vqa --model vqa_small --model-kwargs channels=[8,8,16] dim=16 num_heads=2 "
                       "vision_depth=1 depth=1"),
              "left out 8 questions about images that are not there");
  is_left_out("eval " + path("runs/questions") + " " + data + " --split '' --threads 1", "left out 8 questions");
  is_left_out("eval " + path("runs/boxes") + " " + data + " --split '' --threads 1", "000003.png");
}

TEST_F(MissingImages, OfVocAnnotations) {
  const std::string data = path("voc");
  fs::create_directories(data + "/Annotations");
  fs::create_directories(data + "/JPEGImages");
  for (const std::string name : {"a", "b", "c"}) {
    std::ofstream(data + "/Annotations/" + name + ".xml")
        << "<annotation><filename>" + name +
               ".png</filename><object><name>dot</name><bndbox><xmin>2</xmin><ymin>2</ymin><xmax>9</xmax><ymax>9</ymax>"
               "</bndbox></object></annotation>";
    if (name != "a") {
      io::write_png(data + "/JPEGImages/" + name + ".png", image(0, 1));
    }
  }
  is_left_out(training(data, "voc",
                       " --task detect --model detr_scenes --model-kwargs d_model=32 encoder_layers=1 decoder_layers=1 "
                       "encoder_ffn_dim=32 decoder_ffn_dim=32 num_queries=8 -b 1"),
              "1 broken image left out");
}

}  // namespace
}  // namespace vitrail::test
