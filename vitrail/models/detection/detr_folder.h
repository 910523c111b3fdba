/// \file
/// Detectors in folders of transformers' DetrForObjectDetection.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/image_config.h"
#include "vitrail/models/base/image_model.h"
#include "vitrail/models/detection/detr.h"
#include "vitrail/tensor/dtype.h"

namespace vitrail::models {

/// How a detector's images are made: the shorter side becomes `shortest_edge`, unless the longer one would then be more
/// than `longest_edge`.
struct DetectorImages {
  std::int64_t shortest_edge = 800;
  std::int64_t longest_edge = 1333;
  std::vector<float> mean = {0.485F, 0.456F, 0.406F};  ///< of each channel, of samples in 0 … 1
  std::vector<float> std = {0.229F, 0.224F, 0.225F};
};

/// What becomes of the classifier of a folder's queries where other labels than its own are asked for.
enum class Classifier {
  kept,      ///< the labels are the folder's
  by_names,  ///< the folder has them all, in another order or among others: it takes their rows
  renewed    ///< it begins anew
};

/// A detector with all that its folder says about it.
struct Detector {
  std::unique_ptr<Detr> net;
  std::vector<std::string> labels;  ///< the names of the kinds of objects, in the order of the classes
  /// Their ids in the files of COCO that it learned from; empty if its folder does not say. transformers numbers the
  /// classes by these ids.
  std::vector<std::int64_t> category_ids;
  DetectorImages images;
  std::string config = "{}";                 ///< config.json as text, also with fields that are of no use here
  Classifier classifier = Classifier::kept;  ///< what became of that of the folder
  /// Whether the folder asks for transformers' "auxiliary_loss", and does not get it since it is to learn.
  bool drops_auxiliary_loss = false;
};

/// Whether `folder` has a config.json whose "model_type" is "detr".
bool is_detector_folder(const std::filesystem::path& folder);

/// The id of class `label` in COCO's files: that of `category_ids`, or else its number, as in transformers.
std::int64_t category_id_of(const Detector& detector, std::int64_t label);

/// What a caller may ask of a detector.
struct DetectorOptions {
  /// Other kinds of objects than the folder's: Detector::classifier says what that means.
  std::vector<std::string> labels = {};
  /// Whether it is to learn: then its decoder is that of facebookresearch/detr, whatever "auxiliary_loss" says.
  bool learns = false;
  std::uint64_t seed = 0;
  nn::Fill fill = nn::Fill::initialize;
};
/// Loads the folder that save_pretrained() of transformers' DetrForObjectDetection wrote: config.json, weights and, if
/// it is there, preprocessor_config.json. Its backbone is one of timm's ResNets ("timm_backbone"). Throws Error if the
/// folder cannot be read, or if its files do not fit each other.
Detector load_detector(const std::filesystem::path& folder, const DetectorOptions& options = {});

/// Creates a detector with a name, with weights as training begins with: "detr_resnet50" (or 18, 34, 101),
/// "detr_resnet50_dc5", or "detr_scenes", a small one for images of 64 x 64 pixels. `kwargs` are fields of
/// transformers' config.json that differ, a JSON object; its "backbone_kwargs" has timm's arguments of the ResNet.
/// Throws Error, which lists the names, if there is none such.
Detector create_detector(const std::string& name, const DetectorOptions& options, const std::string& kwargs = "{}");
/// The names that create_detector() knows.
std::vector<std::string> detector_names();
bool is_detector_name(const std::string& name);

/// Puts the weights of an image model, a ResNet with the backbone's arguments, into the backbone; its classifier is
/// left. Throws Error if they do not fit.
void take_backbone(const Detector& detector, const Model& given);

/// Writes the files that load_detector() and transformers' from_pretrained() read into `folder`, which exists, weights
/// in `dtype`: f32 or bf16.
void write_detector(const Detector& detector, const std::filesystem::path& folder, DType dtype = DType::f32);

}  // namespace vitrail::models
