/// \file
/// What a family of models declares: one constant for each family, in its own files.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "vitrail/models/base/owner.h"

namespace vitrail::io {
class Fields;
}

namespace vitrail::models {

struct FolderConfig;  // models/formats/weights.h
struct HubForm;       // models/formats/huggingface.h

/// A kind of checkpoint of Hugging Face's transformers, identified by the "model_type" of its config.json.
struct HubKind {
  std::string_view model_type;
  /// Reads the architecture and its arguments from the config, and sets the names of the tensors.
  void (*read)(io::Fields& config, FolderConfig& folder);
};

/// Which arguments timm takes for an architecture, beside its name.
enum class TimmTakes {
  all,           ///< all that its constructor has
  not_of_table,  ///< those alone that the table does not name: it refuses other values of these
  of_images,     ///< those alone of images, classes and dropout: the rest is in a config that no argument changes
};

/// One family of models.
struct Family {
  std::string_view name;
  /// The text of a table of architectures, for example that of vit_registry.cpp; families may share one. Its lines are
  ///
  /// ```text
  /// NAME (FAMILY) argument=value …
  ///   tag tag …: setting=value …
  /// ```
  ///
  /// A family without a table has no architecture names and no timm layout: its folders are in transformers' layout
  /// only.
  std::string_view (*table)() = nullptr;
  /// Creates a model from timm's arguments; errors about these name `source`. Null for a family without a table.
  std::unique_ptr<ImageModel> (*build)(const nlohmann::json& arguments, const std::string& source,
                                       const nn::StoreOptions& store) = nullptr;
  /// The layer that takes the channels of the image, for timm's pretrained_cfg. If there are several names, the first
  /// of them that the model has counts.
  std::string_view first_conv = {};
  /// Whether timm's constructor takes img_size, which makes it one of the arguments that a folder keeps. Other families
  /// get img_size too, as the size of the images that the model is intended for.
  bool sized = true;
  /// The name of the argument that puts the final norm behind the pooling; empty if there is none.
  std::string_view fc_norm = {};
  /// The names of the arguments that timm's constructor does not take.
  std::string_view beyond_timm = {};
  TimmTakes timm_takes = TimmTakes::all;

  /// The kinds of transformers' checkpoints that are read as models of this family.
  std::span<const HubKind> hub_kinds = {};
  /// Says what transformers calls a model of this family; throws Error that says why transformers has no such model.
  /// Null if it has none for the whole family.
  HubForm (*hub_form)(const ImageModel& net) = nullptr;
};

/// All families; the list is in models/families.cpp.
std::span<const Family* const> families();

/// Family::build for a Body whose config `read` makes from the arguments.
template <class Body, auto read>
std::unique_ptr<ImageModel> build(const nlohmann::json& arguments, const std::string& source,
                                  const nn::StoreOptions& store) {
  return std::make_unique<Owner<Body>>(read(arguments, source), store);
}

}  // namespace vitrail::models
