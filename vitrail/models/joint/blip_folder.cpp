#include "vitrail/models/joint/blip_folder.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
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

constexpr const char* blip_type = "blip";
constexpr std::string_view vision_prefix = "vision_model.";

// Texts have transformers' own names; older files have what is tied twice, and a buffer of places.
constexpr std::array<NameRule, 13> names_of_answerer = {
    {{"vision_model.cls_token", "vision_model.embeddings.class_embedding"},
     {"vision_model.pos_embed", "vision_model.embeddings.position_embedding"},
     {"vision_model.patch_embed.proj.@", "vision_model.embeddings.patch_embedding.@"},
     {"vision_model.blocks.#.norm1.@", "vision_model.encoder.layers.#.layer_norm1.@"},
     {"vision_model.blocks.#.attn.qkv.@", "vision_model.encoder.layers.#.self_attn.qkv.@"},
     {"vision_model.blocks.#.attn.proj.@", "vision_model.encoder.layers.#.self_attn.projection.@"},
     {"vision_model.blocks.#.norm2.@", "vision_model.encoder.layers.#.layer_norm2.@"},
     {"vision_model.blocks.#.@", "vision_model.encoder.layers.#.@"},
     {"vision_model.norm.@", "vision_model.post_layernorm.@"},
     {"", "text_encoder.embeddings.position_ids"},
     {"", "text_decoder.bert.embeddings.position_ids"},
     {"", "text_decoder.cls.predictions.decoder.@"},
     {"@", "@"}}};

bool is_blip(const Json& json) { return is_hub_config(json) && json["model_type"] == blip_type; }

VitConfig read_vision(io::Fields& f) {
  VitConfig c;
  c.img_size = read_size(f, "image_size", {384, 384});
  c.patch_size = read_size(f, "patch_size", {16, 16});
  c.num_classes = 0;
  c.embed_dim = f.get<std::int64_t>("hidden_size", 768, positive);
  c.depth = f.get<std::int64_t>("num_hidden_layers", 12, most_layers);
  c.num_heads = f.get<std::int64_t>("num_attention_heads", 12, positive);
  check(c.embed_dim % c.num_heads == 0, "{}: the width {} cannot be divided among {} heads", f.source(), c.embed_dim,
        c.num_heads);
  c.mlp_hidden = f.get<std::int64_t>("intermediate_size", 3072, positive);
  c.act_layer = ops::activation_named(timm_activation(f, "hidden_act", "gelu"));
  c.norm_layer.eps = static_cast<float>(f.get<double>("layer_norm_eps", 1e-5, {0, 1}));
  c.attn_drop_rate = f.get<double>("attention_dropout", 0, {0, 1});
  return c;
}

void read_texts(io::Fields& f, BlipConfig& config) {
  BlipTextConfig& c = config.text;
  c.vocab_size = f.get<std::int64_t>("vocab_size", c.vocab_size, positive);
  c.max_positions = f.get<std::int64_t>("max_position_embeddings", c.max_positions, positive);
  c.dim = f.get<std::int64_t>("hidden_size", c.dim, positive);
  c.depth = f.get<std::int64_t>("num_hidden_layers", c.depth, most_layers);
  c.num_heads = f.get<std::int64_t>("num_attention_heads", c.num_heads, positive);
  check(c.dim % c.num_heads == 0, "{}: the width {} cannot be divided among {} heads", f.source(), c.dim, c.num_heads);
  c.hidden = f.get<std::int64_t>("intermediate_size", c.hidden, positive);
  c.activation = ops::activation_named(timm_activation(f, "hidden_act", "gelu"));
  c.eps = static_cast<float>(f.get<double>("layer_norm_eps", 1e-12, {0, 1}));
  c.drop = static_cast<float>(f.get<double>("hidden_dropout_prob", 0, {0, 1}));
  c.attn_drop = static_cast<float>(f.get<double>("attention_probs_dropout_prob", 0, {0, 1}));
  c.init_std = static_cast<float>(f.get<double>("initializer_range", 0.02, {0, 10}));
  check(f.get<bool>("tie_word_embeddings", true), "{}: 'tie_word_embeddings': a free head is not supported",
        f.source());
  const io::Range token{0, static_cast<double>(c.vocab_size - 1)};
  config.bos_token_id = f.optional<std::int64_t>("bos_token_id", token).value_or(30522);
  config.sep_token_id = f.optional<std::int64_t>("sep_token_id", token).value_or(102);
  config.pad_token_id = f.optional<std::int64_t>("pad_token_id", token).value_or(0);
  c.padding = config.pad_token_id;
}

// The class that a config.json names first; that of an answerer if it names none.
std::string class_of(const Json& json) {
  const auto classes = json.find("architectures");
  const bool named = classes != json.end() && classes->is_array() && !classes->empty() && classes->front().is_string();
  return named ? classes->front().get<std::string>() : blip_answerer_class;
}

