#include "vitrail/train/run/ranks.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include "vitrail/dist/packed.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/tensor/host.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/digest.h"
#include "vitrail/train/run/learner.h"
#include "vitrail/train/run/run_folder.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// The options that need not be the same on all ranks: where a run lies, and what a machine has.
const std::set<std::string_view> own_options = {"output",  "experiment",  "resume",       "workers",
                                                "threads", "comm_thread", "all_ranks_log"};
// Tables and annotations; images are told apart by their names and classes (training_digest).
const std::set<std::string_view> endings_of_tables = {".tsv", ".csv", ".json", ".jsonl", ".conll"};
const std::set<std::string_view> archive_endings = {".tar", ".tgz", ".gz", ".zip"};

std::vector<std::string> unpacked_texts(const std::string& bytes) { return dist::Unpacker(bytes).get_texts(); }
std::string packed_texts(const std::vector<std::string>& texts) {
  dist::Packer packer;
  packer.put_texts(texts);
  return packer.bytes();
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

// Has this thread, and those that it starts, use these cores alone.
void use_cores(const std::string& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::size_t core = 0; core < cores.size(); ++core) {
    if (cores[core] == '1') {
      CPU_SET(core, &set);
    }
  }
  sched_setaffinity(0, sizeof(set), &set);
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
                                    {"--comm-thread", options.comm_thread != usual.comm_thread},
                                    {"--all-ranks-log", options.all_ranks_log != usual.all_ranks_log}}) {
    if (given) {
      idle.emplace_back(flag);
    }
  }
  return idle.empty() ? ""
                      : fmt::format("note: {} {} for several ranks (mpirun -n 2 vitrail …), and there is one",
                                    fmt::join(idle, ", "), idle.size() == 1 ? "is" : "are");
}

// What stands in a file, or in the tables of a folder and of the folders right inside it.
std::string contents_of(const fs::path& path) {
  std::error_code error;  // of what cannot be read, which the training then misses
  if (archive_endings.contains(path.extension().native())) {
    return "images";
  }
  if (fs::is_regular_file(path, error)) {
    return fmt::format("contents {:016x}", digest_of_file(path));
  }
  std::uint64_t sum = 0;
  auto entry = fs::recursive_directory_iterator(
      path, fs::directory_options::follow_directory_symlink | fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry.depth() > 0) {
      entry.disable_recursion_pending();
    }
    if (endings_of_tables.contains(entry->path().extension().native())) {
      const std::string name = entry->path().lexically_relative(path).native();
      sum += digest_of_file(entry->path()) ^ std::hash<std::string>()(name);  // whatever their order
    }
  }
  return fmt::format("contents {:016x}", sum);
}

std::string value_or_nothing(const std::vector<std::string>& lines, std::size_t at) {
  return at < lines.size() ? lines[at] : "nothing";
}

// What a run's ranks must have in common: names and values.
std::vector<std::pair<std::string, std::string>> facts_in_common(const TaskOptions& options, Task& task, DType dtype) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"version", VITRAIL_VERSION},
      {"program", fmt::format("{:016x}", digest_of_file("/proc/self/exe"))},
      {"dtype", std::string(name_of(dtype))}};
  const std::unique_ptr<TaskOptions> copy = options.clone();
  OptionList list;
  copy->describe(list);
  for (const Option& option : list.all()) {
    if (own_options.contains(option.name)) {
      continue;
    }
    const OptionValue value = option.get();
    const std::string* path = option.is_path ? std::get_if<std::string>(&value) : nullptr;
    std::error_code error;
    const bool lies_here = path != nullptr && fs::exists(*path, error);  // maybe elsewhere than on another machine
    if (lies_here || option.name != "data_dir") {
      facts.emplace_back(option.flag(), lies_here ? contents_of(*path) : option_text(value));
    }
  }
  if (!options.resume.empty()) {
    facts.emplace_back("step of the checkpoint",
                       fmt::format("{}", step_of_checkpoint(fs::path(options.resume) / "last")));
  }
  facts.emplace_back("parameters", fmt::format("{}", task.network().parameters.count()));
  facts.emplace_back("batches an epoch", fmt::format("{}", task.batches().batches_per_epoch()));
  for (const auto& [name, value] : task.facts()) {
    if (name != held_out_source_fact) {  // a path
      facts.emplace_back(name, value);
    }
  }
  return facts;
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

namespace {

// Throws AgreedError unless all ranks compute by as many threads and the same instructions, which decide the last bits.
void check_same_bits(dist::Communicator& ranks) {
  const std::string threads = fmt::format("{}", kernels::threads());
  const std::vector<std::string> all =
      dist::all_gather(ranks, packed_texts({threads, kernels::instruction_sets(), kernels::cpu_name()}), "the start");
  const std::vector<std::string> first = unpacked_texts(all.front());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const std::vector<std::string> other = unpacked_texts(all[rank]);
    dist::check_agreed(
        other[0] == first[0],
        "rank {} computes by {} threads and rank 0 by {}, which --grad-shards cannot have: name the same "
        "--threads for all",
        rank, other[0], first[0]);
    dist::check_agreed(other[1] == first[1],
                       "rank {} on '{}' computes by other instruction sets than rank 0 on '{}', which --grad-shards "
                       "cannot have: leave it out, or take machines of one kind",
                       rank, other[2], first[2]);
  }
}

}  // namespace

