// Ranks that go on with a run which lies on the machine of rank 0.
#include "vitrail/train/run/run_copy.h"

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/dist/thread_ranks.h"
#include "tests/support/errors.h"
#include "tests/train/tiny.h"
#include "vitrail/io/file.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::HasSubstr;

class RunCopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ClassifyOptions options = test::tiny_options(folder_.path());
    options.experiment = "run";
    options.epochs = 1;
    options.warmup_epochs = 0;
    fit(options);
    run_ = folder_.path() / "runs" / "run";
  }
  fs::path copy_of_run(const std::string& name) const {
    fs::copy(run_, folder_.path() / name, fs::copy_options::recursive);
    return folder_.path() / name;
  }

  test::TemporaryFolder folder_;
  fs::path run_;
};

TEST_F(RunCopyTest, GoesToThoseWhoLackTheCheckpoint) {
  const fs::path same = copy_of_run("same");
  const fs::path damaged = copy_of_run("damaged");
  fs::remove(damaged / "last" / "train-state.safetensors");
  const std::vector<fs::path> given = {run_ / "last", same, damaged, folder_.path() / "none"};
  std::atomic<int> notes = 0;
  test::on_ranks(4, [&](test::ThreadRank& self) {
    const fs::path& own = given[static_cast<std::size_t>(self.rank())];
    RunCopy copy(self, own, [&](const std::string& note) {
      ++notes;
      EXPECT_THAT(note, HasSubstr("2 ranks do not have this checkpoint of the run and get it from rank 0"));
    });
    const bool has_it = self.rank() < 2;
    EXPECT_EQ(copy.folder() == own, has_it);
    if (!has_it) {
      EXPECT_EQ(copy.folder().filename(), "run");
      for (const char* file : {"config.toml", "last/train-state.safetensors", "last/model.safetensors"}) {
        EXPECT_EQ(io::read_bytes(copy.folder() / file), io::read_bytes(run_ / file)) << file;
      }
    }
    const fs::path folder = copy.folder();
    copy.remove();
    copy.remove();
    EXPECT_EQ(fs::exists(folder), has_it);
  });
  EXPECT_EQ(notes, 1);
  EXPECT_TRUE(fs::exists(run_ / "config.toml"));
}

TEST_F(RunCopyTest, ThatWasLeftByAKilledProcessIsRemovedByTheNext) {
  const std::string before = fs::temp_directory_path().string();
  const fs::path temporary = folder_.path() / "tmp";
  for (const char* name : {"vitrail-run-old", "vitrail-run-new", "vitrail-run-used", "other"}) {
    fs::create_directories(temporary / name);
    if (std::string_view(name) != "vitrail-run-new") {
      fs::last_write_time(temporary / name, fs::file_time_type::clock::now() - std::chrono::hours(1));
    }
  }
  const int used = open((temporary / "vitrail-run-used").c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(used, LOCK_EX | LOCK_NB), 0);
  setenv("TMPDIR", temporary.c_str(), 1);
  test::on_ranks(2, [&](test::ThreadRank& self) { RunCopy(self, self.rank() == 0 ? run_ : folder_.path() / "none"); });
  setenv("TMPDIR", before.c_str(), 1);
  close(used);
  EXPECT_FALSE(fs::exists(temporary / "vitrail-run-old"));
  EXPECT_TRUE(fs::exists(temporary / "vitrail-run-new"));
  EXPECT_TRUE(fs::exists(temporary / "vitrail-run-used"));
  EXPECT_TRUE(fs::exists(temporary / "other"));
}

TEST_F(RunCopyTest, OfARunThatRankZeroLacksIsNotMade) {
  test::on_ranks(2, [&](test::ThreadRank& self) {
    const fs::path own = self.rank() == 0 ? folder_.path() / "none" : run_;
    EXPECT_EQ(RunCopy(self, own).folder(), own);
  });
}

TEST_F(RunCopyTest, ThatHasNoRoomSaysSo) {
  const std::string before = fs::temp_directory_path().string();
  setenv("TMPDIR", (folder_.path() / "gone").c_str(), 1);
  test::on_ranks(2, [&](test::ThreadRank& self) {
    self.timeout = 5;
    const fs::path own = self.rank() == 0 ? run_ : folder_.path() / "none";
    if (self.rank() == 1) {
      EXPECT_THAT(error_of([&] { RunCopy(self, own); }), HasSubstr("see TMPDIR"));
    } else {
      RunCopy(self, own);  // what it sends is not taken
    }
  });
  setenv("TMPDIR", before.c_str(), 1);
}

}  // namespace
}  // namespace vitrail::train
