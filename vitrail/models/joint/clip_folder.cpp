#include "vitrail/models/joint/clip_folder.h"

#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/formats/preprocessor.h"
#include "vitrail/models/formats/stored.h"
#include "vitrail/models/formats/weights.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* clip_type = "clip";

// What transformers calls the tensors. Those of the two towers' blocks have the same names.
constexpr std::array<NameRule, 18> clip_names = {
    {{"vision_model.cls_token", "vision_model.embeddings.class_embedding", Joining::squeezed},
     {"vision_model.pos_embed", "vision_model.embeddings.position_embedding.weight", Joining::squeezed},
     {"vision_model.patch_embed.proj.@", "vision_model.embeddings.patch_embedding.@"},
     {"vision_model.norm_pre.@", "vision_model.pre_layrnorm.@"},  // spelled so
     {"vision_model.blocks.#.norm1.@", "vision_model.encoder.layers.#.layer_norm1.@"},
     {"vision_model.blocks.#.attn.qkv.@", "vision_model.encoder.layers.#.self_attn.{q_proj,k_proj,v_proj}.@"},
     {"vision_model.blocks.#.attn.proj.@", "vision_model.encoder.layers.#.self_attn.out_proj.@"},
     {"vision_model.blocks.#.norm2.@", "vision_model.encoder.layers.#.layer_norm2.@"},
     {"vision_model.norm.@", "vision_model.post_layernorm.@"},
     {"text_model.encoder.layers.#.norm1.@", "text_model.encoder.layers.#.layer_norm1.@"},
     {"text_model.encoder.layers.#.attn.qkv.@", "text_model.encoder.layers.#.self_attn.{q_proj,k_proj,v_proj}.@"},
     {"text_model.encoder.layers.#.attn.proj.@", "text_model.encoder.layers.#.self_attn.out_proj.@"},
     {"text_model.encoder.layers.#.norm2.@", "text_model.encoder.layers.#.layer_norm2.@"},
     {"vision_model.blocks.#.@", "vision_model.encoder.layers.#.@"},
     // Buffers of older files, which are counted 0, 1, …
     {"", "vision_model.embeddings.position_ids"},
     {"", "text_model.embeddings.position_ids"},
     {"logit_bias", "logit_bias", Joining::rows, true},  // in the config, own_object
     {"@", "@"}}};

// The fields of one tower. Where the older `text_config_dict` is there too, transformers takes it, with the defaults
// of what it leaves out.
const Json& tower_of(io::Fields& f, const std::string& key) {
  static const Json none = Json::object();
  for (const std::string& name : {key + "_dict", key}) {
    if (f.kind(name) != io::Kind::absent && f.kind(name) != io::Kind::null) {
      f.object(name);  // throws Error if it is none
      return f.raw(name);
    }
  }
  return none;
}

// What both towers have. `dim`, `hidden` and so on are the defaults of transformers' classes.
struct TowerSizes {
  std::int64_t dim;
  std::int64_t hidden;
  std::int64_t heads;
  std::int64_t depth = 12;
  ops::Activation activation = ops::Activation::quick_gelu;
  float eps = 1e-5F;
  float attn_drop = 0;
};

TowerSizes read_tower(io::Fields& f, TowerSizes sizes) {
  sizes.dim = f.get<std::int64_t>("hidden_size", sizes.dim, positive);
  sizes.hidden = f.get<std::int64_t>("intermediate_size", sizes.hidden, positive);
  sizes.heads = f.get<std::int64_t>("num_attention_heads", sizes.heads, positive);
  sizes.depth = f.get<std::int64_t>("num_hidden_layers", sizes.depth, most_layers);
  sizes.activation = ops::activation_named(timm_activation(f, "hidden_act", "quick_gelu"));
  sizes.eps = static_cast<float>(f.get<double>("layer_norm_eps", sizes.eps, {0, 1}));
  sizes.attn_drop = static_cast<float>(f.get<double>("attention_dropout", 0, {0, 1}));
  check(sizes.dim % sizes.heads == 0, "{}: the width {} cannot be divided among {} heads", f.source(), sizes.dim,
        sizes.heads);
  return sizes;
}

