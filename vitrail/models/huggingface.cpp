#include "vitrail/models/huggingface.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/suggest.h"
#include "vitrail/models/arguments.h"
#include "vitrail/models/family.h"
#include "vitrail/models/huggingface_names.h"
#include "vitrail/models/mae.h"
#include "vitrail/models/quantize.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;
using ops::Activation;

constexpr io::Range positive{1, largest_size};

// ---- numbers, names and sides in both notations ----

struct HubActivation {
  std::string_view theirs;
  std::string_view timm;
  Activation activation;
};
constexpr std::array<HubActivation, 7> activations = {{{"gelu", "gelu", Activation::gelu},
                                                       {"gelu_new", "gelu_tanh", Activation::gelu_tanh},
                                                       {"gelu_pytorch_tanh", "gelu_tanh", Activation::gelu_tanh},
                                                       {"quick_gelu", "quick_gelu", Activation::quick_gelu},
                                                       {"relu", "relu", Activation::relu},
                                                       {"silu", "silu", Activation::silu},
                                                       {"swish", "silu", Activation::silu}}};

std::string timm_activation(io::Fields& f) {
  std::vector<std::string> known;
  known.reserve(activations.size());
  for (const HubActivation& a : activations) {
    known.emplace_back(a.theirs);
  }
  const std::string name = f.choice("hidden_act", "gelu", known);
  return std::string(std::ranges::find(activations, name, &HubActivation::theirs)->timm);
}

std::string hub_activation(Activation activation) {
  const auto it = std::ranges::find(activations, activation, &HubActivation::activation);
  check(it != activations.end(), "transformers has no layers with this activation");
  return std::string(it->theirs);
}

// One number for a square.
Json side(const nn::Size2& size) { return size[0] == size[1] ? Json(size[0]) : Json({size[0], size[1]}); }

// The mlp_ratio that gives exactly `hidden` units, by the truncation that timm has: int(dim · ratio).
double ratio_for(std::int64_t dim, std::int64_t hidden) {
  double ratio = static_cast<double>(hidden) / static_cast<double>(dim);
  while (static_cast<std::int64_t>(static_cast<double>(dim) * ratio) < hidden) {
    ratio = std::nextafter(ratio, 1e9);
  }
  return ratio;
}

std::int64_t hidden_of(const VitConfig& c) {
  return static_cast<std::int64_t>(static_cast<double>(c.embed_dim) * c.mlp_ratio);
}

// The hidden units of DINOv2's Mlp. A gated one has two thirds of them, rounded up to a multiple of 8, twice: for the
// gate and for what goes through it.
std::int64_t dino_hidden(std::int64_t dim, double ratio, bool gated) {
  const auto hidden = static_cast<std::int64_t>(static_cast<double>(dim) * ratio);
  return gated ? 2 * ((static_cast<std::int64_t>(static_cast<double>(hidden) * 2 / 3) + 7) / 8 * 8) : hidden;
}

// ---- reading ----

// timm's name for a model of these sizes, if the registry has one, or `otherwise`.
std::string nearest_architecture(const std::string& pattern, std::int64_t width, const std::string& otherwise) {
  static const std::map<std::int64_t, std::string> sizes = {{192, "tiny"},   {384, "small"}, {768, "base"},
                                                            {1024, "large"}, {1280, "huge"}, {1536, "giant"}};
  const auto size = sizes.find(width);
  if (size == sizes.end()) {
    return otherwise;
  }
  std::string name = fmt::format(fmt::runtime(pattern), size->second);
  const bool known = std::ranges::find(architectures(), name, &Architecture::name) != architectures().end();
  return known ? name : otherwise;
}

// Arguments over an architecture's own: those that say the same, or timm's default, are left out.
class Arguments {
 public:
  Arguments(FolderConfig& folder, const std::string& architecture)
      : folder_(folder), own_(default_arguments(find_architecture(architecture), "")) {
    folder.architecture = architecture;
  }
  void set(const std::string& key, const Json& value, const Json& default_value) {
    if (own_.contains(key) ? own_[key] != value : value != default_value) {
      folder_.model_args[key] = value;
    }
  }

 private:
  FolderConfig& folder_;
  Json own_;
};

