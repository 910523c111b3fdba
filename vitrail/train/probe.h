// The head of a model over features that are computed once: --linear-probe where the pictures stay as they are.
#pragma once

#include <memory>
#include <vector>

#include "vitrail/data/loader.h"
#include "vitrail/train/features.h"
#include "vitrail/train/options.h"
#include "vitrail/train/setup.h"

namespace vitrail::train {

class Probe {
 public:
  // Null unless these options train nothing but the head, on pictures and through a model that leave nothing to chance,
  // and the head is one linear map of the features: the model must then be run as a whole. `setup` must outlive it.
  static std::unique_ptr<Probe> make(const TrainOptions& options, const Setup& setup);

  // Computes the features of all pictures, before the first epoch or evaluation.
  void compute(const TrainOptions& options, const EvaluateOptions& evaluation);

  // In place of training_loader(): the same batches, of features [B, D].
  std::unique_ptr<data::Loader> training_loader(const TrainOptions& options) const;
  // In place of ImageModel::forward_heads(): features [B, D] → the logits of the model's head.
  Forward forward() const;
  Evaluation evaluate(const EvaluateOptions& options) const;

 private:
  struct Part {
    Features features;
    std::vector<std::int64_t> rows;  // of the data set's pictures among the features; -1 for broken ones

    void compute(const models::Model& trunk, const data::Dataset& dataset, const data::Transform& transform,
                 const EvaluateOptions& options);
    data::Loader::Make make() const;
  };

  Probe(const Setup& setup, models::Model trunk, const Tensor& weight, const Tensor& bias);

  const Setup& setup_;
  models::Model trunk_;
  Tensor weight_;  // the head's [C, D]
  Tensor bias_;    // [C], or undefined
  Part training_;
  Part validation_;
};

}  // namespace vitrail::train
