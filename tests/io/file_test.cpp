#include "vitrail/io/file.h"

#include <csignal>
#include <fstream>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace vitrail::io {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

// Runs `function` in a child process and returns how that ended (as waitpid() says). The child leaves with 0 when the
// function returns, with 3 when it throws.
int in_child(const std::function<void()>& function) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      function();
    } catch (...) {
      ::_exit(3);
    }
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

// No file of this process may grow beyond `bytes` while one of these lives: a full disk, as far as write() can tell.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(Files, ArePipesTooWhichAreReadOnce) {
  const TemporaryFolder folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(is_file(pipe));
  EXPECT_FALSE(is_file(folder / "none"));
  EXPECT_FALSE(is_file(folder.path()));
  std::thread writer([&] { std::ofstream(pipe) << "a line\n"; });
  EXPECT_EQ(read_text(pipe), "a line\n");
  writer.join();
  EXPECT_EQ(read_text(pipe), "a line\n");  // nobody writes to it any more
  EXPECT_EQ(read_bytes(pipe).size(), 7U);
  std::ofstream(folder / "file") << "a";
  EXPECT_TRUE(is_file(folder / "file"));
  const FileStamp stamp = stamp_of(folder / "file");
  EXPECT_EQ(stamp.bytes, 1);
  EXPECT_EQ(stamp_of(folder / "none"), FileStamp());
}

TEST(ReadFile, GivesTheBytesOfTextBinaryAndEmptyFiles) {
  const TemporaryFolder folder;
  const std::string content = std::string("a\0b\n", 4) + std::string(100'000, 'x');
  std::ofstream(folder / "file", std::ios::binary) << content;
  std::ofstream(folder / "empty");
  EXPECT_EQ(read_text(folder / "file"), content);
  const std::vector<std::uint8_t> bytes = read_bytes(folder / "file");
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), content);
  EXPECT_THAT(read_text(folder / "empty"), IsEmpty());
}

TEST(ReadFile, ReadsPipesToTheirEnd) {
  const TemporaryFolder folder;
  const std::string content(300'000, 'p');
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(folder / "pipe") << content; });
  EXPECT_EQ(read_text(folder / "pipe"), content);
  writer.join();
}

TEST(ReadFile, SaysWhichFileCannotBeReadAndWhy) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { read_text(folder / "none"); }),
            "cannot read '" + (folder / "none").string() + "': No such file or directory");
  EXPECT_THAT(error_of([&] { read_bytes(folder.path()); }), EndsWith("that is a folder"));
  EXPECT_THAT(error_of([&] { MappedFile::open(folder / "none"); }), EndsWith("No such file or directory"));
  EXPECT_THAT(error_of([&] { MappedFile::open(folder.path()); }), EndsWith("that is a folder"));
  EXPECT_THAT(error_of([&] { MappedFile::open("/dev/null"); }), EndsWith("that is not a regular file"));
}

TEST(MappedFile, HoldsTheBytesAsLongAsSomeoneHoldsIt) {
  const TemporaryFolder folder;
  write_atomically(folder / "file", "mapped");
  std::shared_ptr<const MappedFile> file = MappedFile::open(folder / "file");
  const std::shared_ptr<const MappedFile> other = file;
  file.reset();
  fs::remove(folder / "file");
  EXPECT_EQ(std::string(other->bytes().begin(), other->bytes().end()), "mapped");
}

TEST(MappedFile, CanBeEmpty) {
  const TemporaryFolder folder;
  write_atomically(folder / "empty", "");
  EXPECT_TRUE(MappedFile::open(folder / "empty")->bytes().empty());
}

TEST(AtomicFile, ShowsNothingUntilItIsCommitted) {
  const TemporaryFolder folder;
  write_atomically(folder / "file", "old");
  AtomicFile file(folder / "file");
  file.write("ne", 2);
  EXPECT_EQ(read_text(folder / "file"), "old");
  file.write("w", 1);
  file.commit();
  EXPECT_EQ(read_text(folder / "file"), "new");
  EXPECT_THAT(names_in(folder.path()), UnorderedElementsAre("file"));
  EXPECT_THAT(error_of([&] { file.write("more", 4); }), HasSubstr("already finished"));
  EXPECT_THAT(error_of([&] { file.commit(); }), HasSubstr("already finished"));
}

TEST(AtomicFile, LeavesNothingWhenItIsGivenUp) {
  const TemporaryFolder folder;
  { AtomicFile(folder / "file").write("half", 4); }
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
}