// What the checkpoint is of: a classifier, or the bare model.
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

// Names by class, from "id2label": {"0": "cat", …}. transformers has two classes where it says nothing, and LABEL_0 …
// where it knows no names.
void read_labels(io::Fields& f, FolderConfig& folder) {
  if (f.kind("id2label") == io::Kind::absent || f.kind("id2label") == io::Kind::null) {
    folder.num_classes = f.get<std::int64_t>("num_labels", 2, {0, largest_size});
    return;
  }
  const io::Fields checked = f.object("id2label");
  const Json& labels = f.raw("id2label");
  const std::size_t count = labels.size();
  std::vector<std::string> names(count);
  bool any_name = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = std::to_string(i);
    check(labels.contains(key) && labels[key].is_string(),
          "{}: 'id2label' has {} entries, but none that names class {}", f.source(), count, i);
    names[i] = labels[key].get<std::string>();
    any_name = any_name || names[i] != "LABEL_" + key;
  }
  folder.num_classes = static_cast<std::int64_t>(count);
  if (any_name) {
    folder.pretrained.label_names = names;
  }
}

void set_encoder(Arguments& arguments, const VitConfig& c, const Json& norm, const std::string& activation) {
  arguments.set("img_size", side(c.img_size), nullptr);
  arguments.set("patch_size", side(c.patch_size), 16);
  arguments.set("in_chans", c.in_chans, 3);
  arguments.set("embed_dim", c.embed_dim, 768);
  arguments.set("depth", c.depth, 12);
  arguments.set("num_heads", c.num_heads, 12);
  arguments.set("mlp_ratio", c.mlp_ratio, 4.0);
  arguments.set("qkv_bias", c.qkv_bias, true);
  arguments.set("act_layer", activation, "gelu");
  arguments.set("norm_layer", norm, nullptr);
}

// timm's own epsilon is 1e-6.
Json norm_argument(float eps) {
  if (eps == 1e-6F) {
    return nullptr;
  }
  return {"layernorm", std::stod(fmt::format("{}", eps))};  // the shortest text of the float
}

void read_picture_size(const VitConfig& c, FolderConfig& folder) {
  folder.input_size = {c.in_chans, c.img_size[0], c.img_size[1]};
}

// The encoder that all of them have in common.
VitConfig read_encoder(io::Fields& f) {
  VitConfig c;
  read_hub_encoder(f, c);
  return c;
}

std::string plain_name(const VitConfig& c, const std::string& pattern, const std::string& otherwise) {
  return nearest_architecture(fmt::format(fmt::runtime(pattern), "{}", c.patch_size[0]), c.embed_dim, otherwise);
}

void read_vit(io::Fields& f, FolderConfig& folder) {
  const VitConfig c = read_encoder(f);
  Arguments arguments(folder, plain_name(c, "vit_{}_patch{}_224", "vit_base_patch16_224"));
  set_encoder(arguments, c, norm_argument(c.norm_layer.eps), timm_activation(f));
  read_picture_size(c, folder);
  folder.num_classes = 0;
  if (is_classifier(f, {"ViTForImageClassification"}, {"ViTModel", "ViTForMaskedImageModeling"})) {
    read_labels(f, folder);
  }
  folder.pretrained.crop_mode = "squash";  // ViTImageProcessor's ways, unless a preprocessor_config.json says others
  folder.pretrained.crop_pct = 1;
  folder.pretrained.interpolation = "bilinear";
  folder.names = hub_vit_names();
  folder.prefix = "vit.";
}

// The masked autoencoder's encoder, to be fine-tuned; mae.h reads all of it.
void read_vit_mae(io::Fields& f, FolderConfig& folder) {
  const VitConfig c = read_encoder(f);
  Arguments arguments(folder, plain_name(c, "vit_{}_patch{}_224", "vit_base_patch16_224"));
  set_encoder(arguments, c, norm_argument(c.norm_layer.eps), timm_activation(f));
  read_picture_size(c, folder);
  folder.num_classes = 0;
  is_classifier(f, {}, {"ViTMAEForPreTraining", "ViTMAEModel"});
  const PretrainedConfig imagenet = pretrained_of(find_architecture("deit_base_patch16_224"), "");
  folder.pretrained.mean = imagenet.mean;
  folder.pretrained.std = imagenet.std;
  folder.names = hub_vit_names();
  folder.prefix = "vit.";
}

