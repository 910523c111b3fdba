/// \file
/// What lies between ranks: how long messages take, and sums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/dist/communicator.h"
#include "vitrail/tensor/dtype.h"

namespace vitrail::dist {

/// The way between two ranks.
struct Link {
  double latency = 0;           ///< seconds that a message of one byte takes: half of the median round trip
  double per_message = 0;       ///< seconds of each of many small messages in a row
  double bytes_per_second = 0;  ///< each way, while both send a large message to each other
  double cpu_per_byte = 0;      ///< seconds of the processor for each byte that a rank sends while it receives another
};

/// Measures the way between rank 0 and each other rank, one after the other; all ranks must call it. Rank 0 gets the
/// links, by rank, without its own; the others an empty vector.
std::vector<Link> measure_links(Communicator& ranks);

/// The median seconds of rank 0 of sums of vectors of so many bytes, one from each rank, with nothing to do meanwhile
/// (TreeSum); all ranks must call it.
double measure_sum(Communicator& ranks, std::int64_t bytes, DType wire);

/// Bytes a second that are added to a sum, measured on this process's threads.
double measure_addition();

}  // namespace vitrail::dist
