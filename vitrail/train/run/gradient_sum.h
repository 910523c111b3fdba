/// \file
/// What an update gets from all its batches, wherever they are trained: the sum of the gradients, and the mean of the
/// running statistics of norms. Both are added along the tree of dist/tree_sum.h, whose leaves are the batches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "vitrail/autograd/tape.h"
#include "vitrail/dist/tree_sum.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/train/run/buckets.h"

namespace vitrail::train {

/// The sum of the gradients of a store's trainable parameters over the leaves of all ranks.
///
/// The gradients lie in flat buckets, in the reverse order of the parameters, which is about that in which backward()
/// completes them. A bucket is sent as soon as the last of its gradients is complete, while backward() goes on, as in
/// PyTorch's DistributedDataParallel (Li et al. 2020).
class GradientSum {
 public:
  /// `share` says whether each rank gets the gradients of all elements, or of those that it owns (owned_of()).
  /// `first_tag` and further numbers are tags of its messages. The store must outlive it, and its parameters may not be
  /// frozen or released meanwhile.
  GradientSum(const nn::ParameterStore& parameters, dist::Communicator& ranks, DType wire, std::int64_t bucket_bytes,
              dist::Share share, int first_tag);

  /// Begins an update of `leaves` leaves on all ranks together.
  void begin(std::int64_t leaves);
  /// For backward() of each leaf: takes gradients as soon as they are complete. May be left out.
  autograd::Tape::Complete collector();
  /// Takes the gradients of a leaf that have not been taken, and drops them.
  void end_leaf();
  /// Whether each trainable parameter has got a gradient from this rank's leaves.
  const std::vector<std::uint8_t>& touched() const { return touched_; }
  /// Waits for the sums, and makes them the gradients of the parameters that `touched` says, and no others: with
  /// Share::part flat ones, of the elements of this rank. Returns the Euclidean norm of all sums if it is `asked_norm`,
  /// for which the ranks must ask together. `when` is for the Error of dist::wait().
  std::optional<double> finish(const std::vector<std::uint8_t>& touched, bool asked_norm, const std::string& when);
  int tags() const;  ///< how many tags it uses

 private:
  struct Bucket {
    dist::TreeSum sum;
    Tensor leaf = {};          // of the present leaf; undefined once it is complete
    std::int64_t missing = 0;  // gradients of the present leaf
    std::int64_t places = 0;
  };
  void take(std::size_t at, const Tensor& gradient);
  void begin_leaf();

  dist::Communicator& ranks_;
  dist::Share share_;
  Buckets layout_;
  std::vector<Bucket> buckets_;
  std::unordered_map<const autograd::Slot*, std::size_t> by_leaf_;
  std::vector<std::uint8_t> taken_;
  std::vector<std::uint8_t> touched_;
};

/// The running statistics of a store's batch norms, and how many batches they are of.
std::vector<Tensor> running_statistics(const nn::ParameterStore& parameters);

/// Statistics over the leaves of all ranks: each leaf begins with those from before the update, and afterwards they are
/// the mean of what the leaves have made of them. Those that are whole numbers count the updates.
class StatisticsMean {
 public:
  static constexpr int tags = 2;  ///< from `first_tag` on
  StatisticsMean(const std::vector<Tensor>& statistics, dist::Communicator& ranks, int first_tag);
  void begin(std::int64_t leaves);
  void begin_leaf();
  void end_leaf();
  void finish(const std::string& when);

 private:
  bool any() const { return !averaged_.empty(); }

  std::vector<Tensor> averaged_;  // f32
  std::vector<Tensor> counts_;    // i64
  std::int64_t size_ = 0;
  std::int64_t leaves_ = 0;
  dist::TreeSum sum_;
  Tensor before_;
  std::vector<std::int64_t> counts_before_;
};

}  // namespace vitrail::train
