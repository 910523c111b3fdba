// What a model family brings to the registry. A new family is one file of its own and one line in families().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "vitrail/models/model.h"

namespace vitrail::models {

struct Family {
  std::string_view name;
  // The architectures in a table of text, as vit_registry.cpp has it:
  //   NAME (FAMILY) argument=value …
  //     tag tag …: setting=value …
  std::string_view (*table)();
  // A model from timm's arguments; `source` is named in errors about them.
  std::unique_ptr<ImageModel> (*build)(const nlohmann::json& arguments, const std::string& source,
                                       const nn::StoreOptions& store);
  // The layer that sees the picture's channels, for timm's pretrained_cfg; the first that a model has of several names.
  std::string_view first_conv;
  // Whether timm's constructor takes img_size: it is then one of the arguments that a folder keeps. Other families get
  // it too, as the size of the pictures that the model is meant for.
  bool sized = true;
};

const std::vector<Family>& families();

// A checkpoint tag of an architecture, with how its pictures are prepared.
struct Tag {
  std::string name;
  std::string settings;  // "size=384 crop_pct=1 normalization=imagenet num_classes=0"
};

struct ArchitectureEntry {
  std::string name;
  const Family* family = nullptr;
  std::string arguments;  // "patch_size=16 embed_dim=192 …"
  std::vector<Tag> tags;  // the first is the default; there is at least one
};

// "NAME" or "NAME.TAG". Error with near names, or where to find them, if there is no such architecture, or tag.
const ArchitectureEntry& find_architecture(std::string_view name);
// The settings of a tag ("": of the default one).
PretrainedConfig pretrained_of(const ArchitectureEntry& entry, std::string_view tag);
// The architecture's own arguments as timm passes them: those of its table, num_classes and img_size of the tag.
nlohmann::json default_arguments(const ArchitectureEntry& entry, std::string_view tag);

// Builds a model of `architecture` from its own arguments and `arguments` over them. Its pretrained config is that of
// the tag, with the picture size and channels that the arguments say.
Model build_model(const std::string& architecture, const nlohmann::json& arguments, const std::string& source,
                  const nn::StoreOptions& store);
// Arguments that `options` asks for: model_kwargs, num_classes, drop rates.
nlohmann::json option_arguments(const CreateOptions& options);

// The tables and builders of the families.
std::string_view vit_table();
std::unique_ptr<ImageModel> build_vit(const nlohmann::json& arguments, const std::string& source,
                                      const nn::StoreOptions& store);
std::unique_ptr<ImageModel> build_vit_distilled(const nlohmann::json& arguments, const std::string& source,
                                                const nn::StoreOptions& store);
std::string_view vit_hybrid_table();
std::unique_ptr<ImageModel> build_vit_hybrid(const nlohmann::json& arguments, const std::string& source,
                                             const nn::StoreOptions& store);
std::unique_ptr<ImageModel> build_vit_relpos(const nlohmann::json& arguments, const std::string& source,
                                             const nn::StoreOptions& store);
std::string_view mlp_mixer_table();
std::unique_ptr<ImageModel> build_mlp_mixer(const nlohmann::json& arguments, const std::string& source,
                                            const nn::StoreOptions& store);
std::string_view eva_table();
std::unique_ptr<ImageModel> build_eva(const nlohmann::json& arguments, const std::string& source,
                                      const nn::StoreOptions& store);
std::string_view beit_table();
std::unique_ptr<ImageModel> build_beit(const nlohmann::json& arguments, const std::string& source,
                                       const nn::StoreOptions& store);
std::string_view swin_table();
std::unique_ptr<ImageModel> build_swin(const nlohmann::json& arguments, const std::string& source,
                                       const nn::StoreOptions& store);
std::string_view resnet_table();
std::string_view sagan_resnet_table();
std::unique_ptr<ImageModel> build_resnet(const nlohmann::json& arguments, const std::string& source,
                                         const nn::StoreOptions& store);
std::string_view s2_mlp_table();
std::unique_ptr<ImageModel> build_s2_mlp(const nlohmann::json& arguments, const std::string& source,
                                         const nn::StoreOptions& store);
std::string_view cycle_mlp_table();
std::unique_ptr<ImageModel> build_cycle_mlp(const nlohmann::json& arguments, const std::string& source,
                                            const nn::StoreOptions& store);
std::unique_ptr<ImageModel> build_swin_v2(const nlohmann::json& arguments, const std::string& source,
                                          const nn::StoreOptions& store);
std::unique_ptr<ImageModel> build_swin_v2_cr(const nlohmann::json& arguments, const std::string& source,
                                             const nn::StoreOptions& store);
std::string_view botnet_table();
std::unique_ptr<ImageModel> build_botnet(const nlohmann::json& arguments, const std::string& source,
                                         const nn::StoreOptions& store);
std::string_view resnetv2_table();
std::unique_ptr<ImageModel> build_resnetv2(const nlohmann::json& arguments, const std::string& source,
                                           const nn::StoreOptions& store);
std::string_view mvit_table();
std::unique_ptr<ImageModel> build_mvit(const nlohmann::json& arguments, const std::string& source,
                                       const nn::StoreOptions& store);
std::string_view mvit_video_table();
std::unique_ptr<ImageModel> build_mvit_video(const nlohmann::json& arguments, const std::string& source,
                                             const nn::StoreOptions& store);

}  // namespace vitrail::models
