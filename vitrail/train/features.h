// Features of pictures: what a model makes of them before its classifier.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "vitrail/train/evaluate.h"

namespace vitrail::train {

struct Features {
  Tensor x;                           // [N, D] f32
  Tensor labels;                      // [N] i64, data::unlabeled where there is none
  std::vector<std::string> names;     // [N], of the pictures inside their source
  std::vector<std::int64_t> indices;  // [N], of the pictures in the data set
  std::vector<std::string> classes;   // [C]
  std::vector<std::string> broken;    // pictures left out, with the reasons
};

// Runs `model`, which has no classifier (models::without_head), over the whole data set in its order, prepared by
// `transform`, by default the model's evaluation transform. The batches are the same in every call, so that the bits
// are. Error for a model with a classifier, or without pooling.
Features embed(const models::Model& model, const data::Dataset& dataset, const EvaluateOptions& options = {});
Features embed(const models::Model& model, const data::Dataset& dataset, const data::Transform& transform,
               const EvaluateOptions& options);

// A safetensors file with `features` [N, D] f32, `labels` [N] i64 and, as JSON in its metadata, `names` and `classes`.
// `facts` are put beside those.
void save_features(const std::filesystem::path& path, const Features& features,
                   std::map<std::string, std::string> facts = {});
// Reads one, whoever wrote it: names and classes may be missing. Error if the tensors are not of these shapes.
Features load_features(const std::filesystem::path& path);

}  // namespace vitrail::train
