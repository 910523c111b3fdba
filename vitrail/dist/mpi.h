/// \file
/// The ranks of a program that MPI has started. Internal to dist: communicator.h chooses.
#pragma once

#include <memory>

#include "vitrail/dist/communicator.h"

namespace vitrail::dist {

extern const bool mpi_is_built;
/// Starts MPI, which ends with the object. Says so, and ends this process with the status 1, if the other ranks have
/// not started within so many seconds. Throws Error without MPI.
std::unique_ptr<Communicator> mpi_ranks(double timeout);

}  // namespace vitrail::dist
