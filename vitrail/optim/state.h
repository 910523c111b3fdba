/// \file
/// Loading of states, for optimizers and the moving average.
#pragma once

#include "vitrail/io/safetensors.h"

namespace vitrail::optim {

/// Copies `from` into the tensors of the same names in `to`. Throws Error, with nothing changed, naming what is
/// missing, unknown or of another shape or dtype; `owner` says in the message whose state it is.
void copy_state(const char* owner, const io::NamedTensors& from, const io::NamedTensors& to);

}  // namespace vitrail::optim
