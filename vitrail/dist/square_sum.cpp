#include "vitrail/dist/square_sum.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "vitrail/dist/packed.h"
#include "vitrail/dist/tree_sum.h"
#include "vitrail/kernels/parallel.h"

namespace vitrail::dist {
namespace {

using NodeSums = std::map<std::pair<std::int64_t, std::int64_t>, double>;  // by the lines [begin, end) of a node

// The sum of the squares of up to 16 numbers. The squares of f32 are exact in f64, with or without fused instructions.
double line_sum(const float* x, std::int64_t n) {
  std::array<double, numbers_a_line> squares{};
  for (std::int64_t i = 0; i < n; ++i) {
    squares[static_cast<std::size_t>(i)] = static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  for (std::size_t half = squares.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) {
      squares[i] += squares[i + half];
    }
  }
  return squares[0];
}

// The sum along the tree over sums[begin, end), a node of it: neighbours are added two by two until one is left.
double fold(const std::vector<double>& sums, std::int64_t begin, std::int64_t end) {
  std::vector<double> level(sums.begin() + begin, sums.begin() + end);
  while (level.size() > 1) {
    const std::size_t pairs = level.size() / 2;
    for (std::size_t i = 0; i < pairs; ++i) {
      level[i] = level[2 * i] + level[2 * i + 1];
    }
    if (level.size() % 2 == 1) {
      level[pairs] = level.back();
    }
    level.resize((level.size() + 1) / 2);
  }
  return level.front();
}

double sum_of(const Node& node, const NodeSums& known) {
  const auto found = known.find({node.begin, node.end});
  return found != known.end() ? found->second
                              : sum_of({node.begin, node.middle()}, known) + sum_of({node.middle(), node.end}, known);
}

// The sums of the nodes that make up the lines from `first_line` on.
std::vector<double> sums_of_nodes(const Tensor& numbers, std::int64_t first_line, std::int64_t all_lines) {
  const std::int64_t lines = lines_of(numbers.numel());
  std::vector<double> sums(static_cast<std::size_t>(lines));
  const float* x = numbers.data<float>();
  kernels::parallel_for(lines, 1 << 12, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t line = begin; line < end; ++line) {
      const std::int64_t at = line * numbers_a_line;
      sums[static_cast<std::size_t>(line)] = line_sum(x + at, std::min(numbers_a_line, numbers.numel() - at));
    }
  });
  std::vector<double> result;
  for (const Node& node : nodes_of(all_lines, first_line, first_line + lines)) {
    result.push_back(fold(sums, node.begin - first_line, node.end - first_line));
  }
  return result;
}

}  // namespace

double sum_of_squares(Communicator& ranks, const std::vector<Held>& vectors, const std::string& where) {
  Packer own;
  for (const Held& one : vectors) {
    const auto [first, last] = part_of(one.count, ranks.rank(), ranks.size());
    const bool whole = one.numbers.numel() == one.count;
    const Tensor part = whole ? one.numbers.narrow(0, first, last - first) : one.numbers;
    check(part.numel() == last - first, "rank {} holds {} of the {} numbers of its part", ranks.rank(), part.numel(),
          last - first);
    own.put_all(sums_of_nodes(part, first / numbers_a_line, lines_of(one.count)));
  }
  const std::vector<std::string> all = all_gather(ranks, own.bytes(), where);
  std::vector<Unpacker> parts(all.begin(), all.end());
  double sum = 0;
  for (const Held& one : vectors) {
    const std::int64_t lines = lines_of(one.count);
    NodeSums known;
    for (int rank = 0; rank < ranks.size(); ++rank) {
      const auto [first, last] = part_of(one.count, rank, ranks.size());
      const std::vector<Node> nodes = nodes_of(lines, first / numbers_a_line, lines_of(last));
      const std::vector<double> sums = parts[static_cast<std::size_t>(rank)].get_all<double>();
      check(sums.size() == nodes.size(), "rank {} has summed up {} nodes, not {}", rank, sums.size(), nodes.size());
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        known[{nodes[i].begin, nodes[i].end}] = sums[i];
      }
    }
    sum += lines == 0 ? 0 : sum_of({0, lines}, known);
  }
  return sum;
}

}  // namespace vitrail::dist
