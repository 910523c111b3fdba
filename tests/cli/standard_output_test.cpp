// Standard output and standard error that are full, closed or read by nobody.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <sys/wait.h>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Runs the program in a shell, with redirections of its own; returns its exit status, or that of a signal.
int in_shell(const std::string& arguments) {
  const int status = std::system((std::string(VITRAIL_PROGRAM) + " " + arguments).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class StandardOutput : public OnImages {};

TEST_F(StandardOutput, ThatIsFullIsAFailure) {
  const auto status = [](const std::string& command) { return WEXITSTATUS(std::system(command.c_str())); };
  const std::string errors = path("errors");
  for (const std::string command : {"--version", "models"}) {  // the latter fills the buffer
    EXPECT_EQ(status(VITRAIL_PROGRAM " " + command + " > /dev/full 2> " + errors), 1);
    EXPECT_EQ(io::read_text(errors), "vitrail: the output could not be written\n") << command;
  }
}

// A disk that is full loses what was printed, and a reader that has gone did not want the rest.
TEST_F(StandardOutput, ThatIsFullLosesNoRun) {
  const auto status = [](const std::string& command) {
    const int all = std::system(command.c_str());
    return WIFEXITED(all) ? WEXITSTATUS(all) : -1;
  };
  const std::string errors = path("full.txt");
  const std::string train = std::string(VITRAIL_PROGRAM " train ") + path("data") + small() + " --epochs 1 --output " +
                            path("runs") + " --experiment ";
  EXPECT_EQ(status(train + "full > /dev/full 2> " + errors), 1);
  EXPECT_EQ(io::read_text(errors), "vitrail: the output could not be written\n");
  EXPECT_TRUE(fs::exists(path("runs/full/best")));
  EXPECT_EQ(status("bash -c '" + train + "pipe 2> " + errors + " | true; exit ${PIPESTATUS[0]}'"), 0);
  EXPECT_EQ(io::read_text(errors), "");
  EXPECT_TRUE(fs::exists(path("runs/pipe/best")));
}

TEST_F(StandardOutput, ThatIsClosedLosesNoRun) {
  EXPECT_EQ(in_shell("train " + path("data") + " --epochs 1 --output " + path("runs") + " --experiment closed" +
                     small() + " >&- 2>" + path("closed.err")),
            1);
  EXPECT_THAT(io::read_text(path("closed.err")), HasSubstr("the output could not be written"));
  EXPECT_THAT(io::read_text(path("runs/closed/metrics.jsonl")), StartsWith("{"));
  EXPECT_EQ(vitrail("compare " + path("runs/closed")).status, 0);
}

TEST_F(StandardOutput, ThatNobodyReadsStopsNoTraining) {
  // The pipe's reader has gone before the first line.
  vitrail("train " + path("data") + run_flags(path("runs"), "piped") + small() + " | true");
  EXPECT_TRUE(fs::exists(path("runs/piped/best/config.json")));
  EXPECT_THAT(io::read_text(path("runs/piped/metrics.jsonl")), HasSubstr("top1"));
}

class StandardError : public Commands {};

TEST_F(StandardError, MayBeFullOrClosed) {
  const std::string data = data_with_broken("unsaid", "validation");
  for (const std::string nowhere : {"2>/dev/full", "2>&-"}) {
    EXPECT_EQ(in_shell("predict " + best() + " " + path("nofile") + " >/dev/null " + nowhere), 1) << nowhere;
    EXPECT_EQ(in_shell("--foo >/dev/null " + nowhere), 2) << nowhere;
    EXPECT_EQ(in_shell("eval " + best() + " " + data + " --split validation --skip-broken >" + path("unsaid.txt") +
                       " " + nowhere),
              0)
        << nowhere;
    EXPECT_THAT(io::read_text(path("unsaid.txt")), HasSubstr("top-1")) << nowhere;
  }
}

}  // namespace
}  // namespace vitrail::test
