// What an eighth newcomer was told wrongly or not at all: advice of other commands, files that are passed over, runs
// and models that count twice, options where none is read.
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

class EighthWalk : public Commands {
 protected:
  static void run(const std::string& name, const std::string& flags = "") {
    const Outcome outcome = vitrail("train " + path("data") + small() + " --epochs 1 --output " + path("runs") +
                                    " --experiment " + name + " " + flags);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }
};

TEST_F(EighthWalk, SaysHowManyFilesAreNoImages) {
  fs::create_directories(path("mixed"));
  io::write_png(path("mixed/a.png"), image(0, 0));
  std::ofstream(path("mixed/b.heic")) << "x";
  std::ofstream(path("mixed/c.txt")) << "x";
  const std::string note = "note: 2 files that are not images by their names were passed over";
  EXPECT_THAT(vitrail("predict " + best() + " " + path("mixed")).err, HasSubstr(note));
  EXPECT_THAT(vitrail("embed " + best() + " " + path("mixed") + " --unlabeled --output " + path("m.safetensors")).err,
              HasSubstr(note));
  EXPECT_THAT(vitrail("index " + path("mixed") + " --model " + best() + " --output " + path("m.index")).err,
              HasSubstr(note));
  EXPECT_THAT(vitrail("project " + path("m.safetensors") + " --data " + path("mixed")).err,
              Not(HasSubstr("terminate")));
  EXPECT_THAT(vitrail("predict " + best() + " " + path("mixed/a.png")).err, Not(HasSubstr("note")));
}

TEST_F(EighthWalk, CountsNoRunAndNoModelTwice) {
  run("s1", "--seed 1");
  run("s2", "--seed 2");
  fs::copy(path("runs/s1"), path("runs/copy"), fs::copy_options::recursive);
  const std::string both = "compare --seeds " + path("runs/s1") + " " + path("runs/s2");
  EXPECT_THAT(vitrail(both).err, Not(HasSubstr("note")));
  EXPECT_THAT(vitrail(both + " " + path("runs/copy")).err, HasSubstr("note: copy has the seed 1 of s1"));
  const Outcome soup = vitrail("soup " + path("runs/s1") + " " + path("runs/s2") + " " + path("runs/s1/best") +
                               " --output " + path("soup"));
  EXPECT_THAT(soup.out, HasSubstr("the average of 2 models"));
  EXPECT_THAT(soup.err, HasSubstr("s1/best is named twice"));
}

TEST_F(EighthWalk, TakesNoOptionAmongTheFacts) {
  run("edited");
  std::ofstream(path("runs/edited/config.toml"), std::ios::app) << "epochs = 9\n";
  refuses("train --resume " + path("runs/edited"), "'epochs' stands in its last table, [facts.records]");
}

TEST_F(EighthWalk, ShardsNoPartsOfOtherClassesIntoOneFolder) {
  fs::copy(path("data"), path("uneven"), fs::copy_options::recursive);
  fs::create_directories(path("uneven/train/aqua"));
  io::write_png(path("uneven/train/aqua/0.png"), image(0, 1));
  const std::string shard = "shard " + path("uneven") + " --output " + path("shards");
  ASSERT_EQ(vitrail(shard + " --split validation").status, 0);
  refuses(shard + " --split train", "classes.txt has other classes than 'train'");
  EXPECT_FALSE(fs::exists(path("shards/train.json")));
  EXPECT_EQ(io::read_text(path("shards/classes.txt")), "blue\nred\n");
}

TEST_F(EighthWalk, NamesFlagsOfSeveralRanks) {
  const Outcome outcome =
      vitrail("train " + path("data") + small() + " --epochs 1 --grad-dtype bf16 --comm-timeout 5 " + "--output " +
              path("runs") + " --experiment lonely");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("note: --grad-dtype, --comm-timeout are for several ranks"));
}

TEST_F(EighthWalk, CountsTheEpochsOfProbesFromOne) {
  const std::string features = path("features.safetensors");
  ASSERT_EQ(vitrail("embed " + best() + " " + path("data") + " --split train --output " + features).status, 0);
  const Outcome probe = vitrail("probe " + features + " " + features + " --epochs 1 --lr 0.1 --threads 1 --json");
  EXPECT_EQ(nlohmann::json::parse(probe.out).at("probe")[0].at("best_epoch"), 1) << probe.err;
}

TEST_F(EighthWalk, SaysHowCaptionsAreWritten) {
  const auto with_shipped = [](const std::string& arguments) {
    return vitrail(arguments, "", "VITRAIL_WEIGHTS=" VITRAIL_SOURCE_DIR "/weights");
  };
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 4").status, 0);
  const Outcome refused = with_shipped("caption vitrail/scenes_caption " + path("scenes/images/000000.png") +
                                       " --beams 1 --num-return-sequences 2");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("it needs --"), HasSubstr("beams"), Not(HasSubstr("sample"))));
  const std::string judge = "eval vitrail/scenes_caption " + path("scenes") + " --threads 1";
  EXPECT_THAT(with_shipped(judge).out, HasSubstr("4 images, greedy"));
  EXPECT_THAT(with_shipped(judge + " --num-beams 3").out, HasSubstr("4 images, 3 beams"));
  EXPECT_EQ(nlohmann::json::parse(with_shipped(judge + " --num-beams 3 --json").out).at("num_beams"), 3);
  EXPECT_THAT(with_shipped(judge + " --batch-tokens 100").err, HasSubstr("nor --batch-tokens"));
}

}  // namespace
}  // namespace vitrail::test
