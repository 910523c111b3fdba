/// \file
/// Ctrl-C, SIGTERM and SIGHUP as a request to stop that a run can answer after saving its state.
#pragma once

namespace vitrail::train {

/// While an object of this class exists, the first SIGINT, SIGTERM or SIGHUP only makes requested() true, and the next
/// one ends the process at once (exit status 128 + signal). Signals within a quarter of a second after the first count
/// as the same request, since timeout(1) and job schedulers signal both the process and its group. SIGHUP stays ignored
/// where it was (nohup). SIGPIPE is ignored: that nobody reads the output any more ends no run. Only one object may
/// exist at a time; its destructor restores the earlier handlers.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static bool requested();
  static int signal();  ///< the signal that was received; 0 if none
};

}  // namespace vitrail::train
