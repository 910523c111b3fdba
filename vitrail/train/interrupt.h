// Ctrl-C and SIGTERM as a wish that a run can honour in good order.
#pragma once

namespace vitrail::train {

// While one lives, the first SIGINT or SIGTERM only makes requested() true, and the second ends the process at once
// (exit status 128 + signal). A quarter of a second belongs to the first: timeout(1) and job schedulers signal both the
// process and its group. One at a time; the earlier handlers come back at the end of its life.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static bool requested();
  static int signal();  // which one; 0 if none
};

}  // namespace vitrail::train
