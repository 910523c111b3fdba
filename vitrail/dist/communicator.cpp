#include "vitrail/dist/communicator.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vitrail/dist/mpi.h"
#include "vitrail/tensor/clock.h"

namespace vitrail::dist {
namespace {

using Clock = std::chrono::steady_clock;

class Alone final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::unique_ptr<Message> send(std::span<const std::byte>, int to, int) override { no_other(to); }
  std::unique_ptr<Message> begin_receive(std::span<std::byte>, int from, int) override { no_other(from); }
  [[noreturn]] void abort() override { std::exit(EXIT_FAILURE); }

 private:
  [[noreturn]] static void no_other(int rank) { fail("there is no rank {}: this process is alone", rank); }
};

// A message whose arrival is noted.
class Noted final : public Message {
 public:
  Noted(std::unique_ptr<Message> message, Clock::time_point& came) : message_(std::move(message)), came_(came) {}
  bool done() override {
    const bool done = message_->done();
    if (done) {
      came_ = Clock::now();
    }
    return done;
  }

 private:
  std::unique_ptr<Message> message_;
  Clock::time_point& came_;
};

// The largest number among these environment variables; 0 if none is set.
int largest_of(std::initializer_list<const char*> names) {
  int largest = 0;
  for (const char* name : names) {
    const char* value = std::getenv(name);
    largest = std::max(largest, value == nullptr ? 0 : std::atoi(value));
  }
  return largest;
}

std::span<std::byte> bytes_of(std::string& text) { return std::as_writable_bytes(std::span(text.data(), text.size())); }
std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

std::unique_ptr<Message> Communicator::receive(std::span<std::byte> bytes, int from, int tag) {
  return std::make_unique<Noted>(begin_receive(bytes, from, tag), heard_[from]);
}

std::optional<double> Communicator::seconds_without(int rank) const {
  const auto found = heard_.find(rank);
  return found == heard_.end() || found->second == Clock::time_point() ? std::nullopt
                                                                       : std::optional(seconds_since(found->second));
}

std::unique_ptr<Communicator> alone() { return std::make_unique<Alone>(); }

int announced_rank() { return largest_of({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}); }

int announced_ranks() {
  // Slurm sets its variable for `sbatch` scripts too; only steps that are started for MPI have a rank of PMIx.
  const bool is_step = std::getenv("PMIX_RANK") != nullptr;
  return std::max({1, largest_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}), is_step ? largest_of({"SLURM_NTASKS"}) : 0});
}

bool has_mpi() { return mpi_is_built; }

std::unique_ptr<Communicator> started_ranks(double timeout) {
  const int ranks = announced_ranks();
  if (ranks == 1) {
    return alone();
  }
  check(
      mpi_is_built,
      "this is one of {} processes, but this program was built without MPI: install libopenmpi-dev and build it again "
      "(script/bootstrap --mpi)",
      ranks);
  return mpi_ranks(timeout);
}

bool take_done(std::vector<Awaited>& messages) {
  std::erase_if(messages, [](const Awaited& one) { return one.message->done(); });
  return messages.empty();
}

namespace {

// The ranks of messages that are not done, with their last signs of life: "rank 1 (last heard of 120 s ago)".
std::string missing_ranks(const Communicator& ranks, const std::vector<Awaited>& messages) {
  std::set<int> missing;
  for (const Awaited& one : messages) {
    missing.insert(one.rank);
  }
  std::vector<std::string> words;
  for (const int rank : missing) {
    const std::optional<double> silent = ranks.seconds_without(rank);
    words.push_back(
        fmt::format("{} ({})", rank, silent ? fmt::format("last heard of {:.0f} s ago", *silent) : "never heard of"));
  }
  return fmt::format("{} {}", words.size() == 1 ? "rank" : "ranks", fmt::join(words, ", "));
}

}  // namespace

void wait(Communicator& ranks, std::vector<Awaited>& messages, const std::string& where) {
  const Clock::time_point begin = Clock::now();
  std::optional<Clock::time_point> stopping;
  while (!take_done(messages)) {
    const double waited = seconds_since(begin);
    if (!stopping && ranks.stopping && ranks.stopping()) {
      stopping = Clock::now();
    }
    const bool given_up = stopping && seconds_since(*stopping) > std::max(30.0, 3 * ranks.longest_wait);
    if (waited > ranks.timeout || given_up) {
      fail("rank {} has waited {:.0f} s at {} for the {}{}", ranks.rank(), waited, where,
           missing_ranks(ranks, messages), given_up ? ", and has been asked to stop" : "");
    }
    // The ranks of one machine may share its cores.
    waited < 1e-3 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  ranks.longest_wait = std::max(ranks.longest_wait, seconds_since(begin));
}

std::vector<std::string> all_gather(Communicator& ranks, const std::string& own, const std::string& where) {
  const auto count = static_cast<std::size_t>(ranks.size());
  std::vector<std::uint64_t> sizes(count);
  std::vector<std::string> all(count);
  all[static_cast<std::size_t>(ranks.rank())] = own;
  const std::uint64_t size = own.size();
  std::vector<Awaited> awaited;
  const auto with_each_other = [&](const auto& exchange) {
    for (int other = 0; other < ranks.size(); ++other) {
      if (other != ranks.rank()) {
        exchange(static_cast<std::size_t>(other), other);
      }
    }
    wait(ranks, awaited, where);
  };
  with_each_other([&](std::size_t at, int other) {
    awaited.push_back({ranks.receive(std::as_writable_bytes(std::span(&sizes[at], 1)), other, sizes_tag), other});
    awaited.push_back({ranks.send(std::as_bytes(std::span(&size, 1)), other, sizes_tag), other});
  });
  with_each_other([&](std::size_t at, int other) {
    all[at].resize(sizes[at]);
    awaited.push_back({ranks.receive(bytes_of(all[at]), other, bytes_tag), other});
    awaited.push_back({ranks.send(bytes_of(own), other, bytes_tag), other});
  });
  return all;
}

}  // namespace vitrail::dist
