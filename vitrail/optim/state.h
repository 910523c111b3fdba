// What optimizer and moving average share of loading a state.
#pragma once

#include "vitrail/io/safetensors.h"

namespace vitrail::optim {

// Copies `from` into the tensors of the same names in `to`. Error, with nothing changed, names what is missing, unknown
// or of another shape or dtype; `owner` says whose state it is.
void copy_state(const char* owner, const io::NamedTensors& from, const io::NamedTensors& to);

}  // namespace vitrail::optim
