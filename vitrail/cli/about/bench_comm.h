/// \file
/// The part of `vitrail bench` that several ranks run together.
#pragma once

#include <string>

#include "vitrail/train/bench/scaling.h"

namespace vitrail::cli {

/// Measures messages and sums between the ranks of this program; rank 0 prints, and writes the JSON object to `output`
/// unless that is empty. Throws Error if there is one rank.
void bench_comm(bool json, const std::string& output);

/// The slowest way between two ranks in such a file. Throws Error, naming the file, if it is none.
train::Fabric read_fabric(const std::string& file);

}  // namespace vitrail::cli
