#include "vitrail/models/joint/clip_folder.h"

#include <array>
#include <deque>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/formats/preprocessor.h"
#include "vitrail/models/formats/stored.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/vit/huggingface_vit.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

using ClipKind = ClipConfig::Kind;

constexpr const char* clip_type = "clip";
constexpr const char* siglip_type = "siglip";

// What transformers calls the tensors of the text tower, whose blocks have timm's names, and further ones.
constexpr std::array<NameRule, 7> text_names = {
    {{"text_model.encoder.layers.#.norm1.@", "text_model.encoder.layers.#.layer_norm1.@"},
     {"text_model.encoder.layers.#.attn.qkv.@", "text_model.encoder.layers.#.self_attn.{q_proj,k_proj,v_proj}.@"},
     {"text_model.encoder.layers.#.attn.proj.@", "text_model.encoder.layers.#.self_attn.out_proj.@"},
     {"text_model.encoder.layers.#.norm2.@", "text_model.encoder.layers.#.layer_norm2.@"},
     {"", "text_model.embeddings.position_ids"},         // a buffer of older files
     {"logit_bias", "logit_bias", Joining::rows, true},  // of CLIP in the config, own_object
     {"@", "@"}}};

// The names of a whole model's tensors: those of the vision tower stand below its name.
std::vector<NameRule> joint_names(ClipKind kind) {
  static std::deque<std::string> kept;  // the names that the rules look at
  static const std::vector<NameRule> of_vision = [] {
    const std::string tower = "vision_model.";
    std::vector<NameRule> rules;
    for (NameRule rule : hub_clip_vision_names()) {
      if (!rule.theirs.starts_with('~')) {
        continue;
      }
      if (!rule.own.empty()) {
        rule.own = kept.emplace_back(tower + std::string(rule.own));
      }
      rule.theirs = kept.emplace_back(tower + std::string(rule.theirs.substr(1)));
      rules.push_back(rule);
    }
    return rules;
  }();
  std::vector<NameRule> rules = of_vision;
  for (const NameRule& rule : text_names) {
    if (kind == ClipKind::clip || !rule.optional) {
      rules.push_back(rule);
    }
  }
  return rules;
}

void read_text(io::Fields& f, ClipConfig& config) {
  const bool siglip = config.kind == ClipKind::siglip;
  EncoderConfig& c = config.text;
  c.vocab_size = f.get<std::int64_t>("vocab_size", siglip ? 32000 : 49408, positive);
  c.max_positions = f.get<std::int64_t>("max_position_embeddings", siglip ? 64 : 77, positive);
  c.dim = f.get<std::int64_t>("hidden_size", siglip ? 768 : 512, positive);
  c.depth = f.get<std::int64_t>("num_hidden_layers", 12, most_layers);
  const auto heads = f.get<std::int64_t>("num_attention_heads", siglip ? 12 : 8, positive);
  check(c.dim % heads == 0, "{}: the width {} cannot be divided among {} heads", f.source(), c.dim, heads);
  c.causal = !siglip;
  c.block.attention = {.dim = c.dim,
                       .num_heads = heads,
                       .qkv_bias = true,
                       .attn_drop = static_cast<float>(f.get<double>("attention_dropout", 0, {0, 1}))};
  c.block.mlp = {.dim = c.dim,
                 .hidden = f.get<std::int64_t>("intermediate_size", siglip ? 3072 : 2048, positive),
                 .activation = ops::activation_named(
                     timm_activation(f, "hidden_act", siglip ? "gelu_pytorch_tanh" : "quick_gelu"))};
  c.block.norm = {.eps = static_cast<float>(f.get<double>("layer_norm_eps", siglip ? 1e-6 : 1e-5, {0, 1}))};
  c.positions.added = nn::TokenPositionKind::learned;
  c.norm = c.block.norm;
  c.names.embedding = "embeddings.token_embedding";
  c.names.positions = "embeddings.position_embedding";
  c.names.blocks = "encoder.layers";
  c.names.norm = "final_layer_norm";
  if (siglip) {
    const auto width = f.optional<std::int64_t>("projection_size", positive).value_or(c.dim);
    check(width == config.projection_dim,
          "{}: vectors of texts have {} numbers ('projection_size'), those of images {}", f.source(), width,
          config.projection_dim);
    config.pad_token_id = f.optional<std::int64_t>("pad_token_id", {0, largest_size}).value_or(1);
    return;
  }
  // The first configs had 2, which is not the id of the end token.
  const auto end = f.get<std::int64_t>("eos_token_id", 49407, {0, largest_size});
  config.eos_token_id = end == 2 ? std::nullopt : std::optional(end);
}

// The "model_type" of a config, which a new model need not have.
std::string type_of(const Json& json) {
  return is_hub_config(json) && json["model_type"].is_string() ? json["model_type"].get<std::string>() : clip_type;
}

bool is_joint_type(const Json& json) {
  return is_hub_config(json) && (json["model_type"] == clip_type || json["model_type"] == siglip_type);
}

