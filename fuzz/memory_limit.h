// No input of some kilobytes may make a reader ask for much memory.
#pragma once

// While one lives, operator new refuses more than 16 MiB at once, as it does when the system has none left. (libFuzzer
// itself needs larger pieces between the inputs.) A reader that does not turn that into an Error is found so.
class MemoryLimit {
 public:
  MemoryLimit();
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
};
