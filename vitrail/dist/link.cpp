#include "vitrail/dist/link.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include <sys/resource.h>

#include "vitrail/dist/tree_sum.h"
#include "vitrail/tensor/clock.h"
#include "vitrail/tensor/median.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::dist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t large = 32 << 20;
const char* const where = "the measurement of the links";

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void meet(Communicator& ranks) { all_gather(ranks, "", where); }

// Sends a message to the other rank, and waits for one of the same length from it.
void exchange(Communicator& ranks, int other, std::vector<std::byte>& out, std::vector<std::byte>& in) {
  std::vector<Awaited> messages;
  messages.push_back({ranks.receive(in, other, first_free_tag), other});
  messages.push_back({ranks.send(out, other, first_free_tag), other});
  wait(ranks, messages, where);
}

// Between this rank and another, which calls it too.
Link measure_link(Communicator& ranks, int other) {
  Link link;
  std::vector<std::byte> out(1);
  std::vector<std::byte> in(1);
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) {
    // There and back: each sends only when it has received.
    const Clock::time_point begin = Clock::now();
    for (const bool sends : {ranks.rank() < other, ranks.rank() > other}) {
      std::vector<Awaited> message;
      message.push_back(
          {sends ? ranks.send(out, other, first_free_tag) : ranks.receive(in, other, first_free_tag), other});
      wait(ranks, message, where);
    }
    times.push_back(seconds_since(begin) / 2);
  }
  link.latency = median(times);
  times.clear();
  constexpr int burst = 64;
  for (int i = 0; i < 20; ++i) {
    std::vector<std::byte> received(burst);
    std::vector<Awaited> messages;
    const Clock::time_point begin = Clock::now();
    for (std::byte& one : received) {
      messages.push_back({ranks.receive(std::span(&one, 1), other, first_free_tag), other});
      messages.push_back({ranks.send(out, other, first_free_tag), other});
    }
    wait(ranks, messages, where);
    times.push_back(seconds_since(begin) / burst);
  }
  link.per_message = median(times);
  out.assign(large, std::byte{1});
  in.assign(large, std::byte{0});
  exchange(ranks, other, out, in);
  std::vector<double> speeds;
  std::vector<double> costs;
  for (int i = 0; i < 5; ++i) {
    const double busy = processor_seconds();
    const Clock::time_point begin = Clock::now();
    exchange(ranks, other, out, in);
    speeds.push_back(static_cast<double>(large) / seconds_since(begin));
    costs.push_back((processor_seconds() - busy) / static_cast<double>(large));
  }
  link.bytes_per_second = median(speeds);
  link.cpu_per_byte = median(costs);
  return link;
}

}  // namespace

std::vector<Link> measure_links(Communicator& ranks) {
  std::vector<Link> links;
  for (int other = 1; other < ranks.size(); ++other) {
    meet(ranks);
    if (ranks.rank() == 0) {
      links.push_back(measure_link(ranks, other));
    } else if (ranks.rank() == other) {
      measure_link(ranks, 0);
    }
  }
  meet(ranks);
  return links;
}

double measure_sum(Communicator& ranks, std::int64_t bytes, DType wire) {
  const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
  TreeSum sum(ranks, count, wire, first_free_tag, where);
  std::vector<double> times;
  for (int i = 0; i < 6; ++i) {
    Tensor leaf = Tensor::full({count}, 1);
    meet(ranks);
    const Clock::time_point begin = Clock::now();
    sum.begin(ranks.size());
    sum.add(std::move(leaf));
    const Tensor all = sum.finish();
    times.push_back(seconds_since(begin));
    check(count == 0 || all.data<float>()[count - 1] == static_cast<float>(ranks.size()),
          "a sum of {} ranks is wrong: {} ones are {}", ranks.size(), ranks.size(), all.data<float>()[count - 1]);
  }
  times.erase(times.begin());  // whose memory was new
  return median(times);
}

double measure_addition() {
  constexpr std::int64_t count = 1 << 21;
  const Tensor sum = Tensor::zeros({count});
  const Tensor one = Tensor::full({count}, 1);
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    const Clock::time_point begin = Clock::now();
    add_numbers(sum.data<float>(), one.data<float>(), count);
    times.push_back(seconds_since(begin));
  }
  return static_cast<double>(count) * sizeof(float) / median(times);
}

}  // namespace vitrail::dist
