/// \file
/// The weights of model folders in either layout.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrail/io/stored_tensors.h"
#include "vitrail/models/base/held.h"
#include "vitrail/models/base/owner.h"
#include "vitrail/models/formats/name_map.h"

namespace vitrail::models {

inline constexpr const char* config_file = "config.json";
/// How a model generates: transformers' GenerationConfig.
inline constexpr const char* generation_file = "generation_config.json";
inline constexpr const char* weights_file = "model.safetensors";  ///< as it is written

/// Reads the config.json of a model folder. Throws Error if there is no such folder, or none of a model.
nlohmann::json read_config(const std::filesystem::path& folder);

/// The "model_type" of a folder's config.json; "" if there is no such file, or it has none.
std::string model_type_in(const std::filesystem::path& folder);

/// What a folder says about its checkpoint, in timm's terms.
struct FolderConfig {
  std::string architecture;
  std::optional<std::int64_t> num_classes;
  nlohmann::json model_args = nlohmann::json::object();
  bool fixed_input_size = true;
  std::vector<std::int64_t> input_size;  ///< channels, height, width; empty if the config does not say it
  PretrainedConfig pretrained;
  /// The names of the tensors in the file, if they are not timm's, and the prefix that bare models leave out.
  std::span<const NameRule> names = {};
  std::string prefix;

  /// The arguments that the checkpoint was created with, which override those of the architecture.
  nlohmann::json arguments() const;
};

/// The map of names for this file: it has the prefix if names in the file begin with it, and the name that the file has
/// for the decoder's stack.
NameMap names_in(const io::StoredTensors& file, std::span<const NameRule> rules, const std::string& prefix);

/// The file with the weights of a folder, or the index of several: the first that is there of model.safetensors,
/// model.safetensors.index.json, pytorch_model.bin and pytorch_model.bin.index.json, in transformers' order; empty if
/// there is none.
std::filesystem::path weights_in(const std::filesystem::path& folder);

/// Opens the weights of a folder. Throws Error that says what is there instead.
io::StoredTensors open_weights(const std::filesystem::path& folder);

/// In what a model is asked to differ from its checkpoint.
struct Changes {
  bool classifier = false;  ///< it has another number of classes: its classifier is initialized anew
  bool pooling = false;     ///< the final norm may be on the other side of the pooling: norm and fc_norm are equivalent
};

/// The destination of weights: the parameters of a model in `parameters` (all of them or, if the model is a part of
/// another one, those below `prefix`, such as "vision_model."), and functions of the model, which take the names within
/// it.
struct WeightsTarget {
  const nn::ParameterStore& parameters;
  std::string prefix;
  std::function<bool(const std::string& name)> is_head;
  /// Makes a value fit that was made for images of another size; empty: none is changed.
  std::function<Tensor(const std::string& name, const Tensor& value, const Shape& wanted, const nn::Size2& source)>
      adapt;
};
/// The target for `model`, which is an ImageModel or a body (owner.h) that was constructed at the scope `prefix` of the
/// store. The model must outlive the target.
template <class Body>
WeightsTarget weights_of(const Body& model, const nn::ParameterStore& parameters, const std::string& prefix = "") {
  return {.parameters = parameters,
          .prefix = prefix.empty() ? "" : prefix + ".",
          .is_head = [&model](const std::string& name) { return model.is_head(name); },
          .adapt = [&model](const std::string& name, const Tensor& value, const Shape& wanted,
                            const nn::Size2& source) { return adapted(model, name, value, wanted, source); }};
}

/// The target for all parameters of a network, none of which is changed to fit or made anew.
inline WeightsTarget whole_network(const nn::ParameterStore& parameters) {
  return {.parameters = parameters, .prefix = "", .is_head = [](const std::string&) { return false; }, .adapt = {}};
}

/// Copies the file's tensors into the parameters of `target`. If a tensor is missing, unknown or of another shape, no
/// parameter changes, and an Error lists the problems. `names` maps the names to those in the file; `source_size` is
/// the image size that the tensors were made for. Tensors are read and converted one after the other, so that the model
/// is never there twice.
void load_weights(const WeightsTarget& target, const io::StoredTensors& file, const NameMap& names,
                  const nn::Size2& source_size, const Changes& changes = {});

/// The parameters and buffers below `prefix` ("vision_model."), by their names within it: save_safetensors() takes
/// them, and load_weights() reads them.
io::NamedTensors named_tensors(const nn::ParameterStore& parameters, const std::string& prefix = "");

/// The weights that a file holds in int8, by its own names.
HeldWeights quantized_weights(const io::StoredTensors& file);

}  // namespace vitrail::models
