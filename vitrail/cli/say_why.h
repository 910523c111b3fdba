/// \file
/// What one of several ranks says if it fails.
#pragma once

#include <chrono>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "vitrail/cli/say.h"
#include "vitrail/dist/communicator.h"
#include "vitrail/train/run/interrupt.h"

namespace vitrail::cli {

/// Says what a command failed of. Of several ranks that fail alike the first one says it, and the launcher then ends
/// the others, or asks them to stop; one that is left alone for three seconds has failed by itself, and says which it
/// is.
inline void say_why(std::string_view program, std::string_view message) {
  const int rank = dist::announced_rank();
  for (int turn = 0; rank > 0 && turn < 60; ++turn) {
    if (train::Interrupt::requested()) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  say("{}: {}{}\n", program, rank > 0 ? fmt::format("rank {}: ", rank) : "", message);
}

}  // namespace vitrail::cli