void check_same_start(dist::Communicator& ranks, const TaskOptions& options, Task& task, DType dtype) {
  if (ranks.size() > 1) {
    if (options.grad_shards > 0) {
      check_same_bits(ranks);
    }
    check_same(ranks, facts_in_common(options, task, dtype));
  }
}

void check_weights(dist::Communicator& ranks, const nn::Network& network, std::int64_t step) {
  check_same_weights(ranks, network, step);
  check_finite_weights(network, step);
}

std::vector<std::string> of_all_ranks(dist::Communicator& ranks, std::vector<std::string> own,
                                      const std::string& where) {
  if (ranks.size() == 1) {
    return own;
  }
  std::set<std::string> all;
  for (const std::string& packed : dist::all_gather(ranks, packed_texts(own), where)) {
    for (std::string& text : unpacked_texts(packed)) {
      all.insert(std::move(text));
    }
  }
  return {all.begin(), all.end()};
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

namespace {

// What a rank says of itself: its machine, which of its cores it may use, and the threads that it takes alone.
struct RankPlace {
  std::string host;
  std::string cores;
  int threads = 1;
  int comm_core = -1;

  std::int64_t count() const { return std::ranges::count(cores, '1'); }
  bool shares_with(const RankPlace& other) const {
    bool overlap = false;
    for (std::size_t core = 0; core < std::min(cores.size(), other.cores.size()); ++core) {
      overlap = overlap || (cores[core] == '1' && other.cores[core] == '1');
    }
    return host == other.host && overlap;
  }
};

// Of all ranks. The cores for messages, from that of --comm-thread on, are none to compute on if others are left.
std::vector<RankPlace> places_of(dist::Communicator& ranks, std::int64_t comm_thread) {
  const std::string own =
      packed_texts({host_name(), own_cores(), fmt::format("{}", kernels::threads()), fmt::format("{}", comm_thread)});
  std::vector<RankPlace> places;
  for (const std::string& one : dist::all_gather(ranks, own, "the start")) {
    const std::vector<std::string> words = unpacked_texts(one);
    const auto before = std::ranges::count(places, words[0], &RankPlace::host);
    const int first = std::stoi(words[3]);
    places.push_back({words[0], words[1], std::stoi(words[2]), first < 0 ? -1 : first + static_cast<int>(before)});
  }
  for (RankPlace& place : places) {
    std::string left = place.cores;
    for (const RankPlace& other : places) {
      if (other.host == place.host && other.comm_core >= 0 && other.comm_core < std::ssize(left)) {
        left[static_cast<std::size_t>(other.comm_core)] = '0';
      }
    }
    if (left != place.cores && left.find('1') != std::string::npos) {
      place.cores = left;
      place.threads = std::min(place.threads, static_cast<int>(place.count()));
    }
  }
  return places;
}

// The ranks that may use some of the cores of one of them, itself included.
std::int64_t sharing_with(const RankPlace& place, const std::vector<RankPlace>& all) {
  return std::ranges::count_if(all, [&](const RankPlace& other) { return other.shares_with(place); });
}

// The threads of a rank that is not told how many: its share of the cores.
int usual_threads(const RankPlace& place, const std::vector<RankPlace>& all) {
  const std::int64_t sharing = sharing_with(place, all);
  return sharing <= 1 ? place.threads : std::max(1, static_cast<int>(place.count() / sharing));
}

std::string note_of_bits(const RunOptions& options, int threads) {
  return options.grad_shards > 0 && options.threads == 0
             ? fmt::format("note: other numbers of ranks give the same bits with --threads {}", threads)
             : "";
}

}  // namespace

RankThreads threads_of_rank(dist::Communicator& ranks, const RunOptions& options) {
  const auto wanted = static_cast<int>(options.threads);
  RankThreads result;
  result.threads = wanted > 0 ? wanted : kernels::threads();
  std::vector<std::string> remarks;
  if (ranks.size() == 1) {
    remarks.push_back(idle_of_one_rank(options));
  } else {
    const std::vector<RankPlace> places = places_of(ranks, options.comm_thread);
    const RankPlace& here = places[static_cast<std::size_t>(ranks.rank())];
    result.comm_core = here.comm_core;
    if (here.cores != own_cores()) {
      use_cores(here.cores);
    }
    if (wanted == 0) {
      result.threads = usual_threads(here, places);
      for (const RankPlace& other : places) {
        if (options.grad_shards > 0) {  // all must have the same
          result.threads = std::min(result.threads, usual_threads(other, places));
        }
      }
    }
    const std::int64_t sharing = sharing_with(here, places);
    if (sharing > 1 && result.threads * sharing > here.count()) {
      remarks.push_back(fmt::format("note: {} of the ranks share {} of {}: each waits for the others", sharing,
                                    io::counted(here.count(), "cores"), here.host));
    }
  }
  remarks.push_back(note_of_bits(options, result.threads));
  std::erase(remarks, "");
  result.remark = fmt::format("{}", fmt::join(remarks, "\n"));
  return result;
}

}  // namespace vitrail::train
