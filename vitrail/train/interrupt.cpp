#include "vitrail/train/interrupt.h"

#include <csignal>
#include <ctime>

#include <unistd.h>

namespace vitrail::train {
namespace {

volatile std::sig_atomic_t asked = 0;
struct timespec first;              // when it was asked
constexpr double same_wish = 0.25;  // seconds
struct sigaction earlier_int;
struct sigaction earlier_term;

void on_signal(int signal) {
  struct timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (asked == 0) {
    asked = signal;
    first = now;
    return;
  }
  const double since =
      static_cast<double>(now.tv_sec - first.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec - first.tv_nsec);
  if (since > same_wish) {
    _exit(128 + signal);
  }
}

}  // namespace

Interrupt::Interrupt() {
  asked = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &earlier_int);
  sigaction(SIGTERM, &action, &earlier_term);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &earlier_int, nullptr);
  sigaction(SIGTERM, &earlier_term, nullptr);
}

bool Interrupt::requested() { return asked != 0; }
int Interrupt::signal() { return asked; }

}  // namespace vitrail::train
