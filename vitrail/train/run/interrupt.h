/// \file
/// Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 as a request to stop that a run can answer after saving its state.
#pragma once

#include <atomic>
#include <csignal>
#include <map>
#include <thread>

namespace vitrail::train {

/// While an object of this class exists, the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 (which batch systems send before
/// the time is over, and mpirun passes on at once) only makes requested() true, and the next one ends the process at
/// once (exit status 128 + signal). Signals within a quarter of a second after the first count as the same request,
/// since timeout(1) and job schedulers signal both the process and its group. While the program does nothing but wait
/// for input (io::WaitForInput), the first signal ends it. SIGHUP stays ignored where it was
/// (nohup). SIGPIPE is ignored: that nobody reads the output any more ends no run. Only one object may exist at a time;
/// its destructor restores what was before.
///
/// The signals are blocked on the calling thread, on those of OpenMP and on all that these begin, and a thread of the
/// object's own waits for them. No handler may run on a thread that computes: oneDNN's products in bf16 let the stack
/// pointer point into their workspace on CPUs with AMX, and the kernel would write the frame of the signal over the
/// memory below it.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static bool requested();
  static int signal();  ///< the signal that was received; 0 if none

 private:
  void listen() const;

  sigset_t signals_ = {};
  std::map<int, struct sigaction> earlier_;
  std::atomic<bool> ending_ = false;
  std::thread listener_;
};

}  // namespace vitrail::train
