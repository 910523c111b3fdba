/// \file
/// Sums of vectors that lie on several ranks, to the same bits whichever ranks hold them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/dist/communicator.h"
#include "vitrail/tensor/dtype.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::dist {

/// A node of the binary tree over n leaves: the sum of the leaves [begin, end). The root is [0, n); a node is the sum
/// of its left child, which has the largest power of two of leaves that is below its own number, and of its right one.
struct Node {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool is_leaf() const { return end - begin == 1; }
  std::int64_t middle() const;  ///< where its right child begins; it must not be a leaf
  bool operator==(const Node&) const = default;
};
/// The largest nodes of the tree over `leaves` leaves that make up [begin, end) together, in order.
std::vector<Node> nodes_of(std::int64_t leaves, std::int64_t begin, std::int64_t end);

/// The leaves of a rank are those in [first, last): as many for each, as nearly as can be.
std::pair<std::int64_t, std::int64_t> leaves_of(std::int64_t leaves, int rank, int ranks);

constexpr std::int64_t numbers_a_line = 16;  ///< of f32 in a cache line
/// The cache lines that `count` numbers take, the last of them perhaps in part.
constexpr std::int64_t lines_of(std::int64_t count) { return (count + numbers_a_line - 1) / numbers_a_line; }

/// The part [first, last) of a vector of `count` numbers that belongs to a rank: whole cache lines, as many for each,
/// as nearly as can be.
std::pair<std::int64_t, std::int64_t> part_of(std::int64_t count, int rank, int ranks);

/// The memory of the elements [begin, end) of a contiguous tensor, for a message.
std::span<std::byte> bytes_of(const Tensor& x, std::int64_t begin, std::int64_t end);
/// Adds n numbers to a sum, on all threads if there are many.
void add_numbers(float* sum, const float* x, std::int64_t n);

/// What a rank gets of a sum: all of it, or the part that belongs to it, at half the traffic.
enum class Share { whole, part };

/// Adds up vectors of `count` numbers, one from each of n leaves that are spread over the ranks (leaves_of()), along
/// the binary tree over the leaves, in f32. As the tree does not depend on the ranks, the sum has the same bits for any
/// number of them.
///
/// Each rank owns a part of the vector: it gets that part of all nodes that the others have (nodes_of() their leaves),
/// adds them up, and, if all want the whole, sends the sum to all. So 2 (p - 1) / p · count numbers leave and reach
/// each of p ranks, the least possible for one node a rank, and 2 (p - 1) messages do.
///
/// With `wire` bf16, numbers are rounded when they are sent, and half the bytes travel; the sum, then rounded too, is
/// the same on all ranks, but differs with their number.
class TreeSum {
 public:
  /// `tag` and the next number are tags of its messages; `where` names it in errors ("bucket 3 of the gradients").
  TreeSum(Communicator& ranks, std::int64_t count, DType wire, int tag, std::string where, Share share = Share::whole);

  /// Begins a sum of `leaves` leaves; no other may be under way.
  void begin(std::int64_t leaves);
  /// Adds this rank's next leaf, f32 [count] and contiguous, whose memory is written to and kept. With the last of its
  /// leaves, the rank begins to send.
  void add(Tensor leaf);
  /// Goes on as far as it can without waiting. To be called often, between other work.
  void progress();
  /// Waits for the sum, f32: [count], or this rank's part of it. All leaves of this rank must have been added. Throws
  /// Error as dist::wait() does, naming what and `when` ("of step 40").
  Tensor finish(const std::string& when = "");

 private:
  struct Partial {
    Node node;
    Tensor sum;  // [count], or [own part] if another rank sent it
    bool whole = false;
  };
  std::pair<std::int64_t, std::int64_t> part(int rank) const { return part_of(count_, rank, ranks_.size()); }
  void post();
  void add_parts();
  void release();
  float* summed(const Node& node);

  Communicator& ranks_;
  std::int64_t count_;
  DType wire_;
  int tag_;
  std::string where_;
  Share share_;
  std::int64_t leaves_ = 0;
  std::int64_t next_leaf_ = 0;
  std::vector<Partial> partials_;  // this rank's first; those of others behind them
  std::vector<Tensor> kept_;       // memory of messages that are being sent
  std::vector<Awaited> parts_;     // what add_parts() waits for
  std::vector<Awaited> sums_;      // the parts of the result
  std::vector<Awaited> leaving_;
  std::vector<std::pair<Tensor, int>> rounded_sums_;  // parts of the result that arrive rounded, and their ranks
  Tensor result_;
  bool posted_ = false;
  bool added_ = false;
};

}  // namespace vitrail::dist
