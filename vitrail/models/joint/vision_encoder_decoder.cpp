#include "vitrail/models/joint/vision_encoder_decoder.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/base/adapt.h"
#include "vitrail/models/base/owner.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/models/formats/generation_fields.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/formats/preprocessor.h"
#include "vitrail/models/formats/stored.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/recurrent/image_encoder.h"
#include "vitrail/models/text/decoder.h"
#include "vitrail/models/text/gpt2.h"
#include "vitrail/nn/positions/position.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view encoder_prefix = "encoder.";
constexpr const char* rates_key = "drop_rates";  // of a timm model, beside what transformers reads of the encoder

// The names of a file's tensors: those of the decoder and between the two are the network's own, those of the encoder
// are the ones of its kind.
std::vector<NameRule> names_of(std::span<const NameRule> encoder, bool tied_head) {
  std::vector<NameRule> rules = {{"", "decoder.transformer.h.#.attn.bias"},  // the masks of older versions
                                 {"", "decoder.transformer.h.#.attn.masked_bias"},
                                 {"", "decoder.transformer.h.#.crossattention.bias"},
                                 {"", "decoder.transformer.h.#.crossattention.masked_bias"}};
  if (tied_head) {
    rules.push_back({"", "decoder.lm_head.weight"});
  }
  rules.push_back({"decoder.@", "decoder.@"});
  rules.push_back({"enc_to_dec_proj.@", "enc_to_dec_proj.@"});
  rules.insert(rules.end(), encoder.begin(), encoder.end());
  return rules;
}

// The token of a field of a config, or the first of several.
std::optional<std::int64_t> token_in(const nlohmann::json& config, const char* key) {
  const auto at = config.find(key);
  if (at != config.end() && at->is_number_integer()) {
    return at->get<std::int64_t>();
  }
  if (at != config.end() && at->is_array() && !at->empty() && at->front().is_number_integer()) {
    return at->front().get<std::int64_t>();
  }
  return std::nullopt;
}

// The tokens that texts begin and end with: transformers' generate() looks into generation_config.json first.
void read_tokens(const nlohmann::json& generation, const nlohmann::json& config, Captioner& model) {
  for (const auto& [json, key] :
       {std::pair(&generation, "decoder_start_token_id"), std::pair(&generation, "bos_token_id"),
        std::pair(&config, "decoder_start_token_id")}) {
    if (const auto token = token_in(*json, key)) {
      model.start = *token;
      break;
    }
  }
  const auto end = token_in(generation, "eos_token_id");
  model.end = (end ? end : token_in(config, "eos_token_id")).value_or(model.end);
}

// The generation_config.json of a folder that has none: transformers makes it of its config's fields, or its decoder's.
std::string generation_config_of(const nlohmann::json& config, const Captioner& model) {
  OrderedJson generation = {{"decoder_start_token_id", model.start},
                            {"bos_token_id", model.start},
                            {"eos_token_id", model.end},
                            {"pad_token_id", model.end}};
  for (const auto& field : generation_defaults()) {
    const char* const key = field.first;
    for (const nlohmann::json* json : {&config, &config["decoder"]}) {
      if (json->contains(key) && !(*json)[key].is_null()) {
        generation[key] = (*json)[key];
        break;
      }
    }
  }
  return generation.dump(2) + "\n";
}

Model read_image_model(io::Fields& f, const nlohmann::json& config, const fs::path& folder,
                       std::span<const NameRule>& names) {
  f.object("encoder");
  nlohmann::json encoder = config["encoder"];
  for (const char* key : {"architectures", "id2label", "label2id"}) {  // the weights are those of the bare model
    encoder.erase(key);
  }
  FolderConfig folder_config = read_hub_folder(encoder, folder);
  folder_config.num_classes = 0;
  names = folder_config.names;
  if (encoder.contains(own_object) && encoder[own_object].contains(rates_key)) {
    const nlohmann::json rates = encoder[own_object][rates_key];
    for (const auto& [key, rate] : rates.items()) {
      check(is_drop_rate(key), "{}: 'encoder': '{}': there is no rate '{}'", f.source(), rates_key, key);
      folder_config.model_args[key] = rate;
    }
  }
  Model model = build_model(folder_config.architecture, folder_config.arguments(), f.source() + ": 'encoder'",
                            {.fill = nn::Fill::leave});
  keep_drop_rates(model, folder_config.model_args);
  const PretrainedConfig built = std::exchange(model.pretrained, folder_config.pretrained);
  check_prepared_size(folder, model.pretrained, {built.height, built.width});
  return model;
}

