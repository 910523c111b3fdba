#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "vitrail/io/suggest.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/family.h"
#include "vitrail/models/formats/huggingface.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ops::Activation;

struct HubActivation {
  std::string_view theirs;
  std::string_view timm;
  Activation activation;
};
constexpr std::array<HubActivation, 9> activations = {{{"gelu", "gelu", Activation::gelu},
                                                       {"gelu_new", "gelu_tanh", Activation::gelu_tanh},
                                                       {"gelu_pytorch_tanh", "gelu_tanh", Activation::gelu_tanh},
                                                       {"gelu_fast", "gelu_tanh", Activation::gelu_tanh},
                                                       {"quick_gelu", "quick_gelu", Activation::quick_gelu},
                                                       {"relu", "relu", Activation::relu},
                                                       {"silu", "silu", Activation::silu},
                                                       {"swish", "silu", Activation::silu},
                                                       {"tanh", "tanh", Activation::tanh}}};

bool is_classifier(io::Fields& f, const std::vector<std::string>& classifiers, const std::vector<std::string>& bare) {
  const auto names = f.optional<std::vector<std::string>>("architectures").value_or(std::vector<std::string>());
  if (names.empty()) {
    return false;
  }
  const auto among = [&](const std::vector<std::string>& list) {
    return std::ranges::find(list, names.front()) != list.end();
  };
  std::vector<std::string> all = classifiers;
  all.insert(all.end(), bare.begin(), bare.end());
  check(among(all), "{}: 'architectures' is '{}', expected {}", f.source(), names.front(), io::quoted_list(all));
  return among(classifiers);
}

const ArchitectureEntry& architecture_of(io::Fields& f, const std::string& nearest) {
  const ArchitectureEntry& found = find_architecture(nearest);
  if (f.kind(own_object) == io::Kind::absent) {
    return found;
  }
  const auto given = f.object(own_object).optional<std::string>("architecture");
  if (!given) {  // what a model of images and texts has beyond its image model
    return found;
  }
  const std::string& name = *given;
  const ArchitectureEntry* named = nullptr;
  try {
    named = &find_architecture(name);
  } catch (const Error& error) {
    fail("{}: '{}': 'architecture': {}", f.source(), own_object, error.what());
  }
  check(named->family == found.family,
        "{}: '{}': 'architecture' is '{}', of the family {}, but the rest describes a {}", f.source(), own_object, name,
        named->family->name, found.family->name);
  return *named;
}

}  // namespace

std::string timm_activation(io::Fields& f, const std::string& key, const std::string& fallback) {
  std::vector<std::string> known;
  known.reserve(activations.size());
  for (const HubActivation& a : activations) {
    known.emplace_back(a.theirs);
  }
  const std::string name = f.choice(key, fallback, known);
  return std::string(std::ranges::find(activations, name, &HubActivation::theirs)->timm);
}

std::string hub_activation(Activation activation) {
  const auto it = std::ranges::find(activations, activation, &HubActivation::activation);
  check(it != activations.end(), "transformers has no layers with this activation");
  return std::string(it->theirs);
}

Json side(const nn::Size2& size) { return size[0] == size[1] ? Json(size[0]) : Json({size[0], size[1]}); }

double shortest(float value) { return std::stod(fmt::format("{}", value)); }

Json norm_argument(float eps) { return eps == 1e-6F ? Json() : Json({"layernorm", shortest(eps)}); }

Arguments::Arguments(io::Fields& f, FolderConfig& folder, const std::string& nearest)
    : folder_(folder), own_(default_arguments(architecture_of(f, nearest), "")) {
  folder.architecture = architecture_of(f, nearest).name;
}

void Arguments::set(const std::string& key, const Json& value, const Json& default_value) {
  if (own_.contains(key) ? own_[key] != value : value != default_value) {
    folder_.model_args[key] = value;
  }
}

std::vector<std::string> read_class_names(io::Fields& f) {
  f.ignore("label2id");
  if (f.is_unset("id2label")) {
    const auto count = f.get<std::int64_t>("num_labels", 2, {0, largest_size});
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < count; ++i) {
      names.push_back(fmt::format("LABEL_{}", i));
    }
    return names;
  }
  const io::Fields checked = f.object("id2label");
  const Json& labels = f.raw("id2label");
  std::vector<std::string> names(labels.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string key = std::to_string(i);
    check(labels.contains(key), "{}: 'id2label' has {} entries, but none that names class {}", f.source(), names.size(),
          i);
    check(labels[key].is_string(), "{}: 'id2label': the name of class {} must be a string, but is {}", f.source(), i,
          io::shown(labels[key].dump()));
    names[i] = labels[key].get<std::string>();
  }
  return names;
}

bool are_named(const std::vector<std::string>& classes) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] != fmt::format("LABEL_{}", i)) {
      return true;
    }
  }
  return false;
}

bool read_classes(io::Fields& f, FolderConfig& folder, const std::vector<std::string>& classifiers,
                  const std::vector<std::string>& bare) {
  folder.num_classes = 0;
  const bool classifies = is_classifier(f, classifiers, bare);
  if (classifies) {
    const std::vector<std::string> names = read_class_names(f);
    folder.num_classes = std::ssize(names);
    if (are_named(names)) {
      folder.pretrained.label_names = names;
    }
    folder.pretrained.problem_type = read_problem_type(f);
  }
  return classifies;
}

void take_pretrained(FolderConfig& folder) {
  PretrainedConfig pretrained = pretrained_of(find_architecture(folder.architecture), "");
  pretrained.label_names = std::move(folder.pretrained.label_names);
  pretrained.problem_type = folder.pretrained.problem_type;
  folder.pretrained = std::move(pretrained);
}

std::vector<std::string> hub_image_types() {
  std::vector<std::string> types;
  for (const Family* family : families()) {
    for (const HubKind& kind : family->hub_kinds) {
      types.emplace_back(kind.model_type);
    }
  }
  return types;
}

FolderConfig read_hub_folder(const Json& json, const fs::path& folder) {
  const std::string source = (folder / config_file).string();
  const std::string model_type = hub_model_type(json, source);
  for (const Family* family : families()) {
    for (const HubKind& kind : family->hub_kinds) {
      if (kind.model_type == model_type) {
        return read_hub_folder(json, folder, kind);
      }
    }
  }
  const std::vector<std::string> known = hub_image_types();
  fail("{}: 'model_type' is '{}', expected {}{}", source, model_type, io::quoted_list(known),
       io::did_you_mean(model_type, known));
}

}  // namespace vitrail::models
