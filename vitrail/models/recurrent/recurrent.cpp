#include "vitrail/models/recurrent/recurrent.h"

#include <charconv>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/formats/weights.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;

// Throws Error unless the file has the tensors of a model of this config: its sizes are not trusted to be allocated
// before that is known.
void check_fits(const nn::RecurrentConfig& config, const io::StoredTensors& file, const std::string& source) {
  const RecurrentModel described(config, {.fill = nn::Fill::meta});
  for (const nn::Parameter& parameter : described.parameters.all()) {
    if (file.contains(parameter.name)) {
      check(file.shape(parameter.name) == parameter.value.shape(), "{}: '{}' is {}, but by {} it must be {}",
            file.source(), parameter.name, file.shape(parameter.name), source, parameter.value.shape());
    } else {
      fail("{}: there is no tensor '{}', which {} asks for", file.source(), parameter.name, source);
    }
  }
}

}  // namespace

RecurrentModel::RecurrentModel(const nn::RecurrentConfig& config, const nn::StoreOptions& store)
    : nn::Network(store), network(nn::Scope(parameters), config) {}

std::int64_t layer_of_recurrent(const std::string& parameter) {
  std::int64_t layer = 0;
  const std::size_t at = parameter.find("_l");
  if (at != std::string::npos) {
    std::from_chars(parameter.data() + at + 2, parameter.data() + parameter.size(), layer);
  }
  return layer + 1;
}

void read_cells(io::Fields& f, nn::RecurrentConfig& config) {
  config.kind = nn::recurrent_kind_named(f.get<std::string>("architecture"));
  config.hidden_size = f.get<std::int64_t>("hidden_size", {1, largest_size});
  config.num_layers = f.get<std::int64_t>("num_layers", 1, most_layers);
  config.bias = f.get<bool>("bias", true);
  config.dropout = static_cast<float>(f.get<double>("dropout", 0.0, {0, 1}));
  config.proj_size = f.get<std::int64_t>("proj_size", 0, {0, largest_size});
  switch (config.kind) {
    case nn::RecurrentKind::rnn:
      config.relu = f.choice("nonlinearity", "tanh", {"tanh", "relu"}) == "relu";
      break;
    case nn::RecurrentKind::lstm:
      config.forget_bias = f.get<bool>("forget_bias", false);
      break;
    case nn::RecurrentKind::gru:
      config.reset_after = f.get<bool>("reset_after", true);
      break;
    case nn::RecurrentKind::mut1:
    case nn::RecurrentKind::mut2:
      config.input_projection = f.get<bool>("input_projection", false);
      break;
    case nn::RecurrentKind::mut3:
    case nn::RecurrentKind::nas:
      break;
  }
}

nn::RecurrentConfig read_recurrent_config(const nlohmann::json& json, const std::string& source) {
  io::Fields f(json, source);
  nn::RecurrentConfig config;
  config.input_size = f.get<std::int64_t>("input_size", {1, largest_size});
  config.batch_first = f.get<bool>("batch_first", false);
  config.bidirectional = f.get<bool>("bidirectional", false);
  read_cells(f, config);
  f.finish();
  return config;
}

bool is_recurrent_folder(const fs::path& folder) {
  if (!fs::exists(folder / config_file)) {
    return false;
  }
  const nlohmann::json config = io::read_json(folder / config_file);
  const auto name = config.is_object() ? config.find("architecture") : config.end();
  if (name == config.end() || !name->is_string() || is_hub_config(config)) {
    return false;
  }
  try {
    nn::recurrent_kind_named(name->get_ref<const std::string&>());
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<RecurrentModel> load_recurrent(const fs::path& folder) {
  const std::string source = (folder / config_file).string();
  const nn::RecurrentConfig config = read_recurrent_config(read_config(folder), source);
  const io::StoredTensors file = open_weights(folder);
  check_fits(config, file, source);
  auto model = std::make_unique<RecurrentModel>(config, nn::StoreOptions{.fill = nn::Fill::leave});
  const WeightsTarget target = whole_network(model->parameters);
  load_weights(target, file, names_in(file, {}, ""), {});
  return model;
}

void save_recurrent(const RecurrentModel& model, const fs::path& folder) {
  const nn::RecurrentConfig& config = model.network.config;
  nlohmann::ordered_json json;
  json["architecture"] = nn::name_of(config.kind);
  json["input_size"] = config.input_size;
  json["hidden_size"] = config.hidden_size;
  json["num_layers"] = config.num_layers;
  json["bias"] = config.bias;
  json["batch_first"] = config.batch_first;
  json["dropout"] = std::stod(fmt::format("{}", config.dropout));  // 0.1 and not 0.10000000149
  json["bidirectional"] = config.bidirectional;
  json["proj_size"] = config.proj_size;
  switch (config.kind) {
    case nn::RecurrentKind::rnn:
      json["nonlinearity"] = config.relu ? "relu" : "tanh";
      break;
    case nn::RecurrentKind::lstm:
      json["forget_bias"] = config.forget_bias;
      break;
    case nn::RecurrentKind::gru:
      json["reset_after"] = config.reset_after;
      break;
    case nn::RecurrentKind::mut1:
    case nn::RecurrentKind::mut2:
      json["input_projection"] = config.input_projection;
      break;
    case nn::RecurrentKind::mut3:
    case nn::RecurrentKind::nas:
      break;
  }
  const io::NamedTensors tensors = named_tensors(model.parameters);
  io::replace_folder(folder, [&](const fs::path& temporary) {
    io::write_atomically(temporary / config_file, json.dump(2) + "\n");
    io::save_safetensors(temporary / weights_file, tensors);
  });
}

}  // namespace vitrail::models