void read_deit(io::Fields& f, FolderConfig& folder) {
  const VitConfig c = read_encoder(f);
  const std::string teacher = "DeiTForImageClassificationWithTeacher";
  const bool classifies =
      is_classifier(f, {"DeiTForImageClassification", teacher}, {"DeiTModel", "DeiTForMaskedImageModeling"});
  const bool distilled = classifies && f.get<std::vector<std::string>>("architectures").front() == teacher;
  Arguments arguments(folder, distilled
                                  ? plain_name(c, "deit_{}_distilled_patch{}_224", "deit_base_distilled_patch16_224")
                                  : plain_name(c, "deit_{}_patch{}_224", "deit_base_patch16_224"));
  set_encoder(arguments, c, norm_argument(c.norm_layer.eps), timm_activation(f));
  if (!distilled) {  // the distillation token is there, but no head reads it
    arguments.set("reg_tokens", 1, 0);
  }
  read_picture_size(c, folder);
  folder.num_classes = 0;
  if (classifies) {
    read_labels(f, folder);
  }
  folder.pretrained = [&] {
    PretrainedConfig p = pretrained_of(find_architecture(folder.architecture), "");
    p.label_names = folder.pretrained.label_names;
    p.crop_mode = "squash";
    p.crop_pct = 0.875;
    return p;
  }();
  folder.names = distilled ? hub_deit_with_teacher_names() : hub_deit_names();
  folder.prefix = "deit.";
}

void read_dino(io::Fields& f, FolderConfig& folder, bool registers) {
  VitConfig c = read_encoder(f);
  const auto ratio = f.get<double>("mlp_ratio", 4, {1e-3, 1e3});
  const bool gated = f.get<bool>("use_swiglu_ffn", false);
  const std::string activation = gated ? "silu" : timm_activation(f);
  c.mlp_ratio = ratio_for(c.embed_dim, dino_hidden(c.embed_dim, ratio, gated));
  const std::string middle = registers ? "_reg4" : "";
  const std::string fallback = fmt::format("vit_{}_patch14{}_dinov2", gated ? "giant" : "base", middle);
  const std::string near =
      nearest_architecture(fmt::format("vit_{{}}_patch{}{}_dinov2", c.patch_size[0], middle), c.embed_dim, fallback);
  Arguments arguments(folder, near.starts_with("vit_giant") == gated ? near : fallback);
  set_encoder(arguments, c, norm_argument(c.norm_layer.eps), activation);
  if (const auto scale = f.get<double>("layerscale_value", 1.0, {0, 1e3}); scale > 0) {
    arguments.set("init_values", scale, nullptr);
  } else {
    fail("{}: 'layerscale_value' must be above 0, not {}", f.source(), scale);
  }
  if (registers) {
    arguments.set("reg_tokens", f.get<std::int64_t>("num_register_tokens", 4, {1, 4096}), 0);
  }
  arguments.set("dynamic_img_size", true, false);
  folder.fixed_input_size = false;
  folder.num_classes = 0;
  if (is_classifier(f, {registers ? "Dinov2WithRegistersForImageClassification" : "Dinov2ForImageClassification"},
                    {registers ? "Dinov2WithRegistersModel" : "Dinov2Model"})) {
    read_labels(f, folder);
    arguments.set("global_pool", "token_avg", "token");
  }
  read_picture_size(c, folder);
  std::vector<std::string> labels = folder.pretrained.label_names;
  folder.pretrained = pretrained_of(find_architecture(folder.architecture), "");
  folder.pretrained.label_names = std::move(labels);
  folder.names = hub_dinov2_names(registers, gated);
  folder.prefix = registers ? "dinov2_with_registers." : "dinov2.";
}

void read_dinov2(io::Fields& f, FolderConfig& folder) { read_dino(f, folder, false); }
void read_dinov2_with_registers(io::Fields& f, FolderConfig& folder) { read_dino(f, folder, true); }

