/// \file
/// Model folders in the layout of Hugging Face's transformers: config.json with a "model_type",
/// preprocessor_config.json, and model.safetensors with transformers' own names. The readers and writers of all
/// families share this file; each family declares which kinds it reads and writes (base/family.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/models/formats/name_map.h"
#include "vitrail/models/formats/weights.h"

namespace vitrail::models {

/// The range of sizes and counts that are at least 1.
inline constexpr io::Range positive{1, largest_size};

/// The range of numbers of layers.
inline constexpr io::Range most_layers{1, 4096};

/// timm's name of the activation that the field `key` names. Throws Error if there is none.
std::string timm_activation(io::Fields& f, const std::string& key = "hidden_act", const std::string& fallback = "gelu");
/// transformers' name of an activation. Throws Error if it has none.
std::string hub_activation(ops::Activation activation);
/// A size as JSON: one number for a square, else [rows, columns].
nlohmann::json side(const nn::Size2& size);
/// The double whose shortest decimal text is that of the float.
double shortest(float value);
/// timm's norm_layer for a LayerNorm with this epsilon: null for timm's own, 1e-6.
nlohmann::json norm_argument(float eps);

/// The object of config.json that is vitrail's own, in either layout; timm and transformers ignore it.
inline constexpr const char* own_object = "vitrail";

/// Collects the arguments of a folder that override those of an architecture: of the one that save_model() named in the
/// config's own_object, else of `nearest`. Those that are equal to the architecture's own, or to timm's default where
/// it has none, are left out.
class Arguments {
 public:
  /// Throws Error if the config names an architecture of another family than that of `nearest`.
  Arguments(io::Fields& f, FolderConfig& folder, const std::string& nearest);
  void set(const std::string& key, const nlohmann::json& value, const nlohmann::json& default_value);

 private:
  FolderConfig& folder_;
  nlohmann::json own_;
};

/// The "model_type"s of transformers' image models that some family reads.
std::vector<std::string> hub_image_types();

/// The names of a classifier's classes by "id2label": {"0": "cat", …}. Without it, there are "num_labels" classes,
/// which transformers names LABEL_0 …; if the config says nothing at all, it assumes two.
std::vector<std::string> read_class_names(io::Fields& f);
/// Whether the names say more than their numbers.
bool are_named(const std::vector<std::string>& classes);

/// Returns whether the checkpoint is that of a classifier, and if so reads its classes; a bare model has none. Throws
/// Error if `architectures` names a class of neither list.
bool read_classes(io::Fields& f, FolderConfig& folder, const std::vector<std::string>& classifiers,
                  const std::vector<std::string>& bare);
/// Takes the image preparation of the default tag of the folder's architecture; the labels of the folder stay.
void take_pretrained(FolderConfig& folder);

/// What transformers calls a model, and its config.json without the classes. Family::hub_form() makes it.
struct HubForm {
  std::string model_type;
  std::string architecture;
  std::span<const NameRule> names;
  std::string prefix;
  nlohmann::ordered_json config;
  /// What transformers' class has for its training alone, and is written as zeros.
  std::vector<std::pair<std::string, Shape>> zeros = {};
};

/// That of a model. Throws Error that says why transformers has no such model.
HubForm hub_form_of(const Model& model);

/// Whether a config.json is in this layout: it then has a "model_type".
bool is_hub_config(const nlohmann::json& config);
/// The "model_type" of a config.json in this layout; errors name `source`.
std::string hub_model_type(const nlohmann::json& config, const std::string& source);
/// Reads the folder's config.json (`config`, which is of the given kind) and its preprocessor_config.json.
FolderConfig read_hub_folder(const nlohmann::json& config, const std::filesystem::path& folder, const HubKind& kind);

/// The same of the kind that its "model_type" names. Throws Error if no family reads it.
FolderConfig read_hub_folder(const nlohmann::json& config, const std::filesystem::path& folder);

/// The files of a folder that transformers' from_pretrained() reads.
struct HubFiles {
  nlohmann::ordered_json config;
  nlohmann::ordered_json preprocessor;
  io::NamedTensors tensors;
};
/// The files of a model whose form is `form`.
HubFiles hub_files(const Model& model, const HubForm& form);
/// Writes the files and replaces what is in `folder`.
void write_hub_files(const HubFiles& files, const std::filesystem::path& folder);

}  // namespace vitrail::models
