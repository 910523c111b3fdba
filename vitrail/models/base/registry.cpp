#include "vitrail/models/base/registry.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/io/suggest.h"
#include "vitrail/models/base/kwargs.h"
#include "vitrail/models/base/shipped.h"

namespace vitrail::models {
namespace {

using Json = nlohmann::json;

Json settings_json(const std::string& text) { return Json::parse(kwargs_to_json(words(text))); }

const Family& family_named(std::string_view name) {
  const auto it = std::ranges::find_if(families(), [&](const Family* family) { return family->name == name; });
  check(it != families().end(), "there is no model family '{}'", name);
  return **it;
}

// Adds the architectures of one table to `entries`.
void read_table(std::string_view table, std::vector<ArchitectureEntry>& entries) {
  std::istringstream stream{std::string(table)};
  for (std::string line; std::getline(stream, line);) {
    if (line.empty()) {
      continue;
    }
    if (line.starts_with("  ")) {
      const std::size_t colon = line.find(':');
      for (const std::string& tag : words(line.substr(0, colon))) {
        entries.back().tags.push_back({tag, line.substr(colon + 1)});
      }
      continue;
    }
    const std::size_t open = line.find(" (");
    const std::size_t close = line.find(')', open);
    entries.push_back(
        {line.substr(0, open), &family_named(line.substr(open + 2, close - open - 2)), line.substr(close + 1), {}});
  }
}

const std::vector<ArchitectureEntry>& entries() {
  static const std::vector<ArchitectureEntry> all = [] {
    std::vector<ArchitectureEntry> result;
    std::vector<std::string_view> tables;
    for (const Family* family : families()) {
      const std::string_view table = family->table != nullptr ? family->table() : "";
      if (std::ranges::find(tables, table) == tables.end()) {  // families may share a table
        tables.push_back(table);
        read_table(table, result);
      }
    }
    std::ranges::sort(result, {}, &ArchitectureEntry::name);
    return result;
  }();
  return all;
}

std::pair<std::string_view, std::string_view> split_tag(std::string_view name) {
  const std::size_t dot = name.find('.');
  return dot == std::string_view::npos ? std::pair(name, std::string_view())
                                       : std::pair(name.substr(0, dot), name.substr(dot + 1));
}

const Tag& find_tag(const ArchitectureEntry& entry, std::string_view name) {
  if (name.empty()) {
    return entry.tags.front();
  }
  const auto it = std::ranges::find(entry.tags, name, &Tag::name);
  if (it == entry.tags.end()) {
    std::vector<std::string> known;
    for (const Tag& tag : entry.tags) {
      known.push_back(tag.name);
    }
    fail("'{}' has no tag '{}', only {}", entry.name, name, io::quoted_list(known, "and"));
  }
  return *it;
}

struct Normalization {
  std::string_view name;
  std::vector<double> mean;
  std::vector<double> std;
};
const Normalization& normalization_named(std::string_view name) {
  static const std::vector<Normalization> all = {
      {"inception", {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
      {"imagenet", {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
      {"clip", {0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}},
      {"satellite", {0.43, 0.411, 0.296}, {0.213, 0.156, 0.143}},  // of SAT-493M (DINOv3)
      {"none", {0, 0, 0}, {1, 1, 1}},
      {"cifar10", {0.4914, 0.4822, 0.4465}, {0.247, 0.2435, 0.2616}},
      {"kinetics", {0.45, 0.45, 0.45}, {0.225, 0.225, 0.225}},  // torchvision's values for videos
  };
  const auto it = std::ranges::find(all, name, &Normalization::name);
  check(it != all.end(), "there is no normalization '{}'", name);
  return *it;
}

std::int64_t side_of(const Json& size, std::size_t index) {
  return size.is_array() ? size.at(index).get<std::int64_t>() : size.get<std::int64_t>();
}

// Whether two values of an argument mean the same: a size may be given as one number or as a pair.
bool same_argument(const std::string& key, const Json& a, const Json& b) {
  const auto is_size = [](const Json& value) {
    return value.is_number_integer() ||
           (value.is_array() && value.size() == 2 && value[0].is_number_integer() && value[1].is_number_integer());
  };
  if (key.ends_with("_size") && is_size(a) && is_size(b)) {
    return side_of(a, 0) == side_of(b, 0) && side_of(a, 1) == side_of(b, 1);
  }
  return a == b;
}

}  // namespace

const ArchitectureEntry& find_architecture(std::string_view full_name) {
  const auto [name, tag] = split_tag(full_name);
  const auto it = std::ranges::lower_bound(entries(), name, {}, &ArchitectureEntry::name);
  if (it == entries().end() || it->name != name) {
    std::vector<std::string> known;
    for (const ArchitectureEntry& entry : entries()) {
      known.push_back(entry.name);
    }
    const std::string shipped = fmt::format("vitrail/{}", name);
    if (has_shipped(shipped)) {
      fail("there is no model '{}'; did you mean '{}', which ships with the program?", name, shipped);
    }
    const std::string near = io::did_you_mean(name, known);
    fail("there is no model '{}'{}", name, near.empty() ? " (vitrail models lists those that there are)" : near);
  }
  find_tag(*it, tag);
  return *it;
}

PretrainedConfig pretrained_of(const ArchitectureEntry& entry, std::string_view tag) {
  const Json settings = settings_json(find_tag(entry, tag).settings);
  PretrainedConfig config;
  config.height = config.width = settings.value("size", std::int64_t{224});
  config.crop_pct = settings.value("crop_pct", config.crop_pct);
  config.interpolation = settings.value("interpolation", config.interpolation);
  config.crop_mode = settings.value("crop_mode", config.crop_mode);
  const Normalization& normalization = normalization_named(settings.value("normalization", std::string("inception")));
  config.mean = normalization.mean;
  config.std = normalization.std;
  return config;
}

Json default_arguments(const ArchitectureEntry& entry, std::string_view tag) {
  Json arguments = settings_json(entry.arguments);
  const Json settings = settings_json(find_tag(entry, tag).settings);
  arguments["num_classes"] = settings.value("num_classes", 1000);
  if (!arguments.contains("img_size")) {
    arguments["img_size"] = settings.value("size", 224);
  }
  return arguments;
}

Json option_arguments(const CreateOptions& options) {
  Json arguments = io::parse_json(options.model_kwargs, "--model-kwargs");
  check(arguments.is_object(), "--model-kwargs must be key=value pairs, not {}", options.model_kwargs);
  if (options.num_classes) {
    arguments["num_classes"] = *options.num_classes;
  }
  if (options.drop_rate) {  // 0 is the default of all families, some of which have no such argument
    arguments["drop_rate"] = *options.drop_rate > 0 ? Json(*options.drop_rate) : Json();
  }
  if (options.drop_path_rate) {
    arguments["drop_path_rate"] = *options.drop_path_rate;
  }
  return arguments;
}

bool is_drop_rate(std::string_view argument) { return argument.ends_with("drop_rate") || argument == "drop_path_rate"; }

Json drop_rates_in(const Json& arguments) {
  Json rates = Json::object();
  for (const auto& [key, value] : arguments.items()) {
    if (is_drop_rate(key) && value.is_number()) {
      rates[key] = value;
    }
  }
  return rates;
}

void keep_drop_rates(Model& model, const Json& arguments) {
  Json own = Json::parse(model.model_args);
  own.update(drop_rates_in(arguments));
  model.model_args = own.dump();
}

Model build_model(const std::string& architecture, const Json& given, const std::string& source,
                  const nn::StoreOptions& store) {
  const ArchitectureEntry& entry = find_architecture(architecture);
  const std::string_view tag = split_tag(architecture).second;
  const Json own = default_arguments(entry, tag);
  Json arguments = own;
  Json differing = Json::object();  // arguments other than the architecture's own, for config.json
  for (const auto& [key, value] : given.items()) {
    if (value.is_null()) {  // None means the default, as in timm
      continue;
    }
    arguments[key] = value;
    const bool at_run_time = is_drop_rate(key) || key == "num_classes" || (key == "img_size" && !entry.family->sized);
    if (!at_run_time && (!own.contains(key) || !same_argument(key, own[key], value))) {
      differing[key] = value;
    }
  }
  Model model;
  model.architecture = architecture;
  model.family = entry.family;
  model.net = entry.family->build(arguments, source, store);
  model.model_args = differing.dump();
  model.arguments = arguments.dump();
  model.pretrained = pretrained_of(entry, tag);
  model.pretrained.height = side_of(arguments["img_size"], 0);
  model.pretrained.width = side_of(arguments["img_size"], 1);
  model.pretrained.channels = arguments.value("in_chans", std::int64_t{3});
  // For another number of channels every channel gets the mean of the statistics, as timm does for grayscale images.
  if (const auto channels = static_cast<std::size_t>(model.pretrained.channels);
      channels != model.pretrained.mean.size()) {
    const auto mean_of = [](const std::vector<double>& values) {
      double sum = 0;
      for (const double value : values) {
        sum += value;
      }
      return sum / static_cast<double>(values.size());
    };
    model.pretrained.mean.assign(channels, mean_of(model.pretrained.mean));
    model.pretrained.std.assign(channels, mean_of(model.pretrained.std));
  }
  return model;
}

Model build_model(const std::string& architecture, const CreateOptions& options) {
  return build_model(architecture, option_arguments(options), "--model-kwargs", {options.seed, options.fill});
}

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all = [] {
    std::vector<Architecture> result;
    for (const ArchitectureEntry& entry : entries()) {
      result.push_back({entry.name, std::string(entry.family->name)});
    }
    return result;
  }();
  return all;
}

}  // namespace vitrail::models
