/// \file
/// Linear classifiers on features, which judge features by little training.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "vitrail/train/study/features.h"

namespace vitrail::train {

/// Options of train_linear_classifiers(), by the names and with the values of DINO's eval_linear.py.
struct LinearClassifierOptions {
  std::vector<double> lr = {
      0.001};  ///< for a batch of 256, from which it goes to 0 by half a cosine; one classifier each
  std::int64_t epochs = 100;
  std::int64_t batch_size = 128;
  bool shuffle = true;  ///< an order of its own for every epoch
  std::uint64_t seed = 0;
  Tensor first_weight = {};  ///< [C, D] to begin with; undefined: drawn by the seed
  Tensor first_bias = {};    ///< [C]
  std::function<void(std::int64_t done, std::int64_t total)> progress;  ///< called after each epoch
};

/// What became of one learning rate.
struct LinearClassifierResult {
  double lr = 0;
  double train_loss = 0;        ///< mean over the last epoch
  Accuracy test;                ///< after the last epoch
  double best_top1 = 0;         ///< of all epochs, as the reference reports it
  std::int64_t best_epoch = 0;  ///< the one with that accuracy, from 1
  Tensor weight;                ///< [C, D]
  Tensor bias;                  ///< [C]
};

/// Trains a linear classifier for each learning rate, all of them on the same batches, as DINO's eval_linear.py does
/// (Caron et al. 2021): SGD with a momentum of 0.9 and no weight decay, lr · batch_size / 256 times (1 + cos(π epoch /
/// epochs)) / 2; weights begin as N(0, 0.01²), biases as 0. Throws Error as classes_of() does.
std::vector<LinearClassifierResult> train_linear_classifiers(const Features& training, const Features& test,
                                                             const LinearClassifierOptions& options = {});

}  // namespace vitrail::train