bool has_hub_form(const Model& model) {
  try {
    hub_form_of(model);
    return true;
  } catch (const Error&) {  // which says why not
    return false;
  }
}

void check_tokens(const VisionEncoderDecoder& model, const std::string& source) {
  for (const auto& [token, what] : {std::pair(model.start, "begins"), std::pair(model.end, "ends")}) {
    check(token >= 0 && token < model.vocab_size(), "{}: the token that {} a text, {}, is none of the decoder's {}",
          source, what, token, model.vocab_size());
  }
}

}  // namespace

VisionEncoderDecoder::VisionEncoderDecoder(Model pictures, const std::string& decoder, const std::string& source,
                                           std::int64_t encoder_layers)
    : in_transformers_(encoder_layers == 0 && has_hub_form(pictures)),
      decoder_config_(decoder),
      encoder_layers_(encoder_layers) {
  image_model = std::move(pictures);
  adopt_encoder(image_model, parameters, source);
  const std::int64_t features = image_model.net->num_features();
  const nlohmann::json json = io::parse_json(decoder, source);
  io::Fields f(json, source);
  const CrossDecoderConfig c = read_gpt2_cross_decoder(f);
  const auto asked = f.optional<std::int64_t>("cross_attention_hidden_size", positive);
  check(asked.value_or(c.dim) == c.dim && (!asked || features == c.dim),
        "{}: 'cross_attention_hidden_size' {} is neither the encoder's width, {}, nor the decoder's, {}", source,
        asked.value_or(0), features, c.dim);
  start = f.optional<std::int64_t>("bos_token_id", {0, largest_size}).value_or(0);
  end = f.optional<std::int64_t>("eos_token_id", {0, largest_size}).value_or(start);

  const nn::Scope root(parameters);
  const nn::InitRule init = gpt_init(static_cast<float>(f.get<double>("initializer_range", 0.02, {0, 10})),
                                     {".c_proj.weight"}, gpt_scale(c.depth));
  if (encoder_layers > 0) {
    map_encoder_.emplace(root / "map_encoder", features, c.dim, encoder_layers);
  } else if (features != c.dim) {
    projection_.emplace(root.with_init(init) / "enc_to_dec_proj", features, c.dim);
  }
  const nn::Scope own = (root / "decoder").with_init(init);
  decoder_.emplace(own, c, nn::Embedding(own / c.names.embedding, c.vocab_size, c.dim));
  initialize_own(parameters, is_own);
}

Tensor VisionEncoderDecoder::look(const Tensor& x, nn::Pass& pass) const {
  Tensor tokens = image_model.net->forward_features(x, pass);
  const std::int64_t dim = image_model.net->num_features();
  const TokenLayout layout = image_model.net->token_layout(x.size(2), x.size(3));
  nn::Size2 grid = {layout.rows, layout.columns};
  const bool is_map = tokens.rank() == 4;
  if (is_map) {
    const bool channels_last = tokens.size(3) == dim;
    const Tensor map = channels_last ? tokens : ops::permute(tokens, {0, 2, 3, 1});
    grid = {map.size(1), map.size(2)};
    tokens = ops::reshape(map, {map.size(0), grid[0] * grid[1], dim});
  }
  check(tokens.rank() == 3, "the decoder attends to an image's tokens [B, M, D], and '{}' gives features {}",
        image_model.architecture, tokens.shape());
  tokens = ops::cast(tokens, pass.dtype);
  if (map_encoder_) {
    return (*map_encoder_)(tokens, grid, is_map ? 0 : layout.prefix, pass);
  }
  if (is_map && !in_transformers_) {
    tokens = tokens + ops::cast(nn::sincos_positions(grid, dim, 0), pass.dtype);
  }
  return projection_ ? (*projection_)(tokens) : tokens;
}