const std::array<std::string, 6> resamples = {"nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"};

// A size of preprocessor_config.json: {"height", "width"}, {"shortest_edge"}, or, in old files, a number.
struct ProcessorSize {
  nn::Size2 size = {0, 0};
  bool shortest_edge = false;
};
std::optional<ProcessorSize> read_processor_size(io::Fields& f, const char* key) {
  if (f.kind(key) == io::Kind::absent || f.kind(key) == io::Kind::null) {
    return std::nullopt;
  }
  if (f.kind(key) != io::Kind::object) {
    const nn::Size2 size = read_size(f, key, {});
    return ProcessorSize{size, false};
  }
  io::Fields inner = f.object(key);
  if (inner.kind("shortest_edge") != io::Kind::absent) {
    const auto edge = inner.get<std::int64_t>("shortest_edge", positive);
    return ProcessorSize{{edge, edge}, true};
  }
  return ProcessorSize{{inner.get<std::int64_t>("height", positive), inner.get<std::int64_t>("width", positive)},
                       false};
}

// The crop_pct by which timm resizes to `resized` before it crops `side`: ⌊side / crop_pct⌋ = resized.
double crop_pct_for(std::int64_t side, std::int64_t resized) {
  double pct = static_cast<double>(side) / static_cast<double>(resized);
  while (std::floor(static_cast<double>(side) / pct) < static_cast<double>(resized)) {
    pct = std::nextafter(pct, 0.0);
  }
  return pct;
}

// ---- writing ----

struct HubForm {
  std::string model_type;
  std::string architecture;
  std::span<const NameRule> names;
  std::string prefix;
  OrderedJson config;  // beyond what all have
};

HubForm dino_form(const VitConfig& c) {
  const bool registers = c.reg_tokens > 0;
  const bool gated = c.mlp_layer == nn::MlpKind::glu;
  check(!registers || c.no_embed_class, "transformers' Dinov2 has no positions for register tokens (no_embed_class)");
  check(registers || !c.no_embed_class, "transformers' Dinov2 has a position for the class token (no_embed_class)");
  check(c.num_classes == 0 || c.global_pool == nn::Pool::token_avg,
        "transformers' Dinov2 classifies by the class token beside the mean of the patches, and this model by its "
        "global_pool '{}'",
        name_of(c.global_pool));
  check(c.num_classes > 0 || c.global_pool == nn::Pool::token || c.global_pool == nn::Pool::token_avg,
        "transformers' Dinov2 has no global_pool '{}'", name_of(c.global_pool));
  HubForm form;
  form.model_type = registers ? "dinov2_with_registers" : "dinov2";
  const std::string start = registers ? "Dinov2WithRegisters" : "Dinov2";
  form.architecture = start + (c.num_classes > 0 ? "ForImageClassification" : "Model");
  form.names = hub_dinov2_names(registers, gated);
  form.prefix = form.model_type + ".";
  check(!gated || c.act_layer == Activation::silu, "transformers' gated Mlp has SiLU");
  std::int64_t ratio = 1;
  while (ratio < 64 && dino_hidden(c.embed_dim, static_cast<double>(ratio), gated) != hidden_of(c)) {
    ++ratio;
  }
  check(ratio < 64, "transformers' Dinov2 has a whole mlp_ratio, and none gives {} hidden units at the width {}",
        hidden_of(c), c.embed_dim);
  form.config["mlp_ratio"] = ratio;
  if (gated) {
    form.config["hidden_act"] = "gelu";  // what the config says where the gate's SiLU takes its place
  }
  form.config["use_swiglu_ffn"] = gated;
  form.config["layerscale_value"] = std::stod(fmt::format("{}", *c.init_values));
  if (registers) {
    form.config["num_register_tokens"] = c.reg_tokens;
  }
  return form;
}