BlipConfig read_blip(const Json& json, const std::string& source, const std::string& wanted) {
  io::Fields f(json, source);
  const std::string name = class_of(json);
  check(name == blip_answerer_class || name == blip_captioner_class,
        "{}: the architecture '{}' is neither transformers' {} nor {}, which are what vitrail reads of BLIP", source,
        name, blip_answerer_class, blip_captioner_class);
  check(name == wanted, "{}: the architecture is {}, expected {}", source, name, wanted);
  BlipConfig config;
  io::Fields vision(hub_tower(f, "vision_config"), source + ": 'vision_config'");
  config.vision = read_vision(vision);
  io::Fields text(hub_tower(f, "text_config"), source + ": 'text_config'");
  read_texts(text, config);
  config.text.context_dim = config.vision.embed_dim;  // transformers' config ignores its own encoder_hidden_size too
  return config;
}

PretrainedConfig images_of(const BlipConfig& config) {
  PretrainedConfig images = hub_tower_images(config.vision, false);
  images.crop_mode = "squash";
  return images;
}

}  // namespace

std::string blip_class_in(const fs::path& given) {
  const fs::path folder = shipped_or(given);
  return model_type_in(folder) == blip_type ? class_of(io::read_json(folder / config_file)) : "";
}

bool is_blip_folder(const fs::path& folder) {
  const std::string name = blip_class_in(folder);
  return !name.empty() && name != blip_captioner_class;
}

BlipFiles read_blip_folder(const fs::path& folder, const std::string& architecture) {
  const fs::path path = folder / config_file;
  const Json json = read_config(folder);
  check(is_blip(json), "'{}' is no BLIP: the \"model_type\" in its {} is not '{}'", folder.string(), config_file,
        blip_type);
  BlipFiles files{read_blip(json, path.string(), architecture), {}, json.dump()};
  files.images = images_of(files.sizes);
  read_preprocessor(folder, files.images);
  check_prepared_size(folder, files.images, files.sizes.vision.img_size);
  return files;
}

BlipModel load_blip(const fs::path& given, nn::Fill fill, float drop) {
  const fs::path folder = shipped_or(given);
  BlipFiles files = read_blip_folder(folder, blip_answerer_class);
  if (drop > 0) {
    files.sizes.text.drop = drop;
  }
  BlipModel model{std::make_unique<Blip>(files.sizes, nn::StoreOptions{.fill = fill}), std::move(files.images),
                  std::move(files.config)};
  if (fill != nn::Fill::meta) {
    load_weights(whole_network(model.net->parameters), open_weights(folder), {blip_names(), ""}, {}, {});
  }
  return model;
}

BlipModel create_blip(const std::string& config, const std::string& source, const nn::StoreOptions& store) {
  const BlipConfig sizes = read_blip(io::parse_json(config, source), source, blip_answerer_class);
  return {std::make_unique<Blip>(sizes, store), images_of(sizes), config};
}

std::span<const NameRule> blip_names() { return names_of_answerer; }

std::span<const NameRule> blip_captioner_names() {
  static const std::vector<NameRule> names = [] {
    std::vector<NameRule> all;
    for (NameRule rule : names_of_answerer) {
      if (rule.own.starts_with(vision_prefix)) {
        rule.own.remove_prefix(vision_prefix.size());
        all.push_back(rule);
      } else if (rule.theirs.starts_with("text_decoder.")) {
        all.push_back(rule);
      }
    }
    all.push_back({"decoder.@", "text_decoder.@"});
    return all;
  }();
  return names;
}

io::NamedTensors blip_tensors(const nn::ParameterStore& parameters, std::span<const NameRule> names,
                              const std::function<Tensor(const nn::Parameter&)>& value) {
  io::NamedTensors tensors;
  const NameMap map(names, "");
  for (const nn::Parameter& parameter : parameters.all()) {
    for (auto& entry : map.split(parameter.name, value(parameter))) {
      tensors.push_back(std::move(entry));
    }
  }
  return tensors;
}

void write_blip_folder(const fs::path& folder, BlipContent content) {
  nlohmann::ordered_json config;
  const auto say_class = [&] {
    config["architectures"] = {content.architecture};
    config["model_type"] = blip_type;
  };
  say_class();
  config.update(nlohmann::ordered_json::parse(content.config));
  say_class();
  config.erase("torch_dtype");  // the older name
  config["dtype"] = content.dtype == DType::bf16 ? "bfloat16" : "float32";
  nlohmann::ordered_json processor = preprocessor_json(content.images);
  processor["image_processor_type"] = "BlipImageProcessor";
  io::write_atomically(folder / config_file, config.dump(2) + "\n");
  io::write_atomically(folder / "preprocessor_config.json", processor.dump(2) + "\n");
  io::save_safetensors(folder / weights_file, stored_as(std::move(content.tensors), content.dtype));
}

void write_blip(const BlipModel& model, const fs::path& folder, DType dtype) {
  write_blip_folder(folder, {.config = model.config,
                             .architecture = blip_answerer_class,
                             .images = model.pretrained,
                             .tensors = blip_tensors(model.net->parameters, blip_names(),
                                                     [](const nn::Parameter& p) { return p.value.detach(); }),
                             .dtype = dtype});
}

}  // namespace vitrail::models
