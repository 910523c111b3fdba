// Tables of images: their columns, separators and parts.
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Tables : public OnImages {};

TEST_F(Tables, WithoutPartsAreTrainedOn) {
  std::string rows;
  for (const char* name : {"red/1", "red/2", "red/3", "red/4", "blue/1", "blue/2", "blue/3", "blue/4", "blue/5"}) {
    rows += std::string("data/train/") + name + ".png," + std::string(name).substr(0, 3) + "\n";
  }
  std::ofstream(path("table.csv")) << rows;
  const std::string train = "train " + path("table.csv") + small();
  const Outcome held = vitrail(train + run_flags(path("runs"), "held"));
  EXPECT_EQ(held.status, 0) << held.err;
  EXPECT_THAT(held.out, HasSubstr("8 training and 1 validation image"));
  EXPECT_THAT(held.out, HasSubstr("a share of 0.1 of the images is held out, drawn by chance (--val-share)"));
  const Outcome all = vitrail(train + " --val-split ''" + run_flags(path("runs"), "all"));
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("9 training and 0 validation images"));
  EXPECT_THAT(all.out, HasSubstr("each epoch leaves out 1 of the 9 training images, which do not fill a batch of 8"));
  const Outcome few = vitrail(train + " --val-split '' --batch-size 64" + run_flags(path("runs"), "few"));
  EXPECT_EQ(few.status, 0) << few.err;
  EXPECT_THAT(few.out, HasSubstr("each epoch is one batch of 9 training images, fewer than --batch-size 64 asks for"));
  EXPECT_THAT(few.out, HasSubstr("1 update of 9 images an epoch, adamw, learning rate 0.0001875,")) << "1e-3 √(9/256)";
  const Outcome other = vitrail(train + " --val-dir " + path("data/validation") + run_flags(path("runs"), "other"));
  EXPECT_EQ(other.status, 1) << "other classes";
}

TEST_F(Tables, AreSaidToBeLearned) {
  std::string table = "path,label\n";
  for (int i = 0; i < 16; ++i) {
    table += "data/train/red/" + std::to_string(i) + ".png,red\ndata/train/blue/" + std::to_string(i) + ".png,blue\n";
  }
  write("table.csv", table);
  EXPECT_THAT(vitrail("info " + path("table.csv")).out,
              AllOf(HasSubstr("vitrail train"), Not(HasSubstr("--val-split"))));
  const Outcome trained = vitrail("train " + path("table.csv") + small_run("table"));
  EXPECT_THAT(trained.out + trained.err, HasSubstr("a share of 0.1"));
}

TEST_F(Tables, AreEvaluatedOnTheRowsThatTheyCallValid) {
  std::string table = "path,label,is_valid\n";
  for (const char* color : {"red", "blue"}) {
    for (int i = 0; i < 16; ++i) {
      table += "data/train/" + std::string(color) + "/" + std::to_string(i) + ".png," + color + "," +
               (i < 4 ? "True" : "False") + "\n";
    }
  }
  write("valid.csv", table);
  EXPECT_THAT(train(path("valid.csv"), "valid").out, HasSubstr("24 training and 8 validation images"));
  std::string plain = "path,label\n";
  for (const char* color : {"red", "blue"}) {
    for (int i = 0; i < 16; ++i) {
      plain += "data/train/" + std::string(color) + "/" + std::to_string(i) + ".png," + color + "\n";
    }
  }
  write("plain.csv", plain);
  EXPECT_THAT(train(path("plain.csv"), "plain").out, HasSubstr("29 training and 3 validation images"));
  EXPECT_THAT(vitrail("info " + path("valid.csv")).out, AllOf(HasSubstr("train"), HasSubstr("validation")));
  fs::create_directories(path("parted"));
  fs::copy(path("data/train"), path("parted/training"), fs::copy_options::recursive);
  fs::copy(path("data/validation"), path("parted/testing"), fs::copy_options::recursive);
  EXPECT_THAT(train(path("parted"), "parted").out, HasSubstr("32 training and 32 validation images"));
}