HubForm hub_form(const VitConfig& c) {
  const std::string other = [&] {
    VitConfig plain = c;  // without what the kinds below differ in
    plain.reg_tokens = 0;
    plain.distilled = false;
    plain.init_values.reset();
    plain.no_embed_class = false;
    plain.mlp_layer = nn::MlpKind::mlp;
    return not_plain(plain);
  }();
  check(other.empty(), "transformers has no such model: {}", other);
  if (c.init_values && *c.init_values != 0) {
    return dino_form(c);
  }
  check(c.mlp_layer == nn::MlpKind::mlp && !c.no_embed_class && c.reg_tokens <= 1,
        "transformers has no such model: only its Dinov2, which has layer scales (init_values), has a gated Mlp, "
        "register "
        "tokens or no position for the class token");
  check(c.global_pool == nn::Pool::token,
        "transformers' Vision Transformers read the class token, and this model has "
        "global_pool '{}'",
        name_of(c.global_pool));
  HubForm form;
  const bool deit = c.distilled || c.reg_tokens == 1;
  form.model_type = deit ? "deit" : "vit";
  form.prefix = form.model_type + ".";
  form.names = c.distilled ? hub_deit_with_teacher_names() : deit ? hub_deit_names() : hub_vit_names();
  const std::string start = deit ? "DeiT" : "ViT";
  check(!c.distilled || c.num_classes > 0, "transformers has no distilled model without classes");
  form.architecture = start + (c.distilled         ? "ForImageClassificationWithTeacher"
                               : c.num_classes > 0 ? "ForImageClassification"
                                                   : "Model");
  form.config["intermediate_size"] = hidden_of(c);
  return form;
}

}  // namespace

const std::vector<HubFamily>& hub_families() {
  static const std::vector<HubFamily> all = {{"vit", read_vit},
                                             {"deit", read_deit},
                                             {"dinov2", read_dinov2},
                                             {"dinov2_with_registers", read_dinov2_with_registers},
                                             {"vit_mae", read_vit_mae}};
  return all;
}

bool is_hub_config(const Json& config) { return config.is_object() && config.contains("model_type"); }

void read_hub_encoder(io::Fields& f, VitConfig& c) {
  c.embed_dim = f.get<std::int64_t>("hidden_size", 768, positive);
  c.depth = f.get<std::int64_t>("num_hidden_layers", 12, {0, 4096});
  c.num_heads = f.get<std::int64_t>("num_attention_heads", 12, positive);
  if (const auto head_dim = f.optional<std::int64_t>("head_dim", positive)) {
    check(*head_dim * c.num_heads == c.embed_dim, "{}: 'head_dim' {} times {} heads is not the width {}", f.source(),
          *head_dim, c.num_heads, c.embed_dim);
  }
  c.mlp_ratio = ratio_for(c.embed_dim, f.get<std::int64_t>("intermediate_size", 4 * c.embed_dim, positive));
  c.img_size = read_size(f, "image_size", {224, 224});
  c.patch_size = read_size(f, "patch_size", {16, 16});
  c.in_chans = f.get<std::int64_t>("num_channels", 3, positive);
  c.qkv_bias = f.get<bool>("qkv_bias", true);
  c.norm_layer.eps = static_cast<float>(f.get<double>("layer_norm_eps", 1e-12, {1e-30, 1}));
  c.act_layer = ops::activation_named(timm_activation(f));
  c.num_classes = 0;
}

OrderedJson hub_encoder_json(const VitConfig& c) {
  OrderedJson json;
  json["hidden_size"] = c.embed_dim;
  json["num_hidden_layers"] = c.depth;
  json["num_attention_heads"] = c.num_heads;
  json["hidden_act"] = hub_activation(c.act_layer);
  json["hidden_dropout_prob"] = 0.0;
  json["attention_probs_dropout_prob"] = 0.0;
  json["initializer_range"] = 0.02;
  json["layer_norm_eps"] = std::stod(fmt::format("{}", c.norm_layer.eps));
  json["image_size"] = side(c.img_size);
  json["patch_size"] = side(c.patch_size);
  json["num_channels"] = c.in_chans;
  json["qkv_bias"] = c.qkv_bias;
  return json;
}

