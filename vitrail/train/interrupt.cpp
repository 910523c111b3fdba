#include "vitrail/train/interrupt.h"

#include <csignal>

#include <unistd.h>

namespace vitrail::train {
namespace {

volatile std::sig_atomic_t asked = 0;
struct sigaction earlier_int;
struct sigaction earlier_term;

void on_signal(int signal) {
  if (asked != 0) {
    _exit(128 + signal);
  }
  asked = signal;
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
