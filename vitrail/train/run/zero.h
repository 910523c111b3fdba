/// \file
/// The sharded optimizer of several ranks: ZeRO (Rajbhandari et al. 2020, section 5).
#pragma once

#include <cstdint>

#include "vitrail/dist/communicator.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/optim/optimizer.h"

namespace vitrail::train {

/// Shares an optimizer's work and its moments among ranks: each updates the part of every bucket (buckets.h) that it
/// owns, and then sends it to the others. `bucket_bytes` must be those of the GradientSum. Rank 0 is the one that gets
/// whole tensors. The store and the ranks must outlive the result.
optim::Sharding zero_sharding(const nn::ParameterStore& parameters, dist::Communicator& ranks,
                              std::int64_t bucket_bytes);

/// The bytes of training state that a rank keeps for each parameter with `--zero stage` on so many ranks: the weights,
/// their summed gradients, and so many moments of the optimizer, all in f32.
double zero_state_bytes(int stage, int ranks, std::int64_t moments);

}  // namespace vitrail::train
