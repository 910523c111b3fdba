/// \file
/// The end of a command whose user has asked it to stop.
#pragma once

#include <CLI/CLI.hpp>

#include "vitrail/train/run/interrupt.h"
#include "vitrail/train/run/progress.h"

namespace vitrail::cli {

/// Ends the progress bar and the command, with the status that shells give to the signal, if train::Interrupt has been
/// requested.
inline void end_if_interrupted(train::Progress* progress = nullptr) {
  if (train::Interrupt::requested()) {
    if (progress != nullptr) {
      progress->end();
    }
    throw CLI::RuntimeError(128 + train::Interrupt::signal());
  }
}

}  // namespace vitrail::cli
