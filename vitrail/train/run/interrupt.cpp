#include "vitrail/train/run/interrupt.h"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>

#include <omp.h>
#include <unistd.h>

namespace vitrail::train {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds same_wish{250};  // signals so soon after the first belong to it
constexpr std::array stops = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> asked = 0;

// Blocks or unblocks the signals on this thread and on those of OpenMP.
void mask_signals(int how, const sigset_t& signals) {
#pragma omp parallel
  pthread_sigmask(how, &signals, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  asked = 0;
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, &earlier_[SIGPIPE]);
  sigemptyset(&signals_);
  for (const int signal : stops) {
    struct sigaction earlier = {};
    sigaction(signal, nullptr, &earlier);
    if (signal == SIGHUP && earlier.sa_handler == SIG_IGN) {
      continue;
    }
    action.sa_handler = SIG_DFL;  // what is ignored need not wait for sigwait()
    sigaction(signal, &action, &earlier_[signal]);
    sigaddset(&signals_, signal);
  }
  mask_signals(SIG_BLOCK, signals_);
  listener_ = std::thread([this] { listen(); });
}

void Interrupt::listen() const {
  std::optional<Clock::time_point> first;
  for (int signal = 0; sigwait(&signals_, &signal) == 0 && !ending_;) {
    if (!first) {
      first = Clock::now();
      asked = signal;
    } else if (Clock::now() - *first > same_wish) {
      _exit(128 + signal);
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
