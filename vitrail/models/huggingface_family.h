// What the readers and writers of transformers' families share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/models/arguments.h"
#include "vitrail/models/folder.h"
#include "vitrail/models/name_map.h"
#include "vitrail/models/swin.h"
#include "vitrail/models/vit.h"

namespace vitrail::models {

inline constexpr io::Range positive{1, largest_size};

// timm's name of the activation that `hidden_act` names, and back. Error if there is none.
std::string timm_activation(io::Fields& f);
std::string hub_activation(ops::Activation activation);
// One number for a square.
nlohmann::json side(const nn::Size2& size);
// The double with the float's shortest text.
double shortest(float value);
// timm's norm_layer for LayerNorm with this epsilon: null for timm's own, 1e-6.
nlohmann::json norm_argument(float eps);

// Arguments over an architecture's own: those that say the same, or timm's default, are left out.
class Arguments {
 public:
  Arguments(FolderConfig& folder, const std::string& architecture);
  void set(const std::string& key, const nlohmann::json& value, const nlohmann::json& default_value);

 private:
  FolderConfig& folder_;
  nlohmann::json own_;
};

// Whether the checkpoint is of a classifier, whose classes it then reads, or of the bare model, which has none. Names
// come from "id2label": {"0": "cat", …}; transformers has two classes where it says nothing, and LABEL_0 … where it
// knows no names.
bool read_classes(io::Fields& f, FolderConfig& folder, const std::vector<std::string>& classifiers,
                  const std::vector<std::string>& bare);
// How pictures are prepared, of the first checkpoint of the folder's architecture; the labels stay.
void take_pretrained(FolderConfig& folder);

// The readers (HubFamily).
void read_hub_vit(io::Fields& f, FolderConfig& folder);
void read_hub_vit_mae(io::Fields& f, FolderConfig& folder);
void read_hub_deit(io::Fields& f, FolderConfig& folder);
void read_hub_dinov2(io::Fields& f, FolderConfig& folder);
void read_hub_dinov2_with_registers(io::Fields& f, FolderConfig& folder);
void read_hub_beit(io::Fields& f, FolderConfig& folder);
void read_hub_swin(io::Fields& f, FolderConfig& folder);
void read_hub_swinv2(io::Fields& f, FolderConfig& folder);

// What transformers calls a model, and its config.json but for the classes. Error that says why it has no such model.
struct HubForm {
  std::string model_type;
  std::string architecture;
  std::span<const NameRule> names;
  std::string prefix;
  nlohmann::ordered_json config;
};
HubForm hub_form(const VitConfig& config);
HubForm hub_form(const SwinConfig& config);

}  // namespace vitrail::models
