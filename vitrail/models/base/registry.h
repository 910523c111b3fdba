/// \file
/// The registry of the architectures of all families by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "vitrail/models/base/family.h"

namespace vitrail::models {

/// One registered architecture.
struct Architecture {
  std::string name;
  std::string family;  ///< name of its family: "vit"
};
/// All architectures, sorted by name.
const std::vector<Architecture>& architectures();

/// A tag of an architecture, which names a checkpoint, and how images are prepared for it.
struct Tag {
  std::string name;
  std::string settings;  ///< "size=384 crop_pct=1 normalization=imagenet num_classes=0"
};

/// What the registry knows about an architecture.
struct ArchitectureEntry {
  std::string name;
  const Family* family = nullptr;
  std::string arguments;  ///< "patch_size=16 embed_dim=192 …"
  std::vector<Tag> tags;  ///< the first is the default; there is at least one
};

/// Finds the architecture of "NAME" or "NAME.TAG". Throws Error if there is no such architecture or tag; it lists
/// similar names or says where to find them.
const ArchitectureEntry& find_architecture(std::string_view name);
/// The image preparation of a tag; an empty `tag` is the default one.
PretrainedConfig pretrained_of(const ArchitectureEntry& entry, std::string_view tag);
/// The default arguments of the architecture as timm passes them: those of its table, and num_classes and img_size of
/// the tag.
nlohmann::json default_arguments(const ArchitectureEntry& entry, std::string_view tag);

/// Whether an argument is a rate of dropout or drop path ("attn_drop_rate", "drop_path_rate").
bool is_drop_rate(std::string_view argument);
/// The arguments that are such rates.
nlohmann::json drop_rates_in(const nlohmann::json& arguments);
/// Takes the rates of dropout and drop path among the arguments of a model's folder into its `model_args`.
void keep_drop_rates(Model& model, const nlohmann::json& arguments);

/// Creates a model of `architecture` from its default arguments, overridden by `arguments`; errors about these name
/// `source`. Its pretrained config is that of the tag, with the image size and the channels of the arguments. Its
/// `model_args` have no rates of dropout or drop path, which options are, unless keep_drop_rates() adds them.
Model build_model(const std::string& architecture, const nlohmann::json& arguments, const std::string& source,
                  const nn::StoreOptions& store);
/// The arguments that `options` asks for: model_kwargs, num_classes and drop rates.
nlohmann::json option_arguments(const CreateOptions& options);
/// Creates a model by name, with the given options.
Model build_model(const std::string& architecture, const CreateOptions& options);

}  // namespace vitrail::models
