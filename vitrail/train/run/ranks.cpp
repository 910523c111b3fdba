#include "vitrail/train/run/ranks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include "vitrail/dist/packed.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/train/run/checkpoint.h"

namespace vitrail::train {
namespace {

// The options that need not be the same on all ranks: where things lie, and what a machine has.
const std::set<std::string_view> own_options = {"data_dir", "output",  "experiment",   "resume",
                                                "workers",  "threads", "all_ranks_log"};

std::vector<std::string> unpacked_texts(const std::string& bytes) { return dist::Unpacker(bytes).get_texts(); }
std::string packed_texts(const std::vector<std::string>& texts) {
  dist::Packer packer;
  packer.put_texts(texts);
  return packer.bytes();
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

// The cores that this process may use.
std::string own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string cores;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      cores += CPU_ISSET(core, &set) ? '1' : '0';
    }
  }
  return cores;
}

// Names the flags that do nothing where there is one rank.
std::string idle_of_one_rank(const RunOptions& options) {
  const RunOptions usual;
  std::vector<std::string_view> idle;
  for (const auto& [flag, given] : {std::pair{"--grad-dtype", options.grad_dtype != usual.grad_dtype},
                                    {"--zero", options.zero != usual.zero},
                                    {"--bucket-mb", options.bucket_mb != usual.bucket_mb},
                                    {"--check-every", options.check_every != usual.check_every},
                                    {"--comm-timeout", options.comm_timeout != usual.comm_timeout},
                                    {"--all-ranks-log", options.all_ranks_log != usual.all_ranks_log}}) {
    if (given) {
      idle.emplace_back(flag);
    }
  }
  return idle.empty() ? ""
                      : fmt::format("note: {} {} for several ranks (mpirun -n 2 vitrail …), and there is one",
                                    fmt::join(idle, ", "), idle.size() == 1 ? "is" : "are");
}

std::string value_or_nothing(const std::vector<std::string>& lines, std::size_t at) {
  return at < lines.size() ? lines[at] : "nothing";
}

}  // namespace

void check_same(dist::Communicator& ranks, const std::vector<std::pair<std::string, std::string>>& facts) {
  if (ranks.size() == 1) {
    return;
  }
  std::vector<std::string> lines;
  lines.reserve(facts.size());
  for (const auto& [name, value] : facts) {
    lines.push_back(name + ": " + value);
  }
  const std::vector<std::string> all = dist::all_gather(ranks, packed_texts(lines), "the comparison of their options");
  const std::vector<std::string> first = unpacked_texts(all.front());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const std::vector<std::string> other = unpacked_texts(all[rank]);
    for (std::size_t i = 0; i < std::max(first.size(), other.size()); ++i) {
      const std::string here = value_or_nothing(first, i);
      const std::string there = value_or_nothing(other, i);
      if (here != there) {
        throw dist::AgreedError(fmt::format(
            "rank {} differs from rank 0: \"{}\" there is \"{}\" here; the ranks must be started in the same "
            "way, with the same program and data",
            rank, there, here));
      }
    }
  }
}

std::vector<std::pair<std::string, std::string>> facts_in_common(const TaskOptions& options, Task& task, DType dtype) {
  std::vector<std::pair<std::string, std::string>> facts = {{"version", VITRAIL_VERSION},
                                                            {"dtype", std::string(name_of(dtype))}};
  const std::unique_ptr<TaskOptions> copy = options.clone();
  OptionList list;
  copy->describe(list);
  for (const Option& option : list.all()) {
    if (!own_options.contains(option.name)) {
      facts.emplace_back(option.flag(), option_text(option.get()));
    }
  }
  facts.emplace_back("parameters", fmt::format("{}", task.network().parameters.count()));
  facts.emplace_back("batches an epoch", fmt::format("{}", task.batches().batches_per_epoch()));
  for (const auto& [name, value] : task.facts()) {
    facts.emplace_back(name, value);
  }
  return facts;
}

void check_same_weights(dist::Communicator& ranks, const nn::Network& network, std::int64_t step) {
  if (ranks.size() == 1) {
    return;
  }
  const std::vector<nn::Parameter>& parameters = network.parameters.all();
  std::string own;
  for (const nn::Parameter& one : parameters) {
    const std::uint64_t sum = checksum({{one.name, one.value}});
    own.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  }
  const std::vector<std::string> all =
      dist::all_gather(ranks, own, fmt::format("the comparison of the weights of step {}", step));
  std::vector<std::size_t> others;
  std::size_t first = own.size();
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const auto [here, there] = std::ranges::mismatch(all.front(), all[rank]);
    if (here != all.front().end() || there != all[rank].end()) {
      others.push_back(rank);
      first = std::min(first, static_cast<std::size_t>(here - all.front().begin()));
    }
  }
  if (!others.empty()) {
    const std::size_t at = std::min(first / sizeof(std::uint64_t), parameters.size() - 1);
    throw dist::AgreedError(
        fmt::format("after step {} the weights of the {} {} are not those of rank 0: '{}' is the first "
                    "that differs",
                    step, others.size() == 1 ? "rank" : "ranks", fmt::join(others, ", "), parameters[at].name));
  }
}

RankThreads threads_of_rank(dist::Communicator& ranks, const RunOptions& options) {
  const auto wanted = static_cast<int>(options.threads);
  RankThreads result;
  result.threads = wanted > 0 ? wanted : kernels::threads();
  if (ranks.size() == 1) {
    result.remark = idle_of_one_rank(options);
    return result;
  }
  const std::string own = packed_texts({host_name(), own_cores()});
  const std::vector<std::string> all = dist::all_gather(ranks, own, "the start");
  const std::vector<std::string> here = unpacked_texts(own);
  const auto cores = std::ranges::count(here[1], '1');
  int sharing = 0;  // ranks that may use some of these cores
  for (const std::string& one : all) {
    const std::vector<std::string> there = unpacked_texts(one);
    bool overlap = false;
    for (std::size_t core = 0; core < std::min(here[1].size(), there[1].size()); ++core) {
      overlap = overlap || (here[1][core] == '1' && there[1][core] == '1');
    }
    sharing += there[0] == here[0] && overlap ? 1 : 0;
  }
  if (sharing <= 1 || cores == 0) {
    return result;
  }
  if (wanted == 0) {
    result.threads = std::max(1, static_cast<int>(cores) / sharing);
  }
  if (static_cast<std::int64_t>(result.threads) * sharing > cores) {
    result.remark = fmt::format("note: {} of {} share {} of {}: each waits for the others", sharing, "the ranks",
                                io::counted(cores, "cores"), here[0]);
  }
  return result;
}

}  // namespace vitrail::train