ClipConfig read_clip(const Json& json, const std::string& source) {
  io::Fields f(json, source);
  ClipConfig config;
  if (type_of(json) == siglip_type) {
    config.kind = ClipKind::siglip;
    config.logit_scale_init = 0;
    config.logit_bias = 0;
  } else {
    config.projection_dim = f.get<std::int64_t>("projection_dim", 512, positive);
    config.logit_scale_init = static_cast<float>(f.get<double>("logit_scale_init_value", 2.6592, {-100, 100}));
    config.init_factor = static_cast<float>(f.get<double>("initializer_factor", 1, {0, 100}));
  }
  io::Fields vision(hub_tower(f, "vision_config"), source + ": 'vision_config'");
  config.vision = read_hub_tower(vision, config.kind == ClipKind::siglip);
  if (config.kind == ClipKind::siglip) {
    config.projection_dim = config.vision.embed_dim;
  } else {
    config.vision_std = static_cast<float>(vision.get<double>("initializer_range", 0.02, {0, 10}));
  }
  io::Fields text(hub_tower(f, "text_config"), source + ": 'text_config'");
  read_text(text, config);
  if (config.kind == ClipKind::clip && f.kind(own_object) == io::Kind::object) {
    io::Fields own = f.object(own_object);
    if (const auto bias = own.optional<double>("logit_bias")) {
      config.logit_bias = static_cast<float>(*bias);
    }
  }
  return config;
}

JointModel make_clip(const Json& json, const std::string& source, const nn::StoreOptions& store) {
  JointModel model;
  const ClipConfig config = read_clip(json, source);
  model.net = std::make_unique<ClipModel>(config, store);
  model.pretrained = hub_tower_images(config.vision, config.kind == ClipKind::siglip);
  model.config = json.dump();
  return model;
}

}  // namespace

bool is_clip_folder(const fs::path& given) {
  const std::string type = model_type_in(shipped_or(given));
  return type == clip_type || type == siglip_type;
}

JointModel load_clip(const fs::path& given, nn::Fill fill) {
  const fs::path folder = shipped_or(given);
  const fs::path path = folder / config_file;
  const Json json = read_config(folder);
  check(is_joint_type(json),
        "'{}' is no model of images and texts: the \"model_type\" in its {} is neither '{}' nor '{}'", folder.string(),
        config_file, clip_type, siglip_type);
  const Json classes = json.value("architectures", Json::array());
  const std::string name = !classes.empty() && classes.front().is_string() ? classes.front().get<std::string>() : "";
  check(!name.ends_with("ForImageClassification"),
        "'{}' is transformers' {}, a classifier without texts, which vitrail does not have", folder.string(), name);
  JointModel model = make_clip(json, path.string(), {.fill = fill});
  const VitConfig& vision = model.net->config().vision;
  read_preprocessor(folder, model.pretrained);
  check_prepared_size(folder, model.pretrained, vision.img_size);
  if (fill != nn::Fill::meta) {
    const io::StoredTensors file = open_weights(folder);
    const WeightsTarget target = whole_network(model.net->parameters);
    const std::vector<NameRule> rules = joint_names(model.net->config().kind);
    load_weights(target, file, {rules, ""}, {});
  }
  return model;
}

JointModel create_clip(const std::string& config, const std::string& source, const nn::StoreOptions& store) {
  return make_clip(io::parse_json(config, source), source, store);
}

io::NamedTensors clip_tensors(const ClipModel& model, const std::function<Tensor(const nn::Parameter&)>& value) {
  io::NamedTensors tensors;
  const std::vector<NameRule> rules = joint_names(model.config().kind);
  const NameMap names(rules, "");
  for (const nn::Parameter& parameter : model.parameters.all()) {
    if (parameter.name == "logit_bias" && !model.is_siglip()) {  // which CLIPModel does not have
      continue;
    }
    for (auto& entry : names.split(parameter.name, value(parameter))) {
      tensors.push_back(std::move(entry));
    }
  }
  return join_parts(std::move(tensors));
}

void write_clip(const JointModel& model, const fs::path& folder, DType dtype) {
  const bool siglip = model.net->is_siglip();
  nlohmann::ordered_json config;
  const auto say_class = [&] {
    config["architectures"] = {siglip ? "SiglipModel" : "CLIPModel"};
    config["model_type"] = siglip ? siglip_type : clip_type;
  };
  say_class();
  config.update(nlohmann::ordered_json::parse(model.config));
  say_class();
  config.erase("torch_dtype");  // the older name
  config["dtype"] = dtype == DType::bf16 ? "bfloat16" : "float32";
  config.erase(own_object);
  if (const Tensor& bias = model.net->logit_bias(); bias.defined() && !siglip) {
    config[own_object] = {{"logit_bias", shortest(bias.item())}};
  }
  nlohmann::ordered_json processor = preprocessor_json(model.pretrained);
  if (siglip && processor["image_processor_type"] == "ViTImageProcessor") {
    processor["image_processor_type"] = "SiglipImageProcessor";
  }
  if (!siglip && processor["image_processor_type"] == "BitImageProcessor") {  // of which CLIP's is a copy
    processor["image_processor_type"] = "CLIPImageProcessor";
  }
  io::write_atomically(folder / config_file, config.dump(2) + "\n");
  io::write_atomically(folder / "preprocessor_config.json", processor.dump(2) + "\n");
  io::NamedTensors tensors = clip_tensors(*model.net, [](const nn::Parameter& p) { return p.value.detach(); });
  io::save_safetensors(folder / weights_file, stored_as(std::move(tensors), dtype));
}

}  // namespace vitrail::models
