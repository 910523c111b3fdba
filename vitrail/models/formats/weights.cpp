#include "vitrail/models/formats/weights.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "vitrail/io/json.h"
#include "vitrail/io/suggest.h"
#include "vitrail/io/tensor_files.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;

// Throws Error unless the scales of int8 values are normal, positive numbers.
void check_scales(const Tensor& scales) {
  for (const float scale : scales.values()) {
    check(std::isnormal(scale) && scale > 0, "it holds {}, which is no scale", scale);
  }
}

// The reasons why a checkpoint does not fit a model.
class Problems {
 public:
  void add(std::string problem) { problems_.push_back(std::move(problem)); }
  // Throws Error with the first ten problems, a line each if there are several, and the number of the others.
  void raise(const std::string& path) const {
    constexpr std::size_t most = 10;
    if (problems_.size() > most) {
      fail("{} does not fit the model:\n  {}\nand {} more", path,
           fmt::join(problems_.begin(), problems_.begin() + most, "\n  "), problems_.size() - most);
    }
    check(problems_.empty(), "{} does not fit the model:{}{}", path, problems_.size() > 1 ? "\n  " : " ",
          fmt::join(problems_, "\n  "));
  }

 private:
  std::vector<std::string> problems_;
};

// The parameter of the checkpoint's model whose value `name` takes: `name` itself, or the final norm on the other side
// of the pooling.
std::string source_of(const std::string& name, const WeightsTarget& target, const io::StoredTensors& file,
                      const NameMap& names) {
  const std::string other = name.starts_with("fc_norm.") ? name.substr(3)
                            : name.starts_with("norm.")  ? "fc_" + name
                                                         : "";
  const auto holds = [&](const std::string& own) {
    return names.knows(own) &&
           std::ranges::all_of(names.theirs_of(own), [&](const std::string& theirs) { return file.contains(theirs); });
  };
  return !other.empty() && target.parameters.find(target.prefix + other) == nullptr && !holds(name) && holds(other)
             ? other
             : name;
}

// One tensor of the file. If it cannot be converted to what `parameter` is, notes the problem and returns none.
std::optional<Tensor> find_part(const std::string& name, const nn::Parameter& parameter, const io::StoredTensors& file,
                                Problems& problems) {
  const DType wanted = parameter.value.dtype();
  Tensor part;
  try {
    part = file.get(name);
  } catch (const Error& error) {  // the file has a dtype that tensors do not have
    problems.add(error.what());
    return std::nullopt;
  }
  const bool converts = is_floating(part.dtype()) && (is_floating(wanted) || parameter.held);
  if (part.dtype() != wanted && !converts) {
    problems.add(fmt::format("'{}' holds {}, but the model's is {}", name, name_of(part.dtype()), name_of(wanted)));
    return std::nullopt;
  }
  return part;
}

// Makes the model's tensor `own` from tensors of the file, in their dtype. If one is missing or does not fit
// `parameter`, notes the problems and returns none.
std::optional<Tensor> find_value(const std::string& own, const nn::Parameter& parameter, const io::StoredTensors& file,
                                 const NameMap& names, Problems& problems) {
  std::vector<Tensor> parts;
  const std::vector<std::string> theirs = names.theirs_of(own);
  for (const std::string& name : theirs) {
    if (!file.contains(name)) {
      problems.add(fmt::format("there is no tensor '{}'{}", name, io::did_you_mean(name, file.names())));
      continue;
    }
    if (std::optional<Tensor> part = find_part(name, parameter, file, problems)) {
      parts.push_back(std::move(*part));
    }
  }
  if (parts.size() < theirs.size()) {
    return std::nullopt;
  }
  try {
    return names.join(own, parts);
  } catch (const Error& error) {
    problems.add(
        fmt::format("'{}' cannot be put together from '{}': {}", own, fmt::join(theirs, "', '"), error.what()));
    return std::nullopt;
  }
}

// A value that has been found for a parameter.
struct FoundValue {
  const nn::Parameter* parameter;
  std::string source;  // the checkpoint's name
  Tensor value;        // undefined if it is to be made again, because it is a copy of what the file has
};

// Whether the parameter is made of scales of a weight that is held in int8, which are chosen with the weight.
bool comes_with_weight(const nn::Parameter& parameter, const nn::ParameterStore& parameters) {
  constexpr std::string_view ending = "_scale";
  if (!parameter.buffer || !parameter.name.ends_with(ending)) {
    return false;
  }
  const nn::Parameter* weight = parameters.find(parameter.name.substr(0, parameter.name.size() - ending.size()));
  return weight != nullptr && weight->held;
}

}  // namespace

HeldWeights quantized_weights(const io::StoredTensors& file) {
  HeldWeights result;
  for (const std::string& name : file.names()) {
    if (name.ends_with(".weight") && file.contains(name + "_scale")) {
      result[name] = {DType::i8, file.contains(name.substr(0, name.rfind('.')) + ".input_scale")};
    }
  }
  return result;
}

NameMap names_in(const io::StoredTensors& file, std::span<const NameRule> rules, const std::string& prefix) {
  const auto any = [&](const std::string& start) {
    return std::ranges::any_of(file.names(), [&](const std::string& name) { return name.starts_with(start); });
  };
  const std::string written_by_version_5 = "decoder.decoder_encoder.layer.";
  return {rules, any(prefix) ? prefix : "",
          any(written_by_version_5) ? written_by_version_5 : "decoder.decoder_layers."};
}

