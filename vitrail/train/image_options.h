/// \file
/// The options of tasks on images: data, model, preparation and augmentation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/image_config.h"
#include "vitrail/data/loader.h"
#include "vitrail/data/transforms.h"
#include "vitrail/models/model.h"
#include "vitrail/train/task.h"

namespace vitrail::train {

/// The part that is evaluated on unless another one is asked for.
inline constexpr const char* usual_val_split = "validation";
/// The share of the training images that is held out where there is no such part.
inline constexpr double usual_held_share = 0.1;

/// The options that all tasks on images have.
struct ImageTaskOptions : TaskOptions {
  // Data
  std::string data_dir;
  std::string train_split = "train";
  std::string val_split = usual_val_split;
  std::string val_dir;
  /// Of what there is to learn from, to evaluate on. Tasks differ in what they do if it is unset.
  std::optional<double> val_share = std::nullopt;
  bool no_shuffle = false;
  std::int64_t shuffle_block = 0;
  bool skip_broken = false;

  // Model
  std::string model = "vit_tiny_patch16_224";
  std::optional<std::int64_t> img_size;
  std::vector<std::int64_t> input_size;
  std::optional<std::int64_t> in_chans;
  std::string model_kwargs = "{}";  ///< timm's --model-kwargs as a JSON object

  data::ImageOverrides images;  ///< how images are prepared, where it differs from the model's own way

  // Augmentation
  data::AugmentOptions augment;
  bool resplit = false;
  double aug_repeats = 0;

  void validate() const override;
};

/// Each of these functions adds the options of one group, or of a part of it, to a list.
void add_data_options(OptionList& list, ImageTaskOptions& options);
/// Adds --val-share, for tasks that hold images out (run/held_out.h).
void add_val_share_option(OptionList& list, ImageTaskOptions& options);
/// Adds those of the options of data that say in which order images are learnt from.
void add_order_options(OptionList& list, ImageTaskOptions& options);
void add_model_options(OptionList& list, ImageTaskOptions& options);  ///< these belong to the group of the model
void add_preparation_options(OptionList& list, data::ImageOverrides& options);
/// The augmentation of a single image.
void add_augment_options(OptionList& list, data::AugmentOptions& options);
/// What tasks on images have between their model and what is theirs alone: preparation of images, batches of `units`,
/// optimizer, schedule, and augmentation of a single image.
void add_fitting_options(OptionList& list, ImageTaskOptions& options, const std::string& units = "images");
/// The augmentation of the images of a batch.
void add_batch_augment_options(OptionList& list, ImageTaskOptions& options);
/// idle_without_evaluation() (run_options.h) where the images to evaluate on are named by add_data_options().
void idle_without_images(OptionList& list, const ImageTaskOptions& options);

/// The options of a new model: --model-kwargs, and the flags for single arguments (--img-size, --in-chans …).
models::CreateOptions create_options(const ImageTaskOptions& options);
/// The options of a loader of training images.
data::LoaderOptions training_loading(const ImageTaskOptions& options);
/// Takes the next batch of images for Task::next().
std::optional<Drawn> draw_images(data::Loader& loader, data::Batch& batch);

/// The part of --val-dir, which has these parts, to evaluate on: the one that --val-split names, if there are several,
/// or if it is not the usual one; empty: all of it.
std::string part_of_val_dir(const ImageTaskOptions& options, const data::Parts& parts);
/// The same where it is not known what of the folder is wanted: images, boxes, captions or questions.
std::string part_of_val_dir(const ImageTaskOptions& options);
/// Calls `open`, which opens a part of --data-dir to evaluate on; an Error gets the flags by which there would be
/// another one, or none.
void with_other_ways(const ImageTaskOptions& options, const std::function<void()>& open);

/// Throws Error unless data have the classes of the run that goes on with them, in any order.
void check_same_classes(const std::vector<std::string>& run, const std::vector<std::string>& data);

/// A line about a model: "vit_tiny_patch16_224, 5.72 M parameters, 224x224 pixels", and which of these it leaves out.
std::string model_summary(const models::Model& model);
/// What config.toml states about a model and its data: names and values.
std::vector<std::pair<std::string, std::string>> image_facts(const models::Model& model, const data::Dataset& training,
                                                             const data::Dataset* validation);
/// A line that says so if images to evaluate on are images to train on; otherwise nothing.
std::vector<std::string> notes_of_parts(const ImageTaskOptions& options);
/// Lines about the data: "54 training and 18 validation images", what of them is not used, and that a share was held
/// out, if one was.
std::vector<std::string> data_summary(const ImageTaskOptions& options, const data::Dataset& training,
                                      const data::Dataset* validation, double held_out = 0);

}  // namespace vitrail::train
