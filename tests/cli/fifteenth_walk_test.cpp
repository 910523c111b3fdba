// What a fifteenth newcomer stumbled over: runs that go on with other data, tables, and pictures in place of images.

#include <gmock/gmock.h>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class FifteenthWalk : public Commands {
 protected:
  static void SetUpTestSuite() {
    Commands::SetUpTestSuite();
    ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 8").status, 0);
  }
  // What a run says that goes on for a second epoch.
  static Outcome go_on(const std::string& run) {
    return vitrail("train --resume " + path("runs/" + run) + " --epochs 2");
  }
  // Replaces what a file says.
  static void replace(const std::string& name, const std::string& what, const std::string& by) {
    std::string text = io::read_text(path(name));
    const std::size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos);
    write(name, text.replace(at, what.size(), by));
  }
};

TEST_F(FifteenthWalk, GoesOnWithTheClassesOfADetectorAlone) {
  fs::copy(path("scenes"), path("boxed"), fs::copy_options::recursive);
  ASSERT_EQ(train(path("boxed"), "detector",
                  " --task detect --model detr_scenes --no-random-resize -b 8 --val-split '' --threads 1")
                .status,
            0);
  const std::string whole = io::read_text(path("boxed/instances.json"));
  replace("boxed/instances.json", "\"name\":\"bird\"", "\"name\":\"fowl\"");
  const Outcome renamed = go_on("detector");
  EXPECT_EQ(renamed.status, 1);
  EXPECT_THAT(renamed.err,
              AllOf(HasSubstr("the run is of 4 classes (circle, square, triangle, bird), but the data are"),
                    HasSubstr("fowl"), HasSubstr("begin a new one")));
  // The names of two ids are exchanged, and the classes are found by their names.
  write("boxed/instances.json", whole);
  replace("boxed/instances.json", "\"name\":\"circle\"", "\"name\":\"SQUARE\"");
  replace("boxed/instances.json", "\"name\":\"square\"", "\"name\":\"circle\"");
  replace("boxed/instances.json", "\"name\":\"SQUARE\"", "\"name\":\"square\"");
  const Outcome exchanged = go_on("detector");
  EXPECT_EQ(exchanged.status, 0) << exchanged.err;
  EXPECT_THAT(exchanged.out, HasSubstr("4 classes: circle, square, triangle, bird"));
  EXPECT_EQ(vitrail("info " + path("runs/detector/last")).status, 0) << "what was saved can be read";
}

TEST_F(FifteenthWalk, GoesOnWithTheClassesOfSequencesAlone) {
  fs::copy(path("data/train"), path("clips"), fs::copy_options::recursive);
  for (const char* color : {"blue", "red"}) {
    for (int i = 0; i < 16; ++i) {
      const std::string place = path(std::string("clips/") + color + "/");
      fs::create_directories(place + "s" + std::to_string(i / 4));
      fs::rename(place + std::to_string(i) + ".png",
                 place + "s" + std::to_string(i / 4) + "/" + std::to_string(i) + ".png");
    }
  }
  const std::string flags =
      " --task frames --model linear --img-size 16 --cell gru --cell-kwargs hidden_size=8 --no-aug -b 2";
  const Outcome first = train(path("clips"), "clips", flags + " --threads 1");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("has no part to evaluate on: a share of 0.2 of each class is held out"));
  fs::rename(path("clips/blue"), path("clips/sky"));
  const Outcome renamed = go_on("clips");
  EXPECT_EQ(renamed.status, 1);
  EXPECT_THAT(renamed.err, HasSubstr("the run is of 2 classes (blue, red), but the data are of 2 classes (red, sky)"));
  fs::rename(path("clips/sky"), path("clips/blue"));
  EXPECT_EQ(go_on("clips").status, 0);
  EXPECT_THAT(vitrail("predict " + path("runs/clips") + " " + path("data") + " --topk 1").out,
              HasSubstr("validation/red:  "))
      << "of a folder of parts all sequences";
}

TEST_F(FifteenthWalk, SaysWhenAsManyOtherImagesAreLearned) {
  copy_of_data("exchanged");
  ASSERT_EQ(train(path("exchanged"), "exchanged").status, 0);
  fs::rename(path("exchanged/train/red/3.png"), path("exchanged/train/red/33.png"));
  EXPECT_THAT(go_on("exchanged").out, HasSubstr("the data have changed: as many images to learn from as before"));
}

TEST_F(FifteenthWalk, SaysWhatIsGoneOfARun) {
  ASSERT_EQ(train(path("data"), "gone").status, 0);
  fs::remove(path("runs/gone/metrics.jsonl"));
  const Outcome outcome = go_on("gone");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("metrics.jsonl' is gone, with the history of the run: put it back, or"));
  EXPECT_FALSE(fs::exists(path("runs/gone/metrics.jsonl")));
}

TEST_F(FifteenthWalk, KeepsImagesThatPicturesAreDrawnOf) {
  fs::create_directories(path("own"));
  fs::copy_file(path("scenes/images/000000.png"), path("own/a.png"));
  const std::string before = io::read_text(path("own/a.png"));
  ASSERT_EQ(train(path("scenes"), "drawing",
                  " --task detect --model detr_scenes --no-random-resize -b 8 --val-split '' --threads 1")
                .status,
            0);
  const std::string detect = "detect " + path("runs/drawing") + " ";
  refuses(detect + path("own") + " --output " + path("own/."),
          "a.png' lies in the folder that the pictures are drawn into");
  refuses(detect + path("own/a.png") + " --output " + path("own"), "choose another --output");
  fs::copy_file(path("own/a.png"), path("own/a.JPG"));
  refuses(detect + path("own/a.JPG") + " --output " + path("own"), "a.png' lies in the folder");
  EXPECT_EQ(io::read_text(path("own/a.png")), before);
  EXPECT_EQ(vitrail(detect + path("own") + " --output " + path("own/drawn")).status, 0);
}

