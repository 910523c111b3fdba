/// \file
/// How well attention segments images whose masks are known.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/io/image.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::explain {

/// The Jaccard indices of each head's mask [H, rows, columns] u8 (mass_mask()) and the foreground of an image, the
/// pixels of `mask` that are not black: places of the heads' masks are rectangles of the image.
std::vector<double> head_jaccards(const Tensor& masks, const io::Image& mask);

/// Means of Jaccard indices over images.
class SegmentScore {
 public:
  /// Adds an image: see head_jaccards(). Throws Error if it has another number of heads than those before.
  void add(const Tensor& masks, const io::Image& mask);

  std::int64_t images() const { return images_; }
  std::vector<double> heads() const;  ///< the mean of each head
  std::int64_t best_head() const;     ///< whose mean is the largest
  double best_of_each() const;        ///< the mean over images of the best head of each
  double everything() const;          ///< of a mask that has all of the image: what is to be beaten

 private:
  std::int64_t images_ = 0;
  std::vector<double> sums_;
  double best_ = 0;
  double everything_ = 0;
};

}  // namespace vitrail::explain