TEST(AtomicFile, KeepsPermissionsAndSymbolicLinks) {
  const TemporaryFolder folder;
  write_atomically(folder / "file", "old");
  fs::permissions(folder / "file", fs::perms(0640));
  fs::create_symlink("file", folder / "link");
  write_atomically(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_text(folder / "file"), "new");
  EXPECT_EQ(fs::status(folder / "file").permissions(), fs::perms(0640));
}

TEST(AtomicFile, RefusesWhatIsNotAFileOrCannotBeWritten) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "sub");
  EXPECT_THAT(error_of([&] { write_atomically(folder / "sub", "x"); }), EndsWith("that is a folder"));
  EXPECT_THAT(error_of([&] { write_atomically("/dev/null", "x"); }), EndsWith("that is not a regular file"));
  EXPECT_THAT(error_of([&] { write_atomically(folder / "none" / "file", "x"); }),
              EndsWith("none/file': No such file or directory"));
  EXPECT_THAT(error_of([&] { write_atomically(folder / "sub/", "x"); }), HasSubstr("not the name of a file"));
  EXPECT_TRUE(fs::exists("/dev/null"));
}

TEST(AtomicFile, SaysWhenTheFolderIsNotWritable) {
  const TemporaryFolder folder;
  write_atomically(folder / "file", "old");
  fs::permissions(folder.path(), fs::perms(0555));
  if (::geteuid() == 0) {  // whom permissions do not stop: ask as somebody else
    fs::permissions(folder.path(), fs::perms(0555));
    const int status = in_child([&] {
      if (::setuid(65534) != 0) {
        ::_exit(4);
      }
      const std::string words = error_of([&] { write_atomically(folder / "file", "new"); });
      ::_exit(words == "cannot write '" + (folder / "file").string() + "': Permission denied" ? 0 : 5);
    });
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  } else {
    EXPECT_EQ(error_of([&] { write_atomically(folder / "file", "new"); }),
              "cannot write '" + (folder / "file").string() + "': Permission denied");
  }
  fs::permissions(folder.path(), fs::perms(0755));
  EXPECT_EQ(read_text(folder / "file"), "old");
}