Tensor VisionEncoderDecoder::logits(const Tensor& x, const Texts& texts, nn::Pass& pass) const {
  const Tensor memory = look(x, pass);
  if (!texts.offsets.defined()) {
    return decoder_->head((*decoder_)(texts, decoder_->remember(memory), pass, nullptr, "caption"));
  }
  const CrossDecoder::Sources sources = sources_in_a_row(decoder_->remember(memory), texts.offsets.numel() - 1);
  return decoder_->head((*decoder_)(texts, sources, pass, nullptr, "caption"));
}

std::unique_ptr<TextState> VisionEncoderDecoder::begin(const Tensor& x, nn::Pass& pass,
                                                       std::optional<DType> cache) const {
  return std::make_unique<CrossDecoderState>(decoder_->remember(look(x, pass)), cache);
}

TextShape VisionEncoderDecoder::decoder_shape() const {
  const CrossDecoderConfig& c = decoder_->config();
  return {.vocab_size = c.vocab_size,
          .max_positions = c.max_positions,
          .depth = c.depth,
          .dim = c.dim,
          .num_heads = c.block.attention.num_heads,
          .num_kv_heads = c.block.attention.num_heads};
}

std::size_t VisionEncoderDecoder::state_bytes(std::int64_t tokens, DType dtype) const {
  const PretrainedConfig& images = image_model.pretrained;
  const TokenLayout layout = image_model.net->token_layout(images.height, images.width);
  return decoder_->state_bytes(layout.prefix + layout.rows * layout.columns, tokens, dtype);
}

std::vector<std::string> VisionEncoderDecoder::cross_attention() const {
  const CrossDecoderConfig& c = decoder_->config();
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < c.depth; ++i) {
    names.push_back(fmt::format("decoder.{}.{}.{}", c.names.blocks, i, c.block.names.cross));
  }
  return names;
}

std::int64_t VisionEncoderDecoder::layer_of(const std::string& parameter) const {
  const std::int64_t below = image_model.net->depth();
  if (!is_own(parameter)) {
    return std::min(image_model.net->layer_of(parameter), below);
  }
  if (const auto block = index_after(parameter, "decoder." + decoder_->config().names.blocks + ".")) {
    return below + *block + 1;
  }
  const bool between = parameter.starts_with("enc_to_dec_proj.") || parameter.starts_with("map_encoder.");
  return between || parameter.starts_with("decoder.transformer.w") ? below : depth() + 1;
}

void VisionEncoderDecoder::write_own(const fs::path& folder, DType dtype) const {
  OrderedJson decoder = OrderedJson::parse(decoder_config_);
  decoder["bos_token_id"] = start;
  decoder["eos_token_id"] = end;
  const OrderedJson config = {{"model_type", attending_captioner_type},
                              {"encoder", encoder_json(image_model)},
                              {"encoder_layers", encoder_layers_},
                              {"decoder", decoder}};
  io::write_atomically(folder / config_file, config.dump(2) + "\n");
  io::save_safetensors(folder / weights_file, stored_as(named_tensors(parameters), dtype));
  write_generation_config(folder);
}

