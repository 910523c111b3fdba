#include "vitrail/dist/tree_sum.h"

#include <algorithm>
#include <bit>

#include "vitrail/kernels/cast.h"
#include "vitrail/kernels/parallel.h"

namespace vitrail::dist {
namespace {

// `x`, contiguous, in another dtype.
Tensor converted(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) {
    return x;
  }
  const Tensor result = Tensor::empty(x.shape(), dtype);
  kernels::cast(x.raw(), x.dtype(), result.raw(), dtype, x.numel());
  return result;
}

void collect(const Node& node, std::int64_t begin, std::int64_t end, std::vector<Node>& nodes) {
  if (node.begin >= end || node.end <= begin) {
    return;
  }
  if (begin <= node.begin && node.end <= end) {
    nodes.push_back(node);
    return;
  }
  collect({node.begin, node.middle()}, begin, end, nodes);
  collect({node.middle(), node.end}, begin, end, nodes);
}

}  // namespace

std::span<std::byte> bytes_of(const Tensor& x, std::int64_t begin, std::int64_t end) {
  const auto size = static_cast<std::int64_t>(size_of(x.dtype()));
  return {x.raw() + begin * size, static_cast<std::size_t>((end - begin) * size)};
}

void add_numbers(float* sum, const float* x, std::int64_t n) {
  kernels::parallel_for(n, 1 << 16, kernels::lines, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      sum[i] += x[i];
    }
  });
}

std::int64_t Node::middle() const {
  const auto size = static_cast<std::uint64_t>(end - begin);
  return begin + static_cast<std::int64_t>(std::bit_floor(size - 1));
}

std::vector<Node> nodes_of(std::int64_t leaves, std::int64_t begin, std::int64_t end) {
  std::vector<Node> nodes;
  if (begin < end) {
    collect({0, leaves}, begin, end, nodes);
  }
  return nodes;
}

std::pair<std::int64_t, std::int64_t> leaves_of(std::int64_t leaves, int rank, int ranks) {
  return {leaves * rank / ranks, leaves * (rank + 1) / ranks};
}

std::pair<std::int64_t, std::int64_t> part_of(std::int64_t count, int rank, int ranks) {
  const std::int64_t lines = lines_of(count);
  return {std::min(count, lines * rank / ranks * numbers_a_line),
          std::min(count, lines * (rank + 1) / ranks * numbers_a_line)};
}

TreeSum::TreeSum(Communicator& ranks, std::int64_t count, DType wire, int tag, std::string where, Share share)
    : ranks_(ranks), count_(count), wire_(wire), tag_(tag), where_(std::move(where)), share_(share) {
  check(wire == DType::f32 || wire == DType::bf16, "numbers are sent in f32 or bf16, not in {}", name_of(wire));
}

void TreeSum::begin(std::int64_t leaves) {
  leaves_ = leaves;
  next_leaf_ = leaves_of(leaves, ranks_.rank(), ranks_.size()).first;
  partials_.clear();
  posted_ = false;
  added_ = false;
  result_ = Tensor();
  if (next_leaf_ == leaves_of(leaves, ranks_.rank(), ranks_.size()).second) {
    post();
  }
}

void TreeSum::add(Tensor leaf) {
  const std::int64_t last = leaves_of(leaves_, ranks_.rank(), ranks_.size()).second;
  check(next_leaf_ < last, "{}: rank {} has no further leaf", where_, ranks_.rank());
  partials_.push_back({{next_leaf_, next_leaf_ + 1}, std::move(leaf), true});
  ++next_leaf_;
  // The last two are added as long as they are the children of a node.
  while (partials_.size() > 1) {
    Partial& left = partials_[partials_.size() - 2];
    const Partial& right = partials_.back();
    const Node both{left.node.begin, right.node.end};
    if (nodes_of(leaves_, both.begin, both.end) != std::vector{both} || both.middle() != left.node.end) {
      break;
    }
    add_numbers(left.sum.data<float>(), right.sum.data<float>(), count_);
    left.node = both;
    partials_.pop_back();
  }
  if (next_leaf_ == last) {
    post();
  }
}