TEST(AtomicFile, KeepsTheOldFileWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  write_atomically(folder / "file", "old");
  {
    const FullDisk disk(10'000);
    EXPECT_THAT(error_of([&] { write_atomically(folder / "file", std::string(20'000, 'n')); }),
                AllOf(HasSubstr("cannot write"), HasSubstr((folder / "file").string()), EndsWith("File too large")));
  }
  EXPECT_EQ(read_text(folder / "file"), "old");
  EXPECT_THAT(names_in(folder.path()), UnorderedElementsAre("file"));
}

TEST(AtomicFile, LeavesTheOldFileWholeWhenItsWriterIsKilled) {
  const TemporaryFolder folder;
  write_atomically(folder / "file", std::string(100'000, 'o'));
  const int status = in_child([&] {
    AtomicFile file(folder / "file");
    file.write(std::string(50'000, 'n').data(), 50'000);
    std::raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(read_text(folder / "file"), std::string(100'000, 'o'));
  EXPECT_THAT(names_in(folder.path()), UnorderedElementsAre("file", ".file.tmp"));
  // The next writer takes the place of the dead one, and nothing of it is left.
  write_atomically(folder / "file", "n");
  EXPECT_EQ(read_text(folder / "file"), "n");
  EXPECT_THAT(names_in(folder.path()), UnorderedElementsAre("file"));
}

// A writer killed at no matter which moment leaves one of the contents that it was writing.
TEST(AtomicFile, IsOldOrNewAtEveryMoment) {
  const TemporaryFolder folder;
  const auto content = [](int i) { return std::string(40'000, static_cast<char>('a' + i % 26)); };
  write_atomically(folder / "file", content(0));
  for (int trial = 0; trial < 20; ++trial) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0;; ++i) {
        write_atomically(folder / "file", content(i));
      }
    }
    ::usleep(static_cast<useconds_t>(2000 + 700 * trial));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::string found = read_text(folder / "file");
    ASSERT_EQ(found.size(), 40'000U);
    ASSERT_EQ(found.find_first_not_of(found[0]), std::string::npos);
  }
}

TEST(AtomicFile, LetsOnlyOneWriterAtAFile) {
  const TemporaryFolder folder;
  AtomicFile first(folder / "file");
  EXPECT_THAT(error_of([&] { AtomicFile(folder / "file"); }), EndsWith("another process is writing it"));
  first.write("first", 5);
  first.commit();
  EXPECT_EQ(read_text(folder / "file"), "first");
}

// Those that are turned away do no harm: what is there is always one writer's whole content.
TEST(AtomicFile, IsWholeUnderManyWriters) {
  const TemporaryFolder folder;
  std::vector<std::thread> writers;
  for (char letter = 'a'; letter < 'e'; ++letter) {
    writers.emplace_back([&folder, letter] {
      for (int i = 0; i < 50; ++i) {
        error_of([&] { write_atomically(folder / "file", std::string(5000, letter)); });
      }
    });
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  const std::string found = read_text(folder / "file");
  EXPECT_EQ(found.size(), 5000U);
  EXPECT_EQ(found.find_first_not_of(found[0]), std::string::npos);
}

void fill(const fs::path& folder, const std::string& text) {
  fs::create_directory(folder / "sub");
  write_atomically(folder / "a", text);
  write_atomically(folder / "sub" / "b", text);
}

TEST(ReplaceFolder, MakesANewFolderAndReplacesAnOldOne) {
  const TemporaryFolder folder;
  replace_folder(folder / "last", [](const fs::path& inside) { fill(inside, "one"); });
  write_atomically(folder / "last" / "extra", "of the old folder only");
  replace_folder(folder / "last/", [](const fs::path& inside) { fill(inside, "two"); });
  EXPECT_EQ(read_text(folder / "last" / "sub" / "b"), "two");
  EXPECT_THAT(names_in(folder / "last"), UnorderedElementsAre("a", "sub"));
  EXPECT_THAT(names_in(folder.path()), UnorderedElementsAre("last"));
}

TEST(ReplaceFolder, KeepsTheOldFolderWhenFillingFails) {
  const TemporaryFolder folder;
  replace_folder(folder / "last", [](const fs::path& inside) { fill(inside, "old"); });
  const FullDisk disk(1000);
  EXPECT_THAT(error_of([&] {
                replace_folder(folder / "last", [](const fs::path& inside) { fill(inside, std::string(2000, 'n')); });
              }),
              EndsWith("File too large"));
  EXPECT_EQ(read_text(folder / "last" / "a"), "old");
  EXPECT_THAT(names_in(folder.path()), UnorderedElementsAre("last"));
}

TEST(ReplaceFolder, KeepsTheOldFolderWhenItsWriterIsKilled) {
  const TemporaryFolder folder;
  replace_folder(folder / "last", [](const fs::path& inside) { fill(inside, "old"); });
  in_child([&] {
    replace_folder(folder / "last", [](const fs::path& inside) {
      fill(inside, "new");
      std::raise(SIGKILL);
    });
  });
  EXPECT_EQ(read_text(folder / "last" / "a"), "old");
  replace_folder(folder / "last", [](const fs::path& inside) { fill(inside, "newer"); });
  EXPECT_EQ(read_text(folder / "last" / "sub" / "b"), "newer");
  EXPECT_THAT(names_in(folder.path()), UnorderedElementsAre("last"));
}

TEST(ReplaceFolder, IsOldOrNewAtEveryMoment) {
  const TemporaryFolder folder;
  replace_folder(folder / "last", [](const fs::path& inside) { fill(inside, "0"); });
  for (int trial = 0; trial < 20; ++trial) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0;; ++i) {
        replace_folder(folder / "last", [&](const fs::path& inside) { fill(inside, std::to_string(i)); });
      }
    }
    ::usleep(static_cast<useconds_t>(3000 + 900 * trial));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ASSERT_EQ(read_text(folder / "last" / "a"), read_text(folder / "last" / "sub" / "b"));
  }
}

TEST(ReplaceFolder, RefusesASecondWriterAtTheSameTime) {
  const TemporaryFolder folder;
  replace_folder(folder / "last", [&](const fs::path& inside) {
    fill(inside, "first");
    EXPECT_THAT(
        error_of([&] { replace_folder(folder / "last", [](const fs::path& other) { fill(other, "second"); }); }),
        EndsWith("another process is writing it"));
  });
  EXPECT_EQ(read_text(folder / "last" / "sub" / "b"), "first");
}

TEST(ReplaceFolder, RefusesWhereAFileIs) {
  const TemporaryFolder folder;
  write_atomically(folder / "last", "a file");
  EXPECT_THAT(error_of([&] { replace_folder(folder / "last", [](const fs::path&) {}); }), EndsWith("that is a file"));
  EXPECT_EQ(read_text(folder / "last"), "a file");
}

}  // namespace
}  // namespace vitrail::io