void read_vision(io::Fields& f, ClipConfig& config) {
  const TowerSizes sizes = read_tower(f, {.dim = 768, .hidden = 3072, .heads = 12});
  VitConfig& c = config.vision;
  c.img_size = read_size(f, "image_size", {224, 224});
  c.patch_size = read_size(f, "patch_size", {32, 32});
  c.in_chans = f.get<std::int64_t>("num_channels", 3, positive);
  c.num_classes = 0;
  c.embed_dim = sizes.dim;
  c.depth = sizes.depth;
  c.num_heads = sizes.heads;
  c.mlp_hidden = sizes.hidden;
  c.act_layer = sizes.activation;
  c.norm_layer.eps = sizes.eps;
  c.attn_drop_rate = sizes.attn_drop;
  c.pre_norm = true;
  config.vision_std = static_cast<float>(f.get<double>("initializer_range", 0.02, {0, 10}));
}

void read_text(io::Fields& f, ClipConfig& config) {
  const TowerSizes sizes = read_tower(f, {.dim = 512, .hidden = 2048, .heads = 8});
  EncoderConfig& c = config.text;
  c.vocab_size = f.get<std::int64_t>("vocab_size", 49408, positive);
  c.max_positions = f.get<std::int64_t>("max_position_embeddings", 77, positive);
  c.dim = sizes.dim;
  c.depth = sizes.depth;
  c.causal = true;
  c.block.attention = {.dim = sizes.dim, .num_heads = sizes.heads, .qkv_bias = true, .attn_drop = sizes.attn_drop};
  c.block.mlp = {.dim = sizes.dim, .hidden = sizes.hidden, .activation = sizes.activation};
  c.block.norm = {.eps = sizes.eps};
  c.positions.added = nn::TokenPositionKind::learned;
  c.norm = c.block.norm;
  c.names.embedding = "embeddings.token_embedding";
  c.names.positions = "embeddings.position_embedding";
  c.names.blocks = "encoder.layers";
  c.names.norm = "final_layer_norm";
  // The first configs had 2, which is not the id of the end token.
  const auto end = f.get<std::int64_t>("eos_token_id", 49407, {0, largest_size});
  config.eos_token_id = end == 2 ? std::nullopt : std::optional(end);
}

ClipConfig read_clip(const Json& json, const std::string& source) {
  io::Fields f(json, source);
  ClipConfig config;
  config.projection_dim = f.get<std::int64_t>("projection_dim", 512, positive);
  config.logit_scale_init = static_cast<float>(f.get<double>("logit_scale_init_value", 2.6592, {-100, 100}));
  config.init_factor = static_cast<float>(f.get<double>("initializer_factor", 1, {0, 100}));
  io::Fields vision(tower_of(f, "vision_config"), source + ": 'vision_config'");
  read_vision(vision, config);
  io::Fields text(tower_of(f, "text_config"), source + ": 'text_config'");
  read_text(text, config);
  if (f.kind(own_object) == io::Kind::object) {
    io::Fields own = f.object(own_object);
    if (const auto bias = own.optional<double>("logit_bias")) {
      config.logit_bias = static_cast<float>(*bias);
    }
  }
  return config;
}

// CLIPImageProcessor's preparation, for images of the vision tower's size.
PretrainedConfig clip_images(const VitConfig& vision) {
  PretrainedConfig p;
  p.channels = vision.in_chans;
  p.height = vision.img_size[0];
  p.width = vision.img_size[1];
  p.crop_pct = 1;
  p.mean = {0.48145466, 0.4578275, 0.40821073};
  p.std = {0.26862954, 0.26130258, 0.27577711};
  if (p.channels != 3) {
    p.mean.assign(static_cast<std::size_t>(p.channels), 0.5);
    p.std.assign(static_cast<std::size_t>(p.channels), 0.5);
  }
  return p;
}

