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
/// The same of how a run begins: the program, the data, and all options but those that may differ from machine to
/// machine (where the run lies, threads). What an option names by a path may lie elsewhere: the bytes of files, and of
/// the tables and annotations in folders, are compared; of images, their names and classes (Task::facts()).
void check_same_start(dist::Communicator& ranks, const TaskOptions& options, Task& task, DType dtype);
/// check_same_weights(), and check_finite_weights(), which then finds the same on all ranks.
void check_weights(dist::Communicator& ranks, const nn::Network& network, std::int64_t step);
/// What the ranks have found, each on its own: all of it, sorted, on all ranks.
std::vector<std::string> of_all_ranks(dist::Communicator& ranks, std::vector<std::string> own,
                                      const std::string& where);

/// Throws AgreedError on all ranks, naming the first tensor that differs and the ranks that have it otherwise than rank
/// 0, unless their networks are equal to the bit.
void check_same_weights(dist::Communicator& ranks, const nn::Network& network, std::int64_t step);

/// How many compute threads this rank takes, and what a user should know of that.
struct RankThreads {
  int threads = 1;
  int comm_core = -1;  ///< the core of the thread that moves messages; -1: there is none
  std::string remark;  ///< "" if all is well
};
/// As many as the rank has cores. Ranks of a machine that may use the same cores divide them; where each was told to
/// use --threads, the remark says if these are more than there are; of one rank it names the flags that are for
/// several. With --comm-thread the ranks of a machine take that core and the next ones for messages, and the calling
/// thread, and so those that it starts, leave these cores to them if any other is left.
RankThreads threads_of_rank(dist::Communicator& ranks, const RunOptions& options);

}  // namespace vitrail::train