TEST_F(FifteenthWalk, ReadsTablesLineByLine) {
  const std::string none = small() + " --val-split ''";
  write("empty.csv", "");
  const Outcome empty = train(path("empty.csv"), "empty", none);
  EXPECT_EQ(empty.status, 1);
  EXPECT_THAT(empty.err, AllOf(HasSubstr("the file is empty"), Not(HasSubstr("--task"))));
  write("old.csv", "path,label\rdata/train/red/1.png,red\rdata/train/blue/1.png,blue\r");
  EXPECT_THAT(train(path("old.csv"), "old", none).out, HasSubstr("2 training"));
  write("no-path.csv", "path,label\ndata/train/red/1.png,red\n ,blue\n");
  refuses("train " + path("no-path.csv") + small() + " --output " + path("runs"), "line 3 names no image");
  write("alike.csv", "data/train/red/1.png,Red\ndata/train/red/2.png,red\ndata/train/blue/1.png,blue\n");
  EXPECT_THAT(train(path("alike.csv"), "alike", none).out,
              HasSubstr("the classes 'Red' and 'red' differ in capital letters alone"));
  write("no-clip.csv", "path,sequence,label\ndata/train/red/1.png,a,red\ndata/train/red/2.png,,red\n");
  refuses("train " + path("no-clip.csv") + " --task frames --model linear --output " + path("runs"),
          "line 3 names no sequence");
}

TEST_F(FifteenthWalk, LearnsTextsWithQuotesAndWordsThatNameColumns) {
  std::string texts = "pos\tfine film\nneg\t\"Great, he said\n";
  for (int i = 0; i < 6; ++i) {
    texts += i % 2 == 0 ? "pos\tfine\n" : "neg\tbad\n";
  }
  write("pangram.txt", "the quick brown fox jumps over the lazy dog\nthe five boxing wizards jump quickly\n");
  ASSERT_EQ(vitrail("tokenizer train " + path("pangram.txt") + " --model wordpiece --vocab-size 70 --output " +
                    path("pieces"))
                .status,
            0);
  const auto learned = [](const std::string& name) {
    return vitrail("train " + path(name) + " --tokenizer " + path("pieces") +
                   " --task classify-text --model bert-tiny --epochs 1 -b 2 --threads 1 --output " + path("runs"));
  };
  write("texts.tsv", texts);
  EXPECT_EQ(learned("texts.tsv").status, 0) << learned("texts.tsv").err;
  write("commands.tsv", "image\tshow me\nvideo\tplay\nimage\tdraw it\nvideo\tgo on\n");
  EXPECT_EQ(learned("commands.tsv").status, 0) << learned("commands.tsv").err;
  EXPECT_THAT(vitrail("train " + path("commands.tsv") + " --output " + path("runs")).err, HasSubstr("--tokenizer"))
      << "they are taken for texts";
  copy_of_data("beside");
  write("beside/train/train.tsv", "note\tfrom \"a colleague\n");
  EXPECT_EQ(train(path("beside"), "beside").status, 0) << "it is no part";
}

TEST_F(FifteenthWalk, WritesNothingIntoDataAndSaysWhatIsNotAlike) {
  refuses("eval " + best() + " " + path("data/validation") + " --output " + path("data/validation/report"),
          "lies in the data");
  const fs::path here = fs::current_path();
  fs::current_path(path("data/validation"));
  refuses("eval " + best() + " . --output report", "'report' lies in the data '.'");
  fs::current_path(here);
  EXPECT_FALSE(fs::exists(path("data/validation/report")));
  copy_of_data("elsewhere");
  ASSERT_EQ(train(path("elsewhere"), "elsewhere").status, 0);
  EXPECT_THAT(vitrail("compare " + path("runs/one") + " " + path("runs/elsewhere")).err,
              HasSubstr("the runs are evaluated on different data: one on '"));
}

TEST_F(FifteenthWalk, AsksInAGalleryTheQuestionsOfAPart) {
  ASSERT_EQ(
      train(path("scenes"), "vqa",
            " --task vqa --model vqa_small --model-kwargs channels=[8,8,16] dim=16 num_heads=2 vision_depth=1 depth=1 "
            "-b 8 --val-split '' --threads 1")
          .status,
      0);
  write("scenes/q.csv",
        "path,question,answer,split\nimages/000000.png,is there a bird?,yes,train\n"
        "images/000000.png,how many birds are there?,1,val\n");
  const std::string gallery = "gallery " + path("scenes/images/000000.png") + " --vqa " + path("runs/vqa") +
                              " --questions " + path("scenes/q.csv") + " --threads 1 --output " + path("g.html");
  refuses(gallery, "choose one of them");
  EXPECT_THAT(vitrail(gallery + " --split validation").out, HasSubstr("of 1 answers are right"));
}

}  // namespace
}  // namespace vitrail::test
