// A run that is killed or interrupted from outside. The run is a process of its own: this test program again, with the
// folder in an environment variable.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/train/tiny.h"
#include "vitrail/train/run/interrupt.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* folder_variable = "VITRAIL_TEST_RUN";

ClassifyOptions killed_options(const fs::path& folder) {
  ClassifyOptions options = test::tiny_options(folder);
  options.epochs = 4;
  options.recovery_interval = 1;
  options.model_ema = true;
  options.experiment = "killed";
  return options;
}

// What the other process does.
TEST(Killed, Child) {
  const char* folder = std::getenv(folder_variable);
  if (folder == nullptr) {
    return;  // only the tests below start it
  }
  const Interrupt interrupt;
  FitHooks hooks;
  hooks.should_stop = Interrupt::requested;
  // Slow enough that no process lives for more than a third of the run before it is killed.
  hooks.on_step = [](std::int64_t, double) { std::this_thread::sleep_for(std::chrono::milliseconds(45)); };
  const fs::path run = fs::path(folder) / "runs/killed";
  const FitResult result = fit(fs::exists(run) ? test::resumed<ClassifyOptions>(run) : killed_options(folder), hooks);
  std::_Exit(result.stopped ? 7 : 0);
}

pid_t start_child(const fs::path& folder) {
  const std::string place = folder.string();
  const pid_t child = fork();
  if (child == 0) {
    setenv(folder_variable, place.c_str(), 1);
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    execl("/proc/self/exe", "train_test", "--gtest_filter=Killed.Child", static_cast<char*>(nullptr));
    _exit(99);
  }
  return child;
}

// Exit status, or minus the signal.
int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(Killed, AtAnyMomentItGoesOnToTheSameBits) {
  const test::TemporaryFolder folder;
  ClassifyOptions straight = killed_options(folder.path());
  straight.experiment = "straight";
  fit(straight);
  Draws draws(Philox(1, 0));
  int kills = 0;
  int status = -SIGKILL;
  for (int attempt = 0; status == -SIGKILL && attempt < 60; ++attempt) {
    const pid_t child = start_child(folder.path());
    if (attempt < 8) {
      std::this_thread::sleep_for(std::chrono::milliseconds(draws.integer(20, 350)));
      kill(child, SIGKILL);
    }
    status = wait_for(child);
    kills += status == -SIGKILL ? 1 : 0;
  }
  EXPECT_EQ(status, 0);
  EXPECT_GE(kills, 3);
  for (const char* model : {"last", "best"}) {
    EXPECT_EQ(test::weights_of(folder / "runs/straight" / model), test::weights_of(folder / "runs/killed" / model));
  }
}

TEST(Killed, ByTermItSavesAndSaysSo) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    const test::TemporaryFolder folder;
    test::tiny_options(folder.path());
    const pid_t child = start_child(folder.path());
    for (int i = 0; i < 500 && !fs::exists(folder / "runs/killed/last"); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(child, signal);
    kill(child, signal == SIGTERM ? SIGINT : SIGTERM);  // at the same time, as from those who signal a whole group too
    EXPECT_EQ(wait_for(child), 7) << "stopped in good order";
  }
}

// The threads of OpenMP that `signal` can reach.
int threads_that_take(int signal) {
  std::atomic<int> count = 0;
#pragma omp parallel
  {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    count += sigismember(&blocked, signal) == 0 ? 1 : 0;
  }
  return count;
}

// oneDNN's products leave no room for the frame of a signal.
TEST(Interrupt, LetsNoHandlerRunWhereSomethingIsComputed) {
  const int threads = threads_that_take(SIGTERM);
  EXPECT_GT(threads, 0);
  {
    const Interrupt interrupt;
    EXPECT_EQ(threads_that_take(SIGTERM), 0);
    std::thread([] { EXPECT_EQ(threads_that_take(SIGTERM), 0) << "of a thread that began later"; }).join();
    EXPECT_FALSE(Interrupt::requested());
    kill(getpid(), SIGTERM);
    for (int i = 0; i < 500 && !Interrupt::requested(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(Interrupt::signal(), SIGTERM);
  }
  EXPECT_EQ(threads_that_take(SIGTERM), threads);
}

}  // namespace
}  // namespace vitrail::train