std::string not_plain(const VitConfig& c) {
  const std::vector<std::pair<bool, std::string>> differences = {
      {!c.class_token, "it has no class token"},
      {c.reg_tokens > 0, "it has register tokens (reg_tokens)"},
      {c.distilled, "it has a distillation token"},
      {c.init_values && *c.init_values != 0, "it has layer scales (init_values)"},
      {c.no_embed_class, "its class token has no position (no_embed_class)"},
      {c.pos_embed == VitConfig::Positions::none || c.rel_pos_type.has_value(), "it has no absolute positions"},
      {c.pre_norm, "it has a norm before its blocks (pre_norm)"},
      {!c.final_norm, "it has no final norm"},
      {c.fc_norm.value_or(false), "its final norm is behind the pooling (fc_norm)"},
      {c.post_norm, "its norms are behind attention and Mlp"},
      {c.qk_norm || c.scale_attn_norm || c.scale_mlp_norm, "it has norms inside of attention or Mlp"},
      {!c.proj_bias, "it has no biases in its projections (proj_bias)"},
      {c.mlp_layer != nn::MlpKind::mlp, "its Mlp is gated (mlp_layer)"},
      {c.norm_layer.kind != nn::NormKind::layer, "its norms are not LayerNorm (norm_layer)"},
      {c.pool_include_prefix, "it pools over all tokens (pool_include_prefix)"},
      {c.dynamic_img_pad, "it fills pictures up to whole patches (dynamic_img_pad)"}};
  const auto it = std::ranges::find(differences, true, &std::pair<bool, std::string>::first);
  return it == differences.end() ? "" : it->second;
}

void read_preprocessor(const fs::path& folder, PretrainedConfig& p) {
  const fs::path path = folder / "preprocessor_config.json";
  if (!fs::exists(path)) {
    return;
  }
  const Json json = io::read_json(path);
  io::Fields f(json, path.string());
  if (f.get<bool>("do_normalize", true)) {
    p.mean = f.get<std::vector<double>>("image_mean", p.mean, {-1e3, 1e3});
    p.std = f.get<std::vector<double>>("image_std", p.std, {1e-6, 1e3});
    check(!p.mean.empty() && p.mean.size() == p.std.size(), "{}: 'image_mean' and 'image_std' have {} and {} numbers",
          path.string(), p.mean.size(), p.std.size());
  } else {
    p.mean.assign(p.mean.size(), 0);
    p.std.assign(p.std.size(), 1);
  }
  const auto factor = f.get<double>("rescale_factor", 1.0 / 255);
  check(f.get<bool>("do_rescale", true) && std::abs(factor * 255 - 1) < 1e-3,
        "{}: pixels are taken times 1/255 here ('do_rescale', 'rescale_factor'), not otherwise", path.string());
  if (!f.get<bool>("do_resize", true)) {
    return;  // as the model's family has it: every picture must get the model's size
  }
  if (f.kind("resample") != io::Kind::absent && f.kind("resample") != io::Kind::null) {
    p.interpolation = resamples[static_cast<std::size_t>(f.get<std::int64_t>("resample", {0, 5}))];
  }
  const std::optional<ProcessorSize> size = read_processor_size(f, "size");
  if (!size) {
    return;
  }
  const bool crops = f.optional<bool>("do_center_crop").value_or(false);
  const ProcessorSize crop =
      (crops ? read_processor_size(f, "crop_size") : std::nullopt).value_or(ProcessorSize{size->size, false});
  p.height = crop.size[0];
  p.width = crop.size[1];
  p.crop_mode = size->shortest_edge ? "center" : "squash";
  p.crop_pct = crop_pct_for(p.height, size->size[0]);
}

OrderedJson preprocessor_json(const PretrainedConfig& p) {
  const auto resized = [&](std::int64_t side) {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(side) / p.crop_pct));
  };
  const auto interpolation = std::ranges::find(resamples, p.interpolation);
  check(interpolation != resamples.end(), "transformers has no interpolation '{}'", p.interpolation);
  check(p.crop_mode != "border", "transformers has no crop_mode 'border': choose center or squash");
  OrderedJson json;
  const bool crops = resized(p.height) != p.height || p.crop_mode == "center";
  json["image_processor_type"] =
      crops ? (p.crop_mode == "center" ? "BitImageProcessor" : "DeiTImageProcessor") : "ViTImageProcessor";
  json["do_resize"] = true;
  json["resample"] = interpolation - resamples.begin();
  if (p.crop_mode == "center") {
    json["size"] = {{"shortest_edge", resized(std::min(p.height, p.width))}};
  } else {
    json["size"] = {{"height", resized(p.height)}, {"width", resized(p.width)}};
  }
  if (crops) {
    json["do_center_crop"] = true;
    json["crop_size"] = {{"height", p.height}, {"width", p.width}};
  }
  json["do_rescale"] = true;
  json["rescale_factor"] = 1.0 / 255;
  json["do_normalize"] = true;
  json["image_mean"] = p.mean;
  json["image_std"] = p.std;
  return json;
}

