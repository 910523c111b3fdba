/// \file
/// Features of images: the output of a model without its classifier.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vitrail/train/study/evaluate.h"

namespace vitrail::train {

/// The features of N images.
struct Features {
  Tensor x;                           ///< [N, D] f32
  Tensor labels;                      ///< [N] i64, data::unlabeled for images without a label
  std::vector<std::string> names;     ///< [N], of the images inside their source
  std::vector<std::int64_t> indices;  ///< [N], of the images in the data set
  std::vector<std::string> classes;   ///< [C], names of the classes
  std::vector<std::string> broken;    ///< images left out, with the reasons
  std::string part;                   ///< of the data set, "train"; empty where a file does not say it
  std::map<std::string, std::string>
      facts;  ///< what a file says of how they were made: "weights", "pool", "crop_pct" …
};

/// Runs `model`, which has no classifier (models::without_head), over the whole data set in its order, prepared by the
/// model's evaluation transform. The batches, and so the bits of the features, are the same in every call. Throws Error
/// if the model has a classifier, or no pooling.
Features embed(const models::Model& model, const data::Dataset& dataset, const EvaluateOptions& options = {});
/// embed() with images that are prepared by `transform`.
Features embed(const models::Model& model, const data::Dataset& dataset, const data::Transform& transform,
               const EvaluateOptions& options);

/// Maps the x [B, C, H, W] of a batch to features [B, D]: the model's own output, or another one (layer_features.h).
using FeatureFunction = std::function<Tensor(const Tensor& x, nn::Pass& pass)>;
/// The features that `function` makes of the images of a loader, which are those of the data set. Of several ranks each
/// takes a part of the batches.
Features embed_batches(data::Loader& loader, const data::Dataset& dataset, const FeatureFunction& function,
                       const EvaluateOptions& options);
/// embed() with features that `function` makes, of a model that may have a classifier.
Features embed(const models::Model& model, const data::Dataset& dataset, const FeatureFunction& function,
               const EvaluateOptions& options);

/// The number of classes of two sets of features of which one judges the other. Throws Error if they have different
/// widths or different classes, if they say that they are of different models, layers or poolings, if an image has no
/// label, or if a feature is not finite.
std::int64_t classes_of(const Features& training, const Features& test);
/// In what else two sets of features say that they were made differently, a sentence each.
std::vector<std::string> differences(const Features& training, const Features& test);

/// Writes a safetensors file with `features` [N, D] in the dtype that they have, f32 or bf16, `labels` [N] i64 and, as
/// JSON in its metadata, `names` and `classes`. `facts` are further metadata.
void save_features(const std::filesystem::path& path, const Features& features,
                   std::map<std::string, std::string> facts = {});
/// Reads a file such as save_features() writes, bf16 as f32; names and classes may be missing, as it may be of another
/// origin.
/// Throws Error if the tensors are not of these shapes and dtypes.
Features load_features(const std::filesystem::path& path);

}  // namespace vitrail::train