void VisionEncoderDecoder::write(const fs::path& folder, DType dtype) const {
  if (!in_transformers_) {
    write_own(folder, dtype);
    return;
  }
  const HubForm form = hub_form_of(image_model);
  OrderedJson encoder = {{"model_type", form.model_type}};
  encoder.update(form.config);
  encoder[own_object]["architecture"] = image_model.architecture;
  if (const nlohmann::json rates = drop_rates_in(nlohmann::json::parse(image_model.arguments)); !rates.empty()) {
    encoder[own_object][rates_key] = rates;
  }
  OrderedJson decoder = OrderedJson::parse(decoder_config_);
  decoder["model_type"] = "gpt2";
  decoder["is_decoder"] = true;
  decoder["add_cross_attention"] = true;
  decoder.emplace("bos_token_id", start);
  decoder.emplace("eos_token_id", end);
  const OrderedJson config = {{"architectures", {"VisionEncoderDecoderModel"}},
                              {"model_type", vision_encoder_decoder_type},
                              {"encoder", encoder},
                              {"decoder", decoder},
                              {"decoder_start_token_id", start},
                              {"eos_token_id", end},
                              {"pad_token_id", end},
                              {"is_encoder_decoder", true},
                              {"tie_word_embeddings", false},
                              {"dtype", dtype == DType::bf16 ? "bfloat16" : "float32"}};
  OrderedJson generation = OrderedJson::parse(generation_config.empty() ? "{}" : generation_config);
  generation.emplace("decoder_start_token_id", start);
  generation.emplace("bos_token_id", start);
  generation.emplace("eos_token_id", end);
  generation.emplace("pad_token_id", end);

  io::NamedTensors tensors;
  const std::vector<NameRule> rules = names_of(form.names, decoder_->config().tied_head);
  const NameMap names(rules, std::string(encoder_prefix));
  for (const nn::Parameter& parameter : parameters.all()) {
    for (auto& entry : names.split(parameter.name, parameter.value.detach())) {
      tensors.push_back(std::move(entry));
    }
  }
  if (form.model_type == "vit" || form.model_type == "deit") {  // what no decoder reads
    const std::int64_t dim = image_model.net->num_features();
    tensors.emplace_back("encoder.pooler.dense.weight", Tensor::zeros({dim, dim}));
    tensors.emplace_back("encoder.pooler.dense.bias", Tensor::zeros({dim}));
  }
  for (const auto& [name, shape] : form.zeros) {
    const bool of_prefix = !form.prefix.empty() && name.starts_with(form.prefix);
    tensors.emplace_back(std::string(encoder_prefix) + (of_prefix ? name.substr(form.prefix.size()) : name),
                         Tensor::zeros(shape));
  }
  io::write_atomically(folder / config_file, config.dump(2) + "\n");
  io::write_atomically(folder / generation_file, generation.dump(2) + "\n");
  io::write_atomically(folder / "preprocessor_config.json", preprocessor_json(image_model.pretrained).dump(2) + "\n");
  io::save_safetensors(folder / weights_file, stored_as(join_parts(std::move(tensors)), dtype));
}

std::unique_ptr<Captioner> load_vision_encoder_decoder(const fs::path& folder) {
  const std::string source = (folder / config_file).string();
  const nlohmann::json config = read_config(folder);
  io::Fields f(config, source);
  f.object("decoder");  // the network reads it
  const auto kind = f.object("decoder").get<std::string>("model_type", "bert");
  check(kind == "gpt2", "{}: the decoder is a '{}', expected 'gpt2'", source, kind);
  std::span<const NameRule> encoder_names;
  Model image_model = read_image_model(f, config, folder, encoder_names);
  auto model =
      std::make_unique<VisionEncoderDecoder>(std::move(image_model), config["decoder"].dump(), source + ": 'decoder'");
  nlohmann::json generation = nlohmann::json::object();
  if (fs::exists(folder / generation_file)) {
    generation = io::read_json(folder / generation_file);
    check(generation.is_object(), "{}: expected an object", (folder / generation_file).string());
  }
  read_tokens(generation, config, *model);
  if (generation.empty()) {
    model->generation_config = generation_config_of(config, *model);
  }
  check_tokens(*model, source);
  const io::StoredTensors file = open_weights(folder);
  WeightsTarget target = whole_network(model->parameters);
  target.adapt = [net = model->image_model.net.get()](const std::string& name, const Tensor& value, const Shape& wanted,
                                                      const nn::Size2& size) {
    return net->adapt(name, value, wanted, size);
  };
  const std::vector<NameRule> rules = names_of(encoder_names, model->tied_head());
  const PretrainedConfig& images = model->image_model.pretrained;
  load_weights(target, file, {rules, std::string(encoder_prefix)}, {images.height, images.width});
  return model;
}

std::unique_ptr<Captioner> load_attending_captioner(const fs::path& folder) {
  const std::string source = (folder / config_file).string();
  const nlohmann::json config = read_config(folder);
  io::Fields f(config, source);
  f.ignore("model_type");
  f.object("decoder");  // the network reads it
  const auto layers = f.get<std::int64_t>("encoder_layers", 0, {0, most_encoder_layers});
  Model image_model = read_encoder(f);
  f.finish();
  auto model = std::make_unique<VisionEncoderDecoder>(std::move(image_model), config["decoder"].dump(),
                                                      source + ": 'decoder'", layers);
  check_tokens(*model, source);
  const WeightsTarget target = whole_network(model->parameters);
  load_weights(target, open_weights(folder), {}, {});
  return model;
}

}  // namespace vitrail::models
