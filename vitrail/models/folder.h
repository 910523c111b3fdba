// What the readers of model folders share, whichever layout a folder is in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrail/io/safetensors.h"
#include "vitrail/models/model.h"
#include "vitrail/models/name_map.h"

namespace vitrail::models {

inline constexpr const char* config_file = "config.json";
inline constexpr const char* weights_file = "model.safetensors";

// What a folder says about its checkpoint, in timm's words.
struct FolderConfig {
  std::string architecture;
  std::optional<std::int64_t> num_classes;
  nlohmann::json model_args = nlohmann::json::object();
  bool fixed_input_size = true;
  std::vector<std::int64_t> input_size;  // channels, height, width; empty if not said
  PretrainedConfig pretrained;
  // What the file calls the tensors, where it has names of its own, and the beginning that bare models leave out.
  std::span<const NameRule> names = {};
  std::string prefix;
};

// The names in such a file.
NameMap names_in(const io::Safetensors& file, std::span<const NameRule> rules, const std::string& prefix);

// model.safetensors of a folder. Error that says what is there instead.
io::Safetensors open_weights(const std::filesystem::path& folder);

// What a model was asked to have other than its checkpoint.
struct Changes {
  bool classifier = false;  // another number of classes: the classifier starts afresh
  bool pooling = false;     // the final norm may stand on the other side of the pooling: norm and fc_norm are one
};

// Copies the file's tensors into the model's parameters: all of them, or, if one is missing, unknown or of another
// shape, none, and an Error lists what stands between them. `names` says what the file calls them, `source_size` which
// picture size they were made for.
void load_weights(ImageModel& net, const io::Safetensors& file, const NameMap& names, const nn::Size2& source_size,
                  const Changes& changes = {});

}  // namespace vitrail::models
