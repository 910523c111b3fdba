// Files among images: other files, links, pipes, and names that are not UTF-8.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "tests/cli/commands.h"
#include "vitrail/io/image.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ImageFiles : public Commands {};

TEST_F(ImageFiles, AreCountedIfTheyAreNoImages) {
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
  refuses("project " + path("m.safetensors") + " --output " + path("plane") + " --images " + path("mixed"),
          "has a single feature, which lies beside no other");
  EXPECT_THAT(vitrail("predict " + best() + " " + path("mixed/a.png")).err, Not(HasSubstr("note")));
}

TEST_F(ImageFiles, AreCountedIfNoImagesAreAmongClasses) {
  fs::copy(path("data"), path("mixed"), fs::copy_options::recursive);
  for (const char* name : {"train/red/notes.txt", "train/blue/2.gif", "validation/red/list.csv"}) {
    std::ofstream(path("mixed/") + name) << "something else";
  }
  const Outcome trained = vitrail("train " + path("mixed") + run_flags(path("runs"), "mixed") + small());
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("3 files that are not images by their names were passed over"));
  const Outcome evaluated = vitrail("eval " + best() + " " + path("mixed/validation") + " --json");
  EXPECT_THAT(evaluated.err, HasSubstr("1 file that is not an image by its name was passed over"));
  EXPECT_EQ(nlohmann::json::parse(evaluated.out)["count"], 32);
}

TEST_F(ImageFiles, MayBeALinkThatIsACircle) {
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

TEST_F(ImageFiles, AreNoPipes) {
  fs::create_directories(path("mixed/red"));
  fs::copy_file(path("data/train/red/0.png"), path("mixed/red/0.png"));
  ASSERT_EQ(mkfifo(path("mixed/red/pipe.jpg").c_str(), 0600), 0);
  const Outcome predicted = vitrail("predict " + best() + " " + path("mixed"), "", "timeout 30");
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.out, Not(HasSubstr("pipe.jpg")));
  const Outcome embedded = vitrail(
      "embed " + best() + " " + path("mixed") + " --unlabeled --output " + path("mixed.safetensors"), "", "timeout 30");
  EXPECT_EQ(embedded.status, 0) << embedded.err;
}

TEST_F(ImageFiles, MayHaveNamesThatAreNotUtf8) {
  const std::string odd = path("odd-\xff.png");
  fs::copy_file(path("data/validation/red/3.png"), odd);
  const Outcome predicted = vitrail("predict " + best() + " '" + odd + "' --format json");
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_THAT(predicted.out, HasSubstr("odd-\xef\xbf\xbd.png"));
  fs::copy(path("data"), path("named"), fs::copy_options::recursive);
  fs::rename(path("named/train/red"), path("named/train/r\xe9"
                                           "d"));
  const Outcome refused = vitrail("train " + path("named") + small() + run_flags(path("runs"), "named"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("is not valid UTF-8: rename it"));
}

}  // namespace
}  // namespace vitrail::test
