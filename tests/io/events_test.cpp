#include "vitrail/io/events.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"

namespace vitrail::io {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TemporaryFolder;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// The version record is the first: its time is that of the writing, 8 bytes from byte 13 on; its checksum ends it.
constexpr std::size_t version_size = 12 + 9 + 15 + 4;

TEST(Events, ChecksumIsCastagnolis) {
  const std::string digits = "123456789";  // the check value of the catalogue of CRCs
  EXPECT_EQ(crc32c({reinterpret_cast<const std::uint8_t*>(digits.data()), digits.size()}), 0xe3069283U);
  const std::vector<std::uint8_t> zeros(32);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(zeros), 0x8a9136aaU);
}

TEST(Events, AreTheBytesThatTensorBoardWrites) {
  const TemporaryFolder folder;
  const std::string expected = read_text(test::golden_path("io/events.tfevents"));
  EventWriter writer(folder.path());
  writer.scalar("loss", 0, 2.5, 1700000000.25);
  writer.scalar("loss", 1, -0.125, 1700000001.25);
  writer.scalar("eval/top1", 300, 87.25, 1700000300.25);
  writer.scalar("lr", 1LL << 40, 1e-4, 1700000000.25 + 0x1p40);
  writer.flush();
  const std::string written = read_text(writer.path());
  EXPECT_EQ(written.substr(0, 13), expected.substr(0, 13));
  EXPECT_EQ(written.substr(21, 15), expected.substr(21, 15));
  EXPECT_EQ(written.substr(version_size), expected.substr(version_size));
}

TEST(Events, GoOnInTheSameFile) {
  const TemporaryFolder folder;
  fs::path path;
  {
    EventWriter writer(folder.path());
    writer.scalar("loss", 1, 1, 1.0);
    path = writer.path();
  }
  const std::string before = read_text(path);
  {
    EventWriter writer(folder.path());
    EXPECT_EQ(writer.path(), path);
    writer.scalar("loss", 2, 2, 2.0);
  }
  const std::string after = read_text(path);
  EXPECT_EQ(after.substr(0, before.size()), before);
  EXPECT_EQ(after.size(), before.size() + (before.size() - version_size));
}

TEST(Events, DropTheStepsThatAreDoneAgain) {
  const TemporaryFolder folder;
  const auto write = [&](std::int64_t last, std::int64_t from, std::int64_t to) {
    EventWriter writer(folder.path(), last);
    for (std::int64_t step = from; step <= to; ++step) {
      writer.scalar("loss", step, static_cast<double>(step), 1.0);
    }
    writer.flush();
    return read_text(writer.path());
  };
  const std::string straight = write(0, 1, 200);
  EXPECT_EQ(write(120, 121, 200), straight);
  EXPECT_LT(write(150, 1, 0).size(), straight.size());
  EXPECT_EQ(write(150, 151, 200), straight);
  EXPECT_EQ(write(-1, 1, 200).substr(version_size), straight.substr(version_size));  // all anew
}

// Whatever a crash leaves of the file's end, the next writer goes on after the last whole record.
TEST(Events, SurviveATornEnd) {
  const TemporaryFolder folder;
  fs::path path;
  {
    EventWriter writer(folder.path());
    writer.scalar("a", 1, 1, 1.0);
    writer.scalar("b", 2, 2, 2.0);
    path = writer.path();
  }
  const std::string whole = read_text(path);
  const std::size_t record = (whole.size() - version_size) / 2;
  for (std::size_t length = version_size; length < whole.size(); ++length) {
    write_atomically(path, whole.substr(0, length));
    { const EventWriter writer(folder.path()); }
    ASSERT_EQ(read_text(path), whole.substr(0, version_size + (length - version_size) / record * record)) << length;
  }
  std::string changed = whole;
  changed[version_size + record + 20] ^= 1;
  write_atomically(path, changed);
  { const EventWriter writer(folder.path()); }
  EXPECT_EQ(read_text(path), whole.substr(0, version_size + record));
}

TEST(Events, SayWhatCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { EventWriter(folder / "none"); }), EndsWith("none': No such file or directory"));
  EventWriter writer(folder.path());
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{100, before.rlim_max};
  void (*handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  for (int i = 0; i < 10; ++i) {
    writer.scalar("loss", i, 1);
  }
  EXPECT_THAT(error_of([&] { writer.flush(); }), HasSubstr("events.out.tfevents."));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
}

}  // namespace
}  // namespace vitrail::io
