/// \file
/// The memory of this process.
#pragma once

#include <cstdint>

#include <sys/resource.h>

namespace vitrail::train {

/// The peak resident memory of the process so far, in bytes.
inline std::int64_t resident_peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace vitrail::train
