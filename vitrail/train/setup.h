// What a run is made of: data, model and precision, put together from its options.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/loader.h"
#include "vitrail/models/model.h"
#include "vitrail/train/loss.h"
#include "vitrail/train/options.h"
#include "vitrail/train/teacher.h"

namespace vitrail::train {

struct Setup {
  std::unique_ptr<data::Dataset> training;    // with those of --unlabeled-dir behind it
  std::unique_ptr<data::Dataset> validation;  // null: none
  models::Model model;
  std::unique_ptr<const Teacher> teacher;  // null: none
  Objective objective;                     // none: to tell classes apart
  DType dtype = DType::f32;                // of activations and products
  std::vector<std::string> messages;       // what the person should know
};

// Opens the data and makes the model: new by its name, from a folder, or, if `checkpoint` is given, the one saved
// there. Error if the data are missing or of a single class, if fewer pictures than a batch are there, or if the model
// does not fit them.
Setup set_up(const TrainOptions& options, const std::filesystem::path& checkpoint = {});

// What `options` say about the pictures' preparation, the parameters that are trained, and the precision.
void finish_setup(const TrainOptions& options, Setup& setup);
// --model-kwargs and the flags that say the same in other words (--img-size, --in-chans …), for a new model.
models::CreateOptions create_options(const TrainOptions& options);

// What happens to training pictures, and how they are gone through, as the options describe it.
data::AugmentOptions augment_options(const TrainOptions& options);
data::Transform training_transform(const TrainOptions& options, const Setup& setup);
data::LoaderOptions training_loading(const TrainOptions& options, const Setup& setup);
// Training batches of both.
std::unique_ptr<data::Loader> training_loader(const TrainOptions& options, const Setup& setup);

}  // namespace vitrail::train
