/// \file
/// The model of an index of images, for the commands on indices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vitrail/cli/flags.h"
#include "vitrail/io/image.h"
#include "vitrail/models/base/image_model.h"
#include "vitrail/models/joint/clip_folder.h"
#include "vitrail/train/study/image_index.h"

namespace vitrail::cli {

/// What flags change of the model of an index, and of the preparation of its images, as the index keeps it ("" if
/// nothing), and back: `file`, whose index says so, is named if these are none.
std::string changes_of(const ModelFlags& flags);
void apply_changes(const std::string& changes, const std::string& file, ModelFlags& flags);

/// The model of an index: one of images and texts, whose vectors of images are in one space with those of texts, or, if
/// features are pooled otherwise, its vision tower, or any other model of images.
class IndexModel {
 public:
  IndexModel(const ModelFlags& flags, const std::string& pool);

  train::IndexEncoder encoder(const std::string& name) const;
  Tensor of_image(const io::Image& image, DType dtype) const;
  /// Throws Error if the model knows no texts.
  Tensor of_texts(const std::vector<std::string>& texts, DType dtype) const;

 private:
  std::string name_;
  std::string pool_;
  std::string folder_;
  std::optional<models::Model> trunk_;
  std::optional<models::JointModel> joint_;
};

}  // namespace vitrail::cli
