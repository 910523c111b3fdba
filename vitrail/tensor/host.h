/// \file
/// The machine that this process runs on.
#pragma once

#include <array>
#include <string>

#include <unistd.h>

namespace vitrail {

/// The name of this machine; empty if the system does not say it.
inline std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace vitrail
