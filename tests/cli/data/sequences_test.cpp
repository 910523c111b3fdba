// Sequences of frames, in folders and tables.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/commands.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SequencesInTables : public OnImages {};

TEST_F(SequencesInTables, AreOfOnePart) {
  std::string table = "path,sequence,label,split\n";
  for (int i = 0; i < 8; ++i) {
    const std::string name = "s" + std::to_string(i);
    for (const char* frame : {"0.png", "1.png"}) {
      table += std::string("data/train/") + (i % 2 == 0 ? "red/" : "blue/") + frame + "," + name + "," +
               (i % 2 == 0 ? "red," : "blue,") + (i < 4 ? "train" : "validation") + "\n";
    }
  }
  write("frames.csv", table);
  const std::string flags =
      " --task frames --model linear --img-size 16 --cell gru --cell-kwargs hidden_size=8 --no-aug -b 2";
  const Outcome trained = train_epoch(path("frames.csv") + flags, "frames");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("4 training and 4 validation sequences"));
  const Outcome shared = train_epoch(path("frames.csv") + flags + " --val-share 0.5", "shared");
  EXPECT_THAT(shared.out, HasSubstr("2 training and 2 validation sequences"));
  EXPECT_THAT(shared.out, HasSubstr("without --val-share, --val-split evaluates on one of them"));
  const std::string eval = "eval " + path("runs/frames") + " ";
  refuses(eval + path("frames.csv"), "split into parts (train, validation): choose one of them");
  EXPECT_THAT(vitrail(eval + path("frames.csv") + " --split validation").out, HasSubstr("4 sequences"));
  write("mixed.csv", table + "data/train/red/2.png,s0,red,validation\n");
  refuses("train " + path("mixed.csv") + flags + " --val-split validation --output " + path("runs"),
          "line 18 puts the sequence 's0' into the part 'validation', but an earlier line into 'train'");
}

class SequencesInFolders : public OnImages {};

TEST_F(SequencesInFolders, AreNamedByThem) {
  for (const char* folder : {"a/s1", "a/s2", "b/s1", "b/s2"}) {
    const fs::path place = path(std::string("frames/") + folder);
    fs::create_directories(place);
    for (const char* frame : {"0.png", "1.png"}) {
      fs::copy_file(path(std::string("data/train/red/") + frame), place / frame);
    }
  }
  ASSERT_EQ(vitrail("train " + path("frames") +
                    " --task frames --model linear --img-size 8 --val-split '' --epochs 1 -b 2 --threads 1 --output " +
                    path("runs") + " --experiment frames")
                .status,
            0);
  const Outcome said = vitrail("predict " + path("runs/frames") + " " + path("frames/a") + " " + path("frames/b") +
                               " --topk 1 --format csv --threads 1");
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr(path("frames/a/s1") + ","), HasSubstr(path("frames/b/s1") + ",")));
}

TEST_F(SequencesInFolders, WithoutFramesAreNamed) {
  for (const char* clip : {"red/1", "red/2", "blue/1", "blue/2", "blue/3"}) {
    fs::create_directories(path(std::string("clips/") + clip));
    fs::copy_file(path("data/train/red/1.png"), path(std::string("clips/") + clip + "/" + clip[0] + ".png"));
  }
  fs::create_directories(path("clips/red/none"));
  const Outcome outcome =
      vitrail("train " + path("clips") + " --task frames --model linear --img-size 8 --val-share 0 --frames 'b*' " +
              "--target sequence --epochs 1 -b 2 --threads 1 --output " + path("runs") + " --experiment clips");
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("'blue'"));  // the only class that is left
  const Outcome all =
      vitrail("train " + path("clips") + " --task frames --model linear --img-size 8 --val-share 0 --epochs 1 -b 5 " +
              "--threads 1 --output " + path("runs") + " --experiment all");
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("1 folder without a frame, such as 'red/none'"));
}

class SequencesForAModel : public Commands {};

TEST_F(SequencesForAModel, TakeTheFramesOfTheTraining) {
  for (const char* name : {"a/1/x0.png", "a/1/x1.png", "a/1/mask.png", "b/2/x0.png", "b/2/x1.png", "b/2/mask.png"}) {
    fs::create_directories(fs::path(path(std::string("frames/") + name)).parent_path());
    fs::copy(path("data/train/red/0.png"), path(std::string("frames/") + name));
  }
  const Outcome trained =
      train_task(path("frames") + " --task frames --frames 'x*.png' --val-dir " + path("frames") +
                     " --model gru_rows --img-size 16 "
                     "--model-kwargs hidden_size=8 --cell gru --cell-kwargs hidden_size=8 --no-aug -b 2 "
                     "--epochs 1",
                 "frames");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome as_trained = vitrail("eval " + path("runs/frames") + " " + path("frames"));
  EXPECT_EQ(as_trained.status, 0) << as_trained.err;
  EXPECT_THAT(as_trained.err, HasSubstr("takes the frames 'x*.png' alone, as in training"));
  EXPECT_EQ(vitrail("eval " + path("runs/frames") + " " + path("frames") + " --frames '*'").err, "");
  // Folders that are called by numbers.
  for (const char* name : {"0", "1"}) {
    fs::create_directories(path(std::string("numbers/") + name));
    fs::copy(path("data/train/red/0.png"), path(std::string("numbers/") + name + "/0.png"));
  }
  EXPECT_THAT(
      vitrail("eval " + best() + " " + path("numbers")).err,
      HasSubstr("its classes are numbers, which are taken for places among the 2 classes that are expected: 0 is"));
}

}  // namespace
}  // namespace vitrail::test
