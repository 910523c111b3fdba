// What a person does whose images lie in one heap: a share of them is held out to evaluate on.
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"
#include "vitrail/io/toml.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HeldOutImages : public OnImages {
 protected:
  static void SetUpTestSuite() {
    OnImages::SetUpTestSuite();
    EXPECT_EQ(vitrail("scenes " + path("scenes") + " --count 20").status, 0);
  }
  static Outcome train(const std::string& flags, const std::string& name) {
    return vitrail("train " + flags + " --epochs 1 --threads 1 --output " + path("runs") + " --experiment " + name);
  }
  static std::string held(int learned, int evaluated) {
    return fmt::format("{} training and {} validation images", learned, evaluated);
  }
};

TEST_F(HeldOutImages, OfClasses) {
  const std::string heap = path("data/train");  // 16 red, 16 blue
  const Outcome first = train(heap + small(), "classes");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr(held(29, 3)));
  EXPECT_THAT(first.out, HasSubstr("'" + heap + "' has no part to evaluate on: a share of 0.1 of the images is held "));
  const Outcome more = vitrail("train --resume " + path("runs/classes") + " --epochs 2");
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr(held(29, 3)));
  EXPECT_THAT(train(heap + small() + " --val-share 0.5 --seed 3", "half").out, HasSubstr(held(16, 16)));
  EXPECT_THAT(train(path("data") + small() + " --val-share 0.25", "quarter").out, HasSubstr(held(24, 8)))
      << "of the part for training";
  EXPECT_THAT(train(path("data") + small(), "parts").out, Not(HasSubstr("held out")));
  refuses("train " + heap + small() + " --val-share 1 --output " + path("runs"), "--val-share", 2);
  refuses("train " + heap + small() + " --val-share 0.001 --output " + path("runs"),
          "a --val-share of 0.001 of 32 images leaves none to evaluate on");
  // Most of what is evaluated then has been learnt.
  const std::string note = "note: the model has learnt these, all but a share of 0.1 that its run held out";
  EXPECT_THAT(vitrail("eval " + path("runs/classes") + " " + heap).err, HasSubstr(note));
  EXPECT_THAT(vitrail("eval " + path("runs/classes/last") + " " + heap).err, HasSubstr(note));
  EXPECT_THAT(vitrail("eval " + path("runs/classes") + " " + path("data/validation")).err, Not(HasSubstr(note)));
  EXPECT_THAT(vitrail("eval " + path("runs/parts") + " " + heap).err, Not(HasSubstr(note)));
}

TEST_F(HeldOutImages, OfBoxesCaptionsAndQuestions) {
  const Outcome detector =
      train(path("scenes") + " --task detect --model detr_scenes --no-random-resize -b 8", "boxes");
  EXPECT_THAT(detector.out, HasSubstr(held(18, 2))) << detector.err;
  EXPECT_THAT(detector.out, HasSubstr("AP50"));
  const Outcome captioner = train(path("scenes") +
                                      " --task caption --model gru_rows --img-size 16 --model-kwargs hidden_size=8 "
                                      "--decoder gru --decoder-kwargs hidden_size=8 --no-aug -b 8",
                                  "captions");
  EXPECT_THAT(captioner.out, HasSubstr(held(18, 2))) << captioner.err;
  EXPECT_THAT(captioner.out, HasSubstr("CIDEr"));
  EXPECT_THAT(captioner.out, HasSubstr("true of the scene")) << "the scenes of those that are held out are known";
  const Outcome answerer = train(path("scenes") +
                                     " --task vqa --model vqa_small --model-kwargs 'channels=[8,8,16]' dim=16 "
                                     "num_heads=2 vision_depth=1 depth=1 -b 8",
                                 "questions");
  EXPECT_THAT(answerer.out, HasSubstr(held(18, 2))) << answerer.err;
  EXPECT_THAT(answerer.out, HasSubstr("accuracy"));
  EXPECT_THAT(vitrail("info " + path("scenes")).out, HasSubstr("vitrail train " + path("scenes") + " --task detect\n"));
}

// A part that is there and cannot be read is not replaced in silence.
TEST_F(HeldOutImages, AreNoneWhereThereIsAPart) {
  fs::create_directories(path("half"));
  fs::copy(path("scenes"), path("half/train"), fs::copy_options::recursive);
  fs::create_directories(path("half/validation/images"));
  fs::copy_file(path("scenes/images/000000.png"), path("half/validation/images/000000.png"));
  const std::string output = " --epochs 1 --threads 1 --output " + path("runs");
  refuses("train " + path("half") + " --task detect --model detr_scenes -b 8" + output, "--val-dir");
  refuses("train " + path("half") + " --task vqa --model vqa_small -b 8" + output, "--val-dir");
  refuses("train " + path("half") + " --task caption --model gru_rows --decoder gru --no-aug -b 8" + output, "valid");
  // Nor are the folders of a layout classes.
  refuses("train " + path("scenes") + small() + output, "what is there is for --task detect, caption, vqa");
  io::write_atomically(path("heap.csv"),
                       "path,label,split\ndata/train/red/0.png,red,test\ndata/train/blue/0.png,blue,train\n"
                       "data/train/red/1.png,red,train\n");
  EXPECT_THAT(train(path("heap.csv") + small(), "tested").out, HasSubstr("1 validation image"));
}

// A run that goes on holds out what it has held out, whatever is there now.
TEST_F(HeldOutImages, StayHeldOutWhenARunGoesOn) {
  fs::create_directories(path("growing"));
  fs::copy(path("data/train"), path("growing/train"), fs::copy_options::recursive);
  const Outcome first = train(path("growing") + small(), "growing");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr(held(29, 3)));
  fs::copy(path("data/validation"), path("growing/validation"), fs::copy_options::recursive);
  const std::string resume = "train --resume " + path("runs/growing") + " --epochs 2";
  refuses(resume + " --val-dir " + path("data/validation"), "which it would learn with --val-dir: leave that out");
  const Outcome more = vitrail(resume);
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_THAT(more.out, HasSubstr(held(29, 3)));
  EXPECT_THAT(train(path("growing") + small(), "grown").out, HasSubstr(held(32, 32)));
  const Outcome asked = train(path("growing/train") + small() + " --val-share 0.1", "asked");
  EXPECT_THAT(asked.out, HasSubstr(held(29, 3)));
  EXPECT_THAT(vitrail("compare " + path("runs/growing") + " " + path("runs/grown")).err, HasSubstr("different data"));
}

TEST_F(HeldOutImages, AreNoneIfThereAreFew) {
  io::write_atomically(path("few.csv"),
                       "path,question,answer\nscenes/images/000000.png,what is it?,a bird\n"
                       "scenes/images/000001.png,what is it?,a circle\n");
  const Outcome few = train(path("few.csv") +
                                " --task vqa --model vqa_small --model-kwargs 'channels=[8,8,16]' dim=16 num_heads=2 "
                                "vision_depth=1 depth=1 -b 2",
                            "few");
  EXPECT_EQ(few.status, 0) << few.err;
  EXPECT_THAT(few.out, HasSubstr("has too few images for any to be held out: nothing is evaluated"));
  EXPECT_EQ(vitrail("train --resume " + path("runs/few") + " --epochs 2").status, 0);
  EXPECT_THAT(vitrail("eval " + path("runs/few") + " " + path("few.csv")).err, Not(HasSubstr("held out")));
}

}  // namespace
}  // namespace vitrail::test