// Sends the parts of this rank's nodes to their owners, and begins to receive.
void TreeSum::post() {
  posted_ = true;
  if (ranks_.size() == 1) {
    result_ = partials_.front().sum;
    return;
  }
  const auto [first, last] = part(ranks_.rank());
  const std::size_t own = partials_.size();
  result_ = Tensor::empty({share_ == Share::whole ? count_ : last - first});
  for (int other = 0; other < ranks_.size(); ++other) {
    if (other == ranks_.rank()) {
      continue;
    }
    const auto [begin, end] = part(other);
    const auto leaves = leaves_of(leaves_, other, ranks_.size());
    for (const Node& node : nodes_of(leaves_, leaves.first, leaves.second)) {
      if (first == last) {
        break;
      }
      const Tensor memory = Tensor::empty({last - first}, wire_);
      parts_.push_back({ranks_.receive(bytes_of(memory, 0, last - first), other, tag_), other});
      partials_.push_back({node, memory, false});
    }
    for (std::size_t i = 0; i < own && begin < end; ++i) {
      Tensor sent = partials_[i].sum.narrow(0, begin, end - begin);
      if (wire_ != DType::f32) {
        kept_.push_back(converted(sent, wire_));
        sent = kept_.back();
      }
      leaving_.push_back({ranks_.send(bytes_of(sent, 0, end - begin), other, tag_), other});
    }
    if (begin < end && share_ == Share::whole) {
      Tensor to = result_.narrow(0, begin, end - begin);
      if (wire_ != DType::f32) {
        to = Tensor::empty({end - begin}, wire_);
        rounded_sums_.emplace_back(to, other);
      }
      sums_.push_back({ranks_.receive(bytes_of(to, 0, end - begin), other, tag_ + 1), other});
    }
  }
}

// The own part of the sum of a node, which is added up where its left part lies.
float* TreeSum::summed(const Node& node) {
  for (Partial& partial : partials_) {
    if (partial.node == node) {
      return partial.sum.data<float>() + (partial.whole ? part(ranks_.rank()).first : 0);
    }
  }
  float* left = summed({node.begin, node.middle()});
  const float* right = summed({node.middle(), node.end});
  const auto [first, last] = part(ranks_.rank());
  add_numbers(left, right, last - first);
  return left;
}

// Adds the own parts of all nodes up, and sends the sum to those who want it.
void TreeSum::add_parts() {
  added_ = true;
  const auto [first, last] = part(ranks_.rank());
  if (first == last) {
    return;
  }
  for (Partial& partial : partials_) {
    if (!partial.whole) {
      partial.sum = converted(partial.sum, DType::f32);
    }
  }
  const float* sum = summed({0, leaves_});
  Tensor own = share_ == Share::whole ? result_.narrow(0, first, last - first) : result_;
  std::copy(sum, sum + (last - first), own.data<float>());
  if (share_ == Share::part) {
    return;
  }
  if (wire_ != DType::f32) {
    kept_.push_back(converted(own, wire_));
    kernels::cast(kept_.back().raw(), wire_, own.raw(), DType::f32, last - first);  // as the others have it
    own = kept_.back();
  }
  for (int other = 0; other < ranks_.size(); ++other) {
    if (other != ranks_.rank()) {
      leaving_.push_back({ranks_.send(bytes_of(own, 0, last - first), other, tag_ + 1), other});
    }
  }
}

// Gives the memory of the leaves back once it has been added up and sent.
void TreeSum::release() {
  partials_.clear();
  kept_.clear();
}

void TreeSum::progress() {
  if (posted_ && ranks_.size() > 1) {
    if (!added_ && take_done(parts_)) {
      add_parts();
    }
    take_done(sums_);
    if (take_done(leaving_) && added_) {
      release();
    }
  }
}

Tensor TreeSum::finish(const std::string& when) {
  check(posted_, "{}: not all leaves of rank {} have been added", where_, ranks_.rank());
  if (ranks_.size() > 1) {
    progress();
    const std::string where = when.empty() ? where_ : where_ + " " + when;
    if (!added_) {
      wait(ranks_, parts_, where);
      add_parts();
    }
    wait(ranks_, sums_, where);
    for (const auto& [part_sum, rank] : rounded_sums_) {
      const auto [begin, end] = part(rank);
      kernels::cast(part_sum.raw(), wire_, result_.data<float>() + begin, DType::f32, end - begin);
    }
    wait(ranks_, leaving_, where);
    rounded_sums_.clear();
    release();
  }
  posted_ = false;
  return std::move(result_);
}

}  // namespace vitrail::dist
