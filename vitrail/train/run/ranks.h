/// \file
/// What the ranks of a run must agree on, and how they share a machine.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "vitrail/dist/communicator.h"
#include "vitrail/nn/network.h"
#include "vitrail/train/task.h"

namespace vitrail::train {

/// Throws AgreedError on all ranks, naming the first difference and who has it, unless all have the same facts: names
/// and values in the same order.
void check_same(dist::Communicator& ranks, const std::vector<std::pair<std::string, std::string>>& facts);
/// The facts about a run that its ranks must have in common: the program's version, the data, and all options but those
/// that may differ from machine to machine (folders, threads).
std::vector<std::pair<std::string, std::string>> facts_in_common(const TaskOptions& options, Task& task, DType dtype);

/// Throws AgreedError on all ranks, naming the first tensor that differs and the ranks that have it otherwise than rank
/// 0, unless their networks are equal to the bit.
void check_same_weights(dist::Communicator& ranks, const nn::Network& network, std::int64_t step);

/// How many compute threads this rank takes, and what a user should know of that.
struct RankThreads {
  int threads = 1;
  std::string remark;  ///< "" if all is well
};
/// As many as the rank has cores. Ranks of a machine that may use the same cores divide them; where each was told to
/// use --threads, the remark says if these are more than there are; of one rank it names the flags that are for
/// several.
RankThreads threads_of_rank(dist::Communicator& ranks, const RunOptions& options);

}  // namespace vitrail::train
