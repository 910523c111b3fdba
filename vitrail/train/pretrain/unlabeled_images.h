/// \file
/// The images of tasks that learn from one image at a time, whatever its class.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "vitrail/data/loader.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"
#include "vitrail/train/image_options.h"

namespace vitrail::train {

/// A part of the images of a source, without labels; of a folder in Pascal VOC's layout those that its list names.
std::shared_ptr<const data::Dataset> open_without_labels(const ImageTaskOptions& how, const std::string& source,
                                                         const std::string& split);

/// The images that a task learns from, and those that it is measured on: null if the options name none.
struct UnlabeledImages {
  explicit UnlabeledImages(const ImageTaskOptions& options);

  std::shared_ptr<const data::Dataset> training;
  std::shared_ptr<const data::Dataset> validation;
};

/// Inputs [1, C, H, W] of `count` images, as `transform` makes them, that are spread over a data set, whose images lie
/// in order. Images that cannot be read are passed over with `skip_broken`; otherwise they throw Error.
std::vector<Tensor> inputs_to_draw(const data::Dataset& dataset, const data::Transform& transform, std::int64_t count,
                                   bool skip_broken);

/// The mean over the validation images, prepared by `transform`, of the loss [] of their batches.
double mean_loss(const UnlabeledImages& images, const data::Transform& transform, const ImageTaskOptions& options,
                 const Work& work, const std::function<Tensor(const data::Batch& batch, nn::Pass& pass)>& loss);

}  // namespace vitrail::train
