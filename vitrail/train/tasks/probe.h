/// \file
/// The head of a model over features that are computed once, for --linear-probe without augmentation.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "vitrail/data/loader.h"
#include "vitrail/train/study/features.h"

namespace vitrail::train {

/// Trains and evaluates the head of a model on features that are computed once.
class Probe {
 public:
  /// A probe of `model`, which must outlive it. Null if the head is more than one linear map of the features: the model
  /// must then be run as a whole.
  static std::unique_ptr<Probe> make(const models::Model& model);

  /// Computes the features of all images, in their order, before the first epoch or evaluation. If `validation` is
  /// null, evaluate() cannot be called. `advance` is called with the number of images done, over both data sets.
  void compute(const data::Dataset& training, const data::Transform& transform, const data::Dataset* validation,
               const EvaluateOptions& options, const std::function<void(std::int64_t done)>& advance);

  /// A loader of features [B, D] in place of images.
  std::unique_ptr<data::Loader> training_loader(const data::Dataset& training,
                                                const data::LoaderOptions& options) const;
  /// The replacement for ImageModel::forward_heads(), which maps features [B, D] to the logits of the model's head.
  Forward forward() const;
  /// evaluate() of the model on the features of the validation images.
  Evaluation evaluate(const data::Dataset& validation, const EvaluateOptions& options) const;

 private:
  struct Part {
    Features features;
    std::vector<std::int64_t> rows;  ///< for each image of the data set its row of the features; -1 if it is broken

    void compute(const models::Model& trunk, const data::Dataset& dataset, const data::Transform& transform,
                 const EvaluateOptions& options);
    data::Loader::Fill fill() const;
  };

  Probe(const models::Model& model, models::Model trunk, const Tensor& weight, const Tensor& bias);

  const models::Model& model_;
  models::Model trunk_;
  Tensor weight_;  ///< weight of the head, [C, D]
  Tensor bias_;    ///< bias of the head, [C], or undefined
  Part training_;
  Part validation_;
};

}  // namespace vitrail::train
