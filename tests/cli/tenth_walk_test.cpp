// What a tenth newcomer was told wrongly or not at all: runs that had ended and were given other options, names that
// cannot be told apart, flags that do nothing, models that are not there. (Runs that did not go on as they had begun
// are in resume_test.cpp.)
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TenthWalk : public Commands {};

TEST_F(TenthWalk, ChangesNothingOfARunThatHasEnded) {
  const std::string before = io::read_text(path("runs/one/config.toml"));
  const Outcome outcome = vitrail("train --resume " + path("runs/one") + " --lr 0.5");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("nothing is left to do"), Not(HasSubstr("is now"))));
  EXPECT_EQ(io::read_text(path("runs/one/config.toml")), before);
}

TEST_F(TenthWalk, IsToldOfModelsThatAreNotThere) {
  const std::string gone = "runs/gone/best";
  refuses("predict " + gone + " 'a text' --output x.svg", "there is no model folder 'runs/gone/best'");
  refuses("embed " + gone + " --similarity a b", "there is no model folder 'runs/gone/best'");
}

TEST_F(TenthWalk, CountsNoClassWithoutAVoteAmongTheFiveBest) {
  const auto of = [](const char* part) {
    const std::string file = path(std::string(part) + ".safetensors");
    EXPECT_EQ(
        vitrail("embed " + best() + " " + path("data") + " --split " + part + " --threads 1 --output " + file).status,
        0);
    return file;
  };
  const Outcome knn = vitrail("knn " + of("train") + " " + of("validation") + " -k 1 --json");
  ASSERT_EQ(knn.status, 0) << knn.err;
  const nlohmann::json found = nlohmann::json::parse(knn.out).at("knn").at(0);
  EXPECT_EQ(found.at("top5"), found.at("top1"));
}

TEST_F(TenthWalk, NamesNoFileBesideItselfAndReadsAFolderWithALinkThatIsACircle) {
  fs::create_directories(path("cifar"));
  for (const char* name : {"data_batch_1.bin", "test_batch.bin"}) {
    std::ofstream(path(std::string("cifar/") + name)) << std::string(1, '\1') << std::string(3072, 'x');
  }
  const Outcome embedded = vitrail("embed " + best() + " " + path("cifar") + " --split train --threads 1 --output " +
                                   path("cifar.safetensors"));
  EXPECT_EQ(embedded.status, 0) << embedded.err;
  EXPECT_THAT(embedded.err, Not(HasSubstr("beside")));
  fs::create_directories(path("circle"));
  fs::copy_file(path("data/train/red/1.png"), path("circle/1.png"));
  fs::create_symlink("loop", path("circle/loop"));
  const Outcome predicted = vitrail("predict " + best() + " " + path("circle") + " --threads 1");
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.err, HasSubstr("1 file that is not an image"));
}

TEST_F(TenthWalk, NamesSequencesByTheirFolders) {
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

TEST_F(TenthWalk, IsRefusedWhatDoesNothing) {
  refuses("scenes " + path("twins") + " --task same-different --count 2 --overlap",
          "--overlap has no effect with --task same-different", 2);
  refuses("predict " + best() + " scenes:count=1,task=same-different,overlap", "leave out 'overlap'");
  refuses("train " + path("data") + small() + " --mixup 0.2 --mixup-off-epoch 9 --epochs 1",
          "--mixup-off-epoch 9 never comes in 1 --epochs", 2);
  refuses("attention " + best() + " --text hi", "is no model of texts: name an IMAGE in place of --text", 2);
  const Outcome slow = vitrail("train " + path("data") + small() + " --epochs 1 --warmup-steps 999 --output " +
                               path("runs") + " --experiment slow");
  EXPECT_THAT(slow.out, HasSubstr("note: the warm-up of 999 updates does not end within the 4 of the training"));
}

TEST_F(TenthWalk, TakesSpacesAroundALabelForNoneOfIt) {
  const std::string red = path("data/train/red/1.png");
  std::ofstream(path("spaces.csv")) << "path,label\n" << red << ", red\n" << red << ",red \n";
  const Outcome outcome = vitrail("eval " + best() + " " + path("spaces.csv") + " --threads 1");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("2 images"));
}

}  // namespace
}  // namespace vitrail::test
