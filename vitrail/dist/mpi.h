/// \file
/// The ranks of a program that MPI has started. Internal to dist: communicator.h chooses.
#pragma once

#include <memory>

#include "vitrail/dist/communicator.h"

namespace vitrail::dist {

extern const bool mpi_is_built;
/// Starts MPI, which ends with the object. Throws Error without MPI.
std::unique_ptr<Communicator> mpi_ranks();

}  // namespace vitrail::dist
