// Nearest neighbours among features: how good they are without training anything.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/train/features.h"

namespace vitrail::train {

struct KnnOptions {
  std::vector<std::int64_t> k = {20};
  double temperature = 0.07;  // T
};

// For one k. The k training pictures of the largest cosine similarity s to a test picture (of equals the earlier ones)
// vote for their classes. Per cent; of classes with equal votes the smaller number goes first, and one without any vote
// is not among five.
struct KnnResult {
  std::int64_t k = 0;
  double top1 = 0;  // votes weigh exp(s / T) (Wu et al. 2018; DINO: Caron et al. 2021)
  double top5 = 0;
  double majority_top1 = 0;               // all votes weigh the same
  std::vector<std::int64_t> predictions;  // [N] of the test pictures, by weighted votes
  std::vector<std::int64_t> majorities;   // [N] by the others
};

// A result for each k. Error if k is more than the training pictures, if a picture has no label, or if the two have
// features of different widths, or other classes.
std::vector<KnnResult> knn(const Features& training, const Features& test, const KnnOptions& options = {});

}  // namespace vitrail::train
