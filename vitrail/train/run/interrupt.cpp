#include "vitrail/train/run/interrupt.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include <unistd.h>

#include "vitrail/io/file.h"

namespace vitrail::train {
namespace {

constexpr std::int64_t same_wish = 250'000'000;  // in ns: signals so soon after the first belong to it
constexpr std::array stops = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

std::atomic<int> asked = 0;
std::atomic<std::int64_t> first = 0;  // the time of the first signal in ns; 0: none yet
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a signal handler may not wait");

// What is done about a signal, by the thread that waits for them, or as the handler on a thread that does not compute
// and was there before. It may run on several threads at once.
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

// Blocks or unblocks the signals on this thread and on those of OpenMP.
void mask_signals(int how, const sigset_t& signals) {
#pragma omp parallel
  pthread_sigmask(how, &signals, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  asked = 0;
  first = 0;
  struct sigaction action = {};
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, &earlier_[SIGPIPE]);
  sigemptyset(&signals_);
  for (const int signal : stops) {
    struct sigaction earlier = {};
    sigaction(signal, nullptr, &earlier);
    if (signal == SIGHUP && earlier.sa_handler == SIG_IGN) {
      continue;
    }
    action.sa_handler = on_signal;
    sigaction(signal, &action, &earlier_[signal]);
    sigaddset(&signals_, signal);
  }
  mask_signals(SIG_BLOCK, signals_);
  listener_ = std::thread([this] { listen(); });
}

void Interrupt::listen() const {
  while (!ending_) {
    int signal = 0;
    if (asked == 0) {
      if (sigwait(&signals_, &signal) != 0) {
        return;
      }
    } else {
      constexpr struct timespec soon = {0, 100'000'000};
      signal = sigtimedwait(&signals_, nullptr, &soon);
    }
    if (signal > 0 && !ending_) {
      on_signal(signal);
    }
    if (asked != 0 && !ending_ && io::WaitForInput::any()) {  // nobody would answer
      std::fflush(stdout);
      _exit(128 + asked);
    }
  }
}

Interrupt::~Interrupt() {
  ending_ = true;
  pthread_kill(listener_.native_handle(), SIGTERM);
  listener_.join();
  mask_signals(SIG_UNBLOCK, signals_);
  for (const auto& [signal, earlier] : earlier_) {
    sigaction(signal, &earlier, nullptr);
  }
}

bool Interrupt::requested() { return asked != 0; }
int Interrupt::signal() { return asked; }

}  // namespace vitrail::train