TEST_F(Tables, AreReadLineByLine) {
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

TEST_F(Tables, HaveNoFieldTooMany) {
  make_scenes("table");
  const std::string table = write("table/q.csv", "a/x.png,how many birds, if any, are there?,1\n");
  refuses("train --task vqa " + table, "line 1 has 5 fields, but 3 were expected: put what has separators in quotes");
  write("table/labels.txt",
        "\xef\xbb\xbf"
        "red\nblue\n");
  const Outcome labels = with_shipped("zeroshot vitrail/scenes_clip " + path("table/a/x.png") + " --labels " +
                                      path("table/labels.txt") + " --format json --threads 1");
  ASSERT_EQ(labels.status, 0) << labels.err;
  EXPECT_THAT(labels.out, HasSubstr("\"label\": \"red\""));
}

TEST_F(Tables, OfSeriesAreNoneOfCaptions) {
  write("series.csv", "date,HUFL,OT\n2016-07-01,5.8,30.5\n2016-07-02,5.7,27.8\n");
  const Outcome outcome = vitrail("train " + path("series.csv"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, Not(HasSubstr("caption")));
}

TEST_F(Tables, OfQuestionsAreForTheirTask) {
  std::ofstream(path("questions.csv")) << "path,question,answer\ndata/train/red/1.png,what colour?,red\n";
  const Outcome outcome = vitrail("train " + path("questions.csv") + small());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--task vqa"), Not(HasSubstr("caption"))));
}

class TablesForAModel : public Commands {};

TEST_F(TablesForAModel, AreTakenForTheirImages) {
  std::ofstream(path("images.csv")) << "path\ndata/train/red/1.png\ndata/train/blue/1.png\n";
  const Outcome predicted = vitrail("predict " + best() + " " + path("images.csv") + " --threads 1 --format csv");
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.out,
              AllOf(HasSubstr(path("data/train/red/1.png") + ","), HasSubstr(path("data/train/blue/1.png") + ",")));
}

TEST_F(TablesForAModel, HaveSpacesAroundALabel) {
  const std::string red = path("data/train/red/1.png");
  std::ofstream(path("spaces.csv")) << "path,label\n" << red << ", red\n" << red << ",red \n";
  const Outcome outcome = vitrail("eval " + best() + " " + path("spaces.csv") + " --threads 1");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2 images"));
}

TEST_F(TablesForAModel, HaveNoColumnTwice) {
  std::ofstream(path("twice.csv")) << "path,label,Label\n" << path("data/train/red/1.png") << ",red,blue\n";
  refuses("eval " + best() + " " + path("twice.csv"), "line 1 names two columns 'label'");
  // Of two whose names are understood, one is taken, which is said; so are lines that name an image again.
  const std::string row = path("data/train/red/1.png") + ",1,red\n";
  std::ofstream(path("two.csv")) << "path,target,class\n" << row << row;
  const Outcome outcome = vitrail("eval " + best() + " " + path("two.csv") + " --threads 1");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("two.csv: takes the column 'class' and leaves 'target'"),
                                 HasSubstr("two.csv: a line names an image again, which counts as often")));
  refuses("train scenes:count=8,task=count,questions=3 --model linear", "'questions' has no effect here");
  refuses("train scenes:count=8,captions=3 --task detect --model detr_scenes", "'captions' has no effect here");
}

TEST_F(TablesForAModel, SaySoWhereMostLabelsComeOnce) {
  std::string table = "path,label\n";
  for (int i = 0; i < 32; ++i) {
    table += fmt::format("data/train/{}/{}.png,{}\n", i % 2 == 0 ? "red" : "blue", i / 2, 0.01 * i);
  }
  const Outcome trained = vitrail("train " + write("numbers.csv", table) + " --val-split ''" + small_run("numbers"));
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out + trained.err, HasSubstr("32 classes for 32 images: most labels come once"));
}

TEST_F(TablesForAModel, AndFoldersSayWhatIsTrainedOnToo) {
  fs::create_directory(path("linked"));
  fs::create_directory_symlink(path("data/train"), path("linked/train"));
  fs::create_directory_symlink(path("data/train"), path("linked/val"));
  const Outcome trained = vitrail("train " + path("linked") + small_run("linked"));
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out + trained.err, HasSubstr("32 of the 32 images to evaluate on are trained on too"));
}

TEST_F(TablesForAModel, AndListsSayWhatTheyHold) {
  const std::string table =
      write("table.csv", "path,label\ndata/train/red/0.png,red\ndata/train/blue/0.png,blue,bluish\n");
  refuses("eval " + best() + " " + table,
          "table.csv: line 3 has 3 fields, but line 1 has 2: a field that has a comma in it stands in double quotes");
  ASSERT_EQ(vitrail("pretrain autoencoder " + path("data/train") + " --epochs 1 --output " + path("runs") +
                    " --experiment ae" + small())
                .status,
            0);
  const std::string list = write("list.txt", "data/train/red/0.png\ndata/train/red/1.png\n");
  const std::string again = write("again.txt", "data/train/red/1.png\ndata/train/red/0.png\n");
  refuses("latent " + path("runs/ae") + " --direction " + list + " " + again + " --output " + path("latent.png"),
          "name the same images: a direction leads from the mean of some to the mean of others");
  refuses("latent " + path("runs/ae") + " --between " + path("data/train/red/0.png") + " " + path("data") +
              "/train/../train/red/0.png --output " + path("latent.png"),
          "twice: there is no way between an image and itself");
}

}  // namespace
}  // namespace vitrail::test
