#include "vitrail/models/joint/vqa_folder.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/suggest.h"
#include "vitrail/models/base/arguments.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/formats/stored.h"
#include "vitrail/models/formats/weights.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* vqa_type = "vitrail_vqa";

struct NamedVqa {
  const char* name;
  const char* kind;
  VqaConfig::Kind as;
  std::int64_t depth;
};
// A block of vqa_small's question has 16 D² parameters and one of its picture 12 D², as one of vqa_joint: 3 · 28 = 7
// · 12.
constexpr std::array<NamedVqa, 6> named_vqas = {{{"vqa_small", "cross", VqaConfig::Kind::cross, 3},
                                                 {"vqa_joint", "joint", VqaConfig::Kind::joint, 7},
                                                 {"vqa_one", "one", VqaConfig::Kind::one, 1},
                                                 {"vqa_question", "question", VqaConfig::Kind::question, 3},
                                                 {"vqa_picture", "picture", VqaConfig::Kind::picture, 3},
                                                 {"vqa_cnn_lstm", "cnn_lstm", VqaConfig::Kind::cnn_lstm, 1}}};

const NamedVqa& named_vqa(const std::string& name) {
  const auto it = std::ranges::find(named_vqas, name, &NamedVqa::name);
  if (it == named_vqas.end()) {
    const std::vector<std::string> names = vqa_names();
    fail("there is no network '{}' for questions{}: expected a folder or one of {}", name,
         io::did_you_mean(name, names), fmt::join(names, ", "));
  }
  return *it;
}

VqaModel make_vqa(const Json& json, const std::string& source, float drop, const nn::StoreOptions& store) {
  io::Fields f(json, source);
  VqaModel model;
  model.name = f.get<std::string>("name");
  const NamedVqa& named = named_vqa(model.name);
  VqaConfig c;
  c.kind = named.as;
  const auto size = [&](const char* key, std::int64_t fallback) {
    return f.get<std::int64_t>(key, fallback, positive);
  };
  c.img_size = size("img_size", c.img_size);
  c.channels = f.get<std::vector<std::int64_t>>("channels", c.channels, positive);
  c.dim = size("dim", c.dim);
  c.num_heads = size("num_heads", c.num_heads);
  c.hidden = size("hidden", 4 * c.dim);
  c.vision_depth = f.get<std::int64_t>("vision_depth", c.vision_depth, {0, most_layers.high});
  c.depth = f.get<std::int64_t>("depth", named.depth, most_layers);
  c.sigmoid = f.choice("attn_norm", "softmax", {"softmax", "sigmoid"}) == "sigmoid";
  c.vocab_size = f.get<std::int64_t>("vocab_size", positive);
  c.max_positions = size("max_positions", c.max_positions);
  c.drop = drop;
  model.answers = f.get<std::vector<std::string>>("answers");
  check(!model.answers.empty(), "{}: 'answers' is empty", source);
  c.num_answers = std::ssize(model.answers);
  f.ignore("model_type");
  f.ignore("architectures");
  f.finish();
  model.net = std::make_unique<Vqa>(c, store);
  model.pretrained.height = c.img_size;
  model.pretrained.width = c.img_size;
  model.pretrained.crop_pct = 1;
  model.pretrained.crop_mode = "squash";
  model.pretrained.interpolation = "bilinear";
  model.config = json.dump();
  return model;
}

Json read_vqa_config(const fs::path& folder) {
  Json json = read_config(folder);
  check(is_hub_config(json) && json["model_type"] == vqa_type,
        "'{}' is no network for questions: the \"model_type\" in its {} is not '{}'", folder.string(), config_file,
        vqa_type);
  return json;
}

}  // namespace

std::vector<std::string> vqa_names() {
  std::vector<std::string> names;
  names.reserve(named_vqas.size());
  for (const NamedVqa& named : named_vqas) {
    names.emplace_back(named.name);
  }
  return names;
}

bool is_vqa_name(const std::string& name) {
  return std::ranges::find(named_vqas, name, &NamedVqa::name) != named_vqas.end();
}

VqaModel create_vqa(const std::string& name, const std::string& kwargs, std::int64_t vocab_size,
                    const std::vector<std::string>& answers, float drop, const nn::StoreOptions& store) {
  named_vqa(name);
  Json config = io::parse_json(kwargs, "--model-kwargs");
  for (const char* own : {"name", "vocab_size", "answers"}) {
    check(!config.contains(own), "--model-kwargs: '{}' follows from the model's name and the training questions", own);
  }
  config["model_type"] = vqa_type;
  config["name"] = name;
  config["vocab_size"] = vocab_size;
  config["answers"] = answers;
  return make_vqa(config, name, drop, store);
}

bool is_vqa_folder(const fs::path& given) { return model_type_in(shipped_or(given)) == vqa_type; }

VqaModel load_vqa(const fs::path& given, nn::Fill fill, float drop) {
  const fs::path folder = shipped_or(given);
  VqaModel model = make_vqa(read_vqa_config(folder), (folder / config_file).string(), drop, {.fill = fill});
  if (fill != nn::Fill::meta) {
    const WeightsTarget target = whole_network(model.net->parameters);
    load_weights(target, open_weights(folder), {}, {});
  }
  return model;
}

VqaModel load_grown_vqa(const fs::path& given, std::int64_t vocab_size, const std::vector<std::string>& further_answers,
                        float drop, const nn::StoreOptions& store) {
  const fs::path folder = shipped_or(given);
  Json json = read_vqa_config(folder);
  const std::string source = (folder / config_file).string();
  // What the folder says is judged before anything is changed of it.
  const VqaConfig own = make_vqa(json, source, drop, {.fill = nn::Fill::meta}).net->config();
  check(vocab_size >= own.vocab_size, "a vocabulary of {} tokens cannot take the place of {}, which has {}", vocab_size,
        folder.string(), own.vocab_size);
  json["vocab_size"] = vocab_size;
  for (const std::string& answer : further_answers) {
    json["answers"].push_back(answer);
  }
  VqaModel model = make_vqa(json, source, drop, store);
  WeightsTarget target = whole_network(model.net->parameters);
  // Words and answers are the rows of their parameters.
  target.adapt = [&](const std::string& name, const Tensor& value, const Shape& wanted, const nn::Size2&) {
    const std::int64_t rows = value.rank() == wanted.rank() && value.rank() > 0 ? value.size(0) : 0;
    const bool grows = (rows == own.vocab_size && wanted[0] == vocab_size) ||
                       (rows == own.num_answers && wanted[0] == std::ssize(model.answers));
    if (!grows) {
      return value;
    }
    Tensor grown = model.net->parameters.at(name).value.clone();
    grown.narrow(0, 0, rows).copy_from(value);
    return grown;
  };
  load_weights(target, open_weights(folder), {}, {});
  return model;
}

void write_vqa(const VqaModel& model, const fs::path& folder, DType dtype) {
  io::write_atomically(folder / config_file, nlohmann::ordered_json(Json::parse(model.config)).dump(2) + "\n");
  io::save_safetensors(folder / weights_file, stored_as(named_tensors(model.net->parameters), dtype));
}

}  // namespace vitrail::models