std::string model_type_in(const fs::path& folder) {
  if (!fs::exists(folder / config_file)) {
    return "";
  }
  const nlohmann::json config = io::read_json(folder / config_file);
  const bool has = config.is_object() && config.contains("model_type") && config["model_type"].is_string();
  return has ? config["model_type"].get<std::string>() : "";
}

nlohmann::json FolderConfig::arguments() const {
  nlohmann::json arguments = nlohmann::json::object();
  if (!input_size.empty()) {
    arguments["in_chans"] = input_size[0];
    if (fixed_input_size) {
      arguments["img_size"] = {input_size[1], input_size[2]};
    }
  }
  arguments.update(model_args);
  if (num_classes) {
    arguments["num_classes"] = *num_classes;
  }
  return arguments;
}

nlohmann::json read_config(const fs::path& folder) {
  check(fs::is_directory(folder), "there is no model folder '{}'", folder.string());
  const fs::path path = folder / config_file;
  check(!fs::exists(folder / "adapter_config.json"),
        "'{}' has an adapter (adapter_config.json), which is not read: join it with its model first, with PEFT by "
        "merge_and_unload() and save_pretrained()",
        folder.string());
  check(fs::exists(path), "'{}' is not a model folder: it has no {}", folder.string(), config_file);
  return io::read_json(path);
}

fs::path weights_in(const fs::path& folder) {
  for (const char* name :
       {weights_file, "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (fs::exists(folder / name)) {
      return folder / name;
    }
  }
  return {};
}

io::StoredTensors open_weights(const fs::path& folder) {
  const fs::path path = weights_in(folder);
  for (const char* other : {"tf_model.h5", "flax_model.msgpack"}) {
    check(!path.empty() || !fs::exists(folder / other),
          "'{}' has its weights in {}: vitrail reads {} and pytorch_model.bin, of which transformers' "
          "save_pretrained() writes one",
          folder.string(), other, weights_file);
  }
  check(!path.empty(), "'{}' has no weights: neither {} nor pytorch_model.bin", folder.string(), weights_file);
  return path.extension() == ".json" ? io::open_shards(path) : io::open_tensors(path);
}

void load_weights(const WeightsTarget& target, const io::StoredTensors& file, const NameMap& names,
                  const nn::Size2& source_size, const Changes& changes) {
  const std::string& path = file.source();
  Problems problems;
  std::vector<FoundValue> values;
  std::vector<const nn::Parameter*> afresh;
  std::set<std::string, std::less<>> used;
  for (const nn::Parameter& parameter : target.parameters.all()) {
    if (!parameter.name.starts_with(target.prefix)) {
      continue;
    }
    const std::string name = parameter.name.substr(target.prefix.size());
    if (changes.classifier && target.is_head(name)) {
      afresh.push_back(&parameter);
      check(parameter.value.dtype() != DType::i8, "{}: the classifier is in int8 and cannot be replaced", path);
      continue;
    }
    const std::string source = changes.pooling ? source_of(name, target, file, names) : name;
    if (comes_with_weight(parameter, target.parameters) &&
        (!names.knows(source) || !file.contains(names.theirs_of(source).front()))) {
      continue;
    }
    const std::vector<std::string> theirs = names.theirs_of(source);
    used.insert(theirs.begin(), theirs.end());
    if (names.optional(source) && !file.contains(theirs.front())) {
      afresh.push_back(&parameter);
      continue;
    }
    const std::optional<Tensor> value = find_value(source, parameter, file, names, problems);
    if (!value) {
      continue;
    }
    try {
      const Tensor adapted = target.adapt ? target.adapt(name, ops::cast(*value, parameter.value.dtype()),
                                                         parameter.value.shape(), source_size)
                                          : *value;
      if (adapted.shape() != parameter.value.shape()) {
        problems.add(fmt::format("'{}' has the shape {}, but the model's is {}", fmt::join(theirs, "' + '"),
                                 value->shape(), parameter.value.shape()));
        continue;
      }
      if (name.ends_with("_scale") && parameter.buffer) {
        check_scales(adapted);
      }
      const bool keeps = target.adapt || adapted.storage().is_borrowed();
      values.push_back({&parameter, source, keeps ? adapted : Tensor()});
    } catch (const Error& error) {
      problems.add(fmt::format("'{}' cannot be taken: {}", fmt::join(theirs, "' + '"), error.what()));
    }
  }
  for (const std::string& name : file.names()) {
    if (used.contains(name)) {
      continue;
    }
    const std::optional<std::string> own = names.own_of(name);
    const bool holds_nothing = file.shape(name).numel() == 0;  // as transformers' register tokens where there are none
    const bool passed_over = own && (own->empty() || holds_nothing || (changes.classifier && target.is_head(*own)));
    if (!passed_over) {
      problems.add(fmt::format("the model has no parameter '{}'", name));
    }
  }
  problems.raise(path);
  for (FoundValue& found : values) {
    const Tensor value = found.value.defined()
                             ? std::exchange(found.value, {})
                             : find_value(found.source, *found.parameter, file, names, problems).value();
    target.parameters.set(*found.parameter, value);
    for (const std::string& theirs : names.theirs_of(found.source)) {
      file.forget(theirs);
    }
  }
  for (const nn::Parameter* parameter : afresh) {
    target.parameters.initialize(parameter->name);
  }
}

io::NamedTensors named_tensors(const nn::ParameterStore& parameters, const std::string& prefix) {
  io::NamedTensors tensors;
  for (const nn::Parameter& parameter : parameters.all()) {
    if (parameter.name.starts_with(prefix)) {
      tensors.emplace_back(parameter.name.substr(prefix.size()), parameter.value);
    }
  }
  return tensors;
}

}  // namespace vitrail::models
