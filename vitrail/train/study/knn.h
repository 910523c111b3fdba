/// \file
/// Classification by the nearest neighbours among features, which judges features without any training.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/train/study/features.h"

namespace vitrail::train {

/// Options of knn().
struct KnnOptions {
  std::vector<std::int64_t> k = {20};
  double temperature = 0.07;  ///< T of the weighted votes
};

/// The result for one k. The k training images with the largest cosine similarity s to a test image (of equal ones the
/// earlier) vote for their classes. Accuracies are in per cent. Of classes with equal votes the one with the smaller
/// number comes first, and a class without any vote is not among the top five.
struct KnnResult {
  std::int64_t k = 0;
  double top1 = 0;           ///< by votes weighted with exp(s / T) (Wu et al. 2018; DINO: Caron et al. 2021)
  double top5 = 0;           ///< by weighted votes
  double majority_top1 = 0;  ///< by votes of equal weight
  std::vector<std::int64_t> predictions;  ///< [N], the classes of the test images by weighted votes
  std::vector<std::int64_t> majorities;   ///< [N], the classes by votes of equal weight
};

/// Classifies the test images for each k. Throws Error if a k exceeds the number of training images, if an image has no
/// label, or if the two sets have features of different widths, or different classes.
std::vector<KnnResult> knn(const Features& training, const Features& test, const KnnOptions& options = {});

}  // namespace vitrail::train
