#include "vitrail/train/run/interrupt.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

#include <unistd.h>

namespace vitrail::train {
namespace {

constexpr std::int64_t same_wish = 250'000'000;  // in ns: signals so soon after the first belong to it

volatile std::sig_atomic_t asked = 0;
std::atomic<std::int64_t> first = 0;  // the time of the first signal in ns; 0: none yet
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a signal handler may not wait");

struct Handled {
  int signal;
  struct sigaction earlier;
};
Handled handled[] = {{SIGINT, {}}, {SIGTERM, {}}, {SIGHUP, {}}, {SIGPIPE, {}}};

// The handler of all signals that ask to stop. It may run on several threads at once.
void on_signal(int signal) {
  struct timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = 1'000'000'000 * static_cast<std::int64_t>(time.tv_sec) + time.tv_nsec;
  std::int64_t began = 0;
  if (first.compare_exchange_strong(began, now)) {
    asked = signal;
  } else if (now - began > same_wish) {
    _exit(128 + signal);
  }
}

}  // namespace

Interrupt::Interrupt() {
  asked = 0;
  first = 0;
  struct sigaction action = {};
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (auto& [signal, earlier] : handled) {
    sigaction(signal, nullptr, &earlier);
    const bool nohup = signal == SIGHUP && earlier.sa_handler == SIG_IGN;
    action.sa_handler = signal == SIGPIPE || nohup ? SIG_IGN : on_signal;
    sigaction(signal, &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  for (const auto& [signal, earlier] : handled) {
    sigaction(signal, &earlier, nullptr);
  }
}

bool Interrupt::requested() { return asked != 0; }
int Interrupt::signal() { return asked; }

}  // namespace vitrail::train