FolderConfig read_hub_folder(const Json& config, const fs::path& folder) {
  const std::string source = (folder / config_file).string();
  // Configs of transformers' have keys of all kinds, also ones of other versions: those that are of no use here are
  // passed over without a list of them.
  io::Fields f(config, source);
  const auto model_type = f.get<std::string>("model_type");
  const auto family = std::ranges::find(hub_families(), model_type, &HubFamily::model_type);
  if (family == hub_families().end()) {
    std::vector<std::string> known;
    for (const HubFamily& candidate : hub_families()) {
      known.emplace_back(candidate.model_type);
    }
    fail("{}: 'model_type' is '{}', expected {}{}", source, model_type, io::quoted_list(known),
         io::did_you_mean(model_type, known));
  }
  FolderConfig result;
  family->read(f, result);
  result.pretrained.channels = result.input_size[0];
  result.pretrained.height = result.input_size[1];
  result.pretrained.width = result.input_size[2];
  read_preprocessor(folder, result.pretrained);
  if (!result.fixed_input_size) {  // takes the size that its pictures are prepared in
    result.input_size = {result.input_size[0], result.pretrained.height, result.pretrained.width};
  }
  return result;
}

HubFiles hub_files(const Model& model) {
  HubFiles files;
  HubForm form;
  if (const auto* mae = dynamic_cast<const MaskedAutoencoder*>(model.net.get())) {
    form = {"vit_mae", "ViTMAEForPreTraining", hub_mae_names(), "vit.", mae_json(mae->config())};
    files.config = hub_encoder_json(mae->config().encoder);
  } else {
    const auto* vit = dynamic_cast<const VisionTransformer*>(model.net.get());
    check(
        vit != nullptr && !is_quantized(*model.net), "'{}' cannot be written in Hugging Face's layout: {}",
        model.architecture,
        vit == nullptr ? "only Vision Transformers can" : "its weights are in int8, which transformers does not read");
    try {
      form = hub_form(vit->config());
    } catch (const Error& error) {
      fail("'{}' cannot be written in Hugging Face's layout: {}", model.architecture, error.what());
    }
    files.config = hub_encoder_json(vit->config());
  }
  files.config.update(form.config);
  OrderedJson head;
  head["architectures"] = {form.architecture};
  head["model_type"] = form.model_type;
  head.update(files.config);
  files.config = head;
  files.config["dtype"] = "float32";
  if (model.net->num_classes() > 0) {
    for (std::int64_t i = 0; i < model.net->num_classes(); ++i) {
      const auto index = static_cast<std::size_t>(i);
      const std::string name = index < model.pretrained.label_names.size() ? model.pretrained.label_names[index]
                                                                           : fmt::format("LABEL_{}", i);
      files.config["id2label"][std::to_string(i)] = name;
      files.config["label2id"][name] = i;
    }
  }
  files.preprocessor = preprocessor_json(model.pretrained);
  const bool bare = form.architecture.ends_with("Model");
  const NameMap names(form.names, bare ? "" : form.prefix, "decoder.decoder_layers.");
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    for (auto& entry : names.split(parameter.name, parameter.value.detach())) {
      files.tensors.push_back(std::move(entry));
    }
  }
  return files;
}

void write_hub_files(const HubFiles& files, const fs::path& folder) {
  io::replace_folder(folder, [&](const fs::path& temporary) {
    io::write_atomically(temporary / config_file, files.config.dump(2) + "\n");
    io::write_atomically(temporary / "preprocessor_config.json", files.preprocessor.dump(2) + "\n");
    io::save_safetensors(temporary / weights_file, files.tensors);
  });
}

}  // namespace vitrail::models