JointModel make_clip(const Json& json, const std::string& source, const nn::StoreOptions& store) {
  JointModel model;
  const ClipConfig config = read_clip(json, source);
  model.net = std::make_unique<ClipModel>(config, store);
  model.pretrained = clip_images(config.vision);
  model.config = json.dump();
  return model;
}

}  // namespace

bool is_clip_folder(const fs::path& given) {
  const fs::path folder = shipped_or(given);
  if (!fs::exists(folder / config_file)) {
    return false;
  }
  const Json config = io::read_json(folder / config_file);
  return is_hub_config(config) && config["model_type"] == clip_type;
}

JointModel load_clip(const fs::path& given, nn::Fill fill) {
  const fs::path folder = shipped_or(given);
  const fs::path path = folder / config_file;
  check(fs::exists(path), "'{}' is not a model folder: it has no {}", folder.string(), config_file);
  const Json json = io::read_json(path);
  check(is_hub_config(json) && json["model_type"] == clip_type,
        "'{}' is no model of images and texts: the \"model_type\" in its {} is not '{}'", folder.string(), config_file,
        clip_type);
  JointModel model = make_clip(json, path.string(), {.fill = fill});
  const VitConfig& vision = model.net->config().vision;
  read_preprocessor(folder, model.pretrained);
  check(model.pretrained.height == vision.img_size[0] && model.pretrained.width == vision.img_size[1],
        "'{}': its preprocessor_config.json makes images of {} x {} pixels, but the model takes {} x {}",
        folder.string(), model.pretrained.height, model.pretrained.width, vision.img_size[0], vision.img_size[1]);
  if (fill != nn::Fill::meta) {
    const io::StoredTensors file = open_weights(folder);
    const WeightsTarget target{.parameters = model.net->parameters,
                               .prefix = "",
                               .is_head = [](const std::string&) { return false; },
                               .adapt = {}};
    load_weights(target, file, {clip_names, ""}, {});
  }
  return model;
}

JointModel create_clip(const std::string& config, const std::string& source, const nn::StoreOptions& store) {
  return make_clip(io::parse_json(config, source), source, store);
}

std::vector<std::pair<std::string, Tensor>> clip_tensors(const std::string& name, const Tensor& value) {
  return NameMap(clip_names, "").split(name, value);
}

void write_clip(const JointModel& model, const fs::path& folder, DType dtype) {
  nlohmann::ordered_json config;
  config["architectures"] = {"CLIPModel"};
  config["model_type"] = clip_type;
  config.update(nlohmann::ordered_json::parse(model.config));
  config["architectures"] = {"CLIPModel"};
  config["model_type"] = clip_type;
  config.erase("torch_dtype");  // the older name
  config["dtype"] = dtype == DType::bf16 ? "bfloat16" : "float32";
  config.erase(own_object);
  io::NamedTensors tensors;
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    if (parameter.name == "logit_bias") {  // which CLIPModel does not have
      config[own_object] = {{"logit_bias", shortest(parameter.value.item())}};
      continue;
    }
    for (auto& entry : clip_tensors(parameter.name, parameter.value.detach())) {
      tensors.push_back(std::move(entry));
    }
  }
  nlohmann::ordered_json processor = preprocessor_json(model.pretrained);
  if (processor["image_processor_type"] == "BitImageProcessor") {  // of which CLIP's is a copy
    processor["image_processor_type"] = "CLIPImageProcessor";
  }
  io::write_atomically(folder / config_file, config.dump(2) + "\n");
  io::write_atomically(folder / "preprocessor_config.json", processor.dump(2) + "\n");
  io::save_safetensors(folder / weights_file, stored_as(std::move(tensors), dtype));
}

}  // namespace vitrail::models
