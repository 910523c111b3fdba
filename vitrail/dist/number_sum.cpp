#include "vitrail/dist/number_sum.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace vitrail::dist {

void add_up(Communicator& ranks, std::span<const int> members, std::span<double> numbers, int tag,
            const std::string& where) {
  std::vector<std::vector<double>> of(members.size(), std::vector<double>(numbers.size()));
  std::vector<Awaited> awaited;
  const std::vector<double> own(numbers.begin(), numbers.end());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] == ranks.rank()) {
      of[i] = own;
      continue;
    }
    awaited.push_back({ranks.receive(std::as_writable_bytes(std::span(of[i])), members[i], tag), members[i]});
    awaited.push_back({ranks.send(std::as_bytes(std::span(own)), members[i], tag), members[i]});
  }
  wait(ranks, awaited, where);
  std::ranges::fill(numbers, 0.0);
  for (const std::vector<double>& one : of) {
    std::ranges::transform(numbers, one, numbers.begin(), std::plus<>());
  }
}

}  // namespace vitrail::dist
