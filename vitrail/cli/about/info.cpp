// `vitrail info` describes a model, `vitrail models` lists the models that can be made.
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/texts.h"
#include "vitrail/cli/use/captions.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/models/formats/preprocessor.h"
#include "vitrail/models/joint/clip_folder.h"
#include "vitrail/models/model.h"
#include "vitrail/models/quantize.h"
#include "vitrail/models/text/text_model.h"

namespace vitrail::cli {
namespace {

using Json = nlohmann::ordered_json;

// Formats a number briefly: 5717416 → "5.7 M", 1258000000 → "1.26 G".
std::string short_number(std::int64_t number) {
  const auto value = static_cast<double>(number);
  if (value >= 1e9) {
    return fmt::format("{:.2f} G", value / 1e9);
  }
  return value >= 1e6 ? fmt::format("{:.1f} M", value / 1e6) : fmt::format("{:.1f} k", value / 1e3);
}

std::vector<std::int64_t> input_size(const models::Model& model) {
  const Shape shape = models::input_shape(model);
  return {shape.begin(), shape.end()};
}

// Formats a model's input size from the dimension `first` on: "3 x 224 x 224", or "3 x 16 x 224 x 224" for videos.
std::string size_text(const models::Model& model, std::size_t first) {
  const std::vector<std::int64_t> size = input_size(model);
  return fmt::format("{}", fmt::join(size.begin() + static_cast<std::ptrdiff_t>(first), size.end(), " x "));
}

// How many blocks a model has. Those of MViT v2 are counted by stages for learning rates, as timm does.
std::int64_t blocks_of(const models::Model& model) {
  const Json arguments = Json::parse(model.arguments);
  if (arguments.contains("depths") && arguments["depths"].is_array()) {
    std::int64_t sum = 0;
    for (const Json& depth : arguments["depths"]) {
      sum += depth.get<std::int64_t>();
    }
    return sum;
  }
  return model.net->depth();
}

Json describe(const models::Model& model) {
  const auto& image = model.pretrained;
  const models::TokenLayout layout = model.net->token_layout(image.height, image.width);
  Json json;
  json["architecture"] = model.architecture;
  json["parameters"] = model.net->parameters.count();
  json["flops"] = model.net->flops(image.height, image.width);
  json["num_features"] = model.net->num_features();
  json["num_classes"] = model.net->num_classes();
  json["depth"] = blocks_of(model);
  json["input_size"] = input_size(model);
  json["tokens"] = {{"prefix", layout.prefix}, {"rows", layout.rows}, {"columns", layout.columns}};
  json["interpolation"] = image.interpolation;
  json["crop_pct"] = image.crop_pct;
  json["crop_mode"] = image.crop_mode;
  if (image.processor) {
    json["image_processor"] = models::processor_json(*image.processor);
  }
  json["mean"] = image.mean;
  json["std"] = image.std;
  json["model_args"] = Json::parse(model.model_args);
  json["label_names"] = image.label_names;
  return json;
}

void line(const std::string& name, const std::string& value) { fmt::print("{:<14} {}\n", name, value); }

void print_info(const models::Model& model) {
  const Json json = describe(model);
  const auto& image = model.pretrained;
  const models::TokenLayout layout = model.net->token_layout(image.height, image.width);
  line("model", model.architecture);
  line("parameters",
       fmt::format("{} ({})", model.net->parameters.count(), short_number(model.net->parameters.count())));
  const std::int64_t flops = model.net->flops(image.height, image.width);
  line("FLOPs", fmt::format("{} ({}) {}, fvcore's convention: a multiply-accumulate is one", flops, short_number(flops),
                            model.net->frames() > 0 ? "a clip" : "an image"));
  line("num_features", std::to_string(model.net->num_features()));
  line("num_classes", std::to_string(model.net->num_classes()));
  line("blocks", std::to_string(blocks_of(model)));
  const std::string crop = image.processor ? fmt::format("transformers' processor {}", json["image_processor"].dump())
                                           : fmt::format("crop_pct {} ({})", image.crop_pct, image.crop_mode);
  line(model.net->frames() > 0 ? "clip" : "image",
       fmt::format("{}, {}, {}", size_text(model, 0), image.interpolation, crop));
  line("normalization", fmt::format("mean {}, std {}", json["mean"].dump(), json["std"].dump()));
  line("tokens", fmt::format("{} = {} + {} x {} patches", layout.prefix + layout.rows * layout.columns, layout.prefix,
                             layout.rows, layout.columns));
  if (json["model_args"] != Json::object()) {
    line("model_args", json["model_args"].dump());
  }
  if (!image.label_names.empty()) {
    line("labels", fmt::format("{}", fmt::join(image.label_names, ", ")));
  }
}

Json describe(const models::Detector& model) {
  const models::DetrConfig& config = model.net->config();
  return {{"model", "DetrForObjectDetection"},
          {"parameters", model.net->parameters.count()},
          {"num_queries", config.num_queries},
          {"d_model", config.d_model},
          {"encoder_layers", config.encoder_layers},
          {"decoder_layers", config.decoder_layers},
          {"shortest_edge", model.images.shortest_edge},
          {"longest_edge", model.images.longest_edge},
          {"label_names", model.labels},
          {"config", Json::parse(model.config)}};
}

void print_info(const models::Detector& model) {
  const models::DetrConfig& config = model.net->config();
  line("model", "DetrForObjectDetection, a detector");
  line("parameters",
       fmt::format("{} ({})", model.net->parameters.count(), short_number(model.net->parameters.count())));
  line("queries", std::to_string(config.num_queries));
  line("layers", fmt::format("{} of the backbone, {} of the encoder, {} of the decoder, of width {}",
                             model.net->depth() - config.encoder_layers - config.decoder_layers, config.encoder_layers,
                             config.decoder_layers, config.d_model));
  line("images", fmt::format("shorter side {} pixels, longer side at most {}", model.images.shortest_edge,
                             model.images.longest_edge));
  line("labels", fmt::format("{}", fmt::join(model.labels, ", ")));
}

Json describe(const models::TextModel& model) {
  const models::TextShape shape = model.net->shape();
  Json json = {{"model", model.name},
               {"architecture", model.architecture},
               {"parameters", model.net->parameters.count()},
               {"flops_per_token", model.net->flops(1)},
               {"vocab_size", shape.vocab_size},
               {"depth", shape.depth},
               {"dim", shape.dim},
               {"config", Json::parse(model.config)}};
  if (shape.max_positions != models::unbounded_positions) {
    json["max_positions"] = shape.max_positions;
  }
  if (shape.num_heads > 0) {
    json["num_heads"] = shape.num_heads;
    json["num_kv_heads"] = shape.num_kv_heads;
  }
  return json;
}

void print_info(const models::TextModel& model) {
  const models::TextShape shape = model.net->shape();
  const std::int64_t flops = model.net->flops(1);
  const bool continues = model.net->language() != nullptr;
  line("model", fmt::format("{}{}", model.name,
                            !continues                           ? ""
                            : model.name.starts_with("imagegpt") ? ", which predicts the next pixel of a picture"
                                                                 : ", which predicts the next token of a text"));
  line("class", model.architecture);
  line("parameters",
       fmt::format("{} ({})", model.net->parameters.count(), short_number(model.net->parameters.count())));
  line("FLOPs", fmt::format("{} ({}) a token, a multiply-accumulate is one", flops, short_number(flops)));
  line("vocabulary", fmt::format("{} tokens", shape.vocab_size));
  if (shape.max_positions != models::unbounded_positions) {
    line("positions", std::to_string(shape.max_positions));
  }
  line("blocks", fmt::format("{} of width {}{}", shape.depth, shape.dim,
                             shape.num_heads > 0
                                 ? fmt::format(", {} heads, {} of keys and values", shape.num_heads, shape.num_kv_heads)
                                 : ""));
}

Json describe(const models::JointModel& model) {
  const models::ClipConfig& c = model.net->config();
  const auto& image = model.pretrained;
  const bool siglip = model.net->is_siglip();
  return {{"model", siglip ? "siglip" : "clip"},
          {"architecture", siglip ? "SiglipModel" : "CLIPModel"},
          {"parameters", model.net->parameters.count()},
          {"projection_dim", c.projection_dim},
          {"input_size", {image.channels, image.height, image.width}},
          {"mean", image.mean},
          {"std", image.std},
          {"vision",
           {{"depth", c.vision.depth},
            {"dim", c.vision.embed_dim},
            {"num_heads", c.vision.num_heads},
            {"flops", model.net->vision().flops(image.height, image.width)}}},
          {"text",
           {{"depth", c.text.depth},
            {"dim", c.text.dim},
            {"num_heads", c.text.block.attention.num_heads},
            {"vocab_size", c.text.vocab_size},
            {"max_positions", c.text.max_positions},
            {"flops_per_token", model.net->text().flops(1)}}},
          {"config", Json::parse(model.config)}};
}

void print_info(const models::JointModel& model) {
  const models::ClipConfig& c = model.net->config();
  const auto& image = model.pretrained;
  const std::int64_t count = model.net->parameters.count();
  const std::int64_t flops = model.net->vision().flops(image.height, image.width);
  const bool siglip = model.net->is_siglip();
  line("model", fmt::format("{}, which puts images and texts into one space", siglip ? "siglip" : "clip"));
  line("class", siglip ? "SiglipModel" : "CLIPModel");
  line("parameters", fmt::format("{} ({})", count, short_number(count)));
  line("projection", fmt::format("{} dimensions", c.projection_dim));
  line("images", fmt::format("{} blocks of width {}, {} heads, {} x {} x {}, patches of {} x {}, {} FLOPs an image",
                             c.vision.depth, c.vision.embed_dim, c.vision.num_heads, image.channels, image.height,
                             image.width, c.vision.patch_size[0], c.vision.patch_size[1], short_number(flops)));
  line("texts", fmt::format("{} blocks of width {}, {} heads, {} tokens of {}, {} FLOPs a token", c.text.depth,
                            c.text.dim, c.text.block.attention.num_heads, c.text.max_positions, c.text.vocab_size,
                            short_number(model.net->text().flops(1))));
}

Json describe(const models::Captioner& model) {
  const models::TextShape c = model.decoder_shape();
  Json decoder = {{"kind", model.decoder_kind()},
                  {"layers", c.depth},
                  {"hidden_size", c.dim},
                  {"vocab_size", c.vocab_size},
                  {"attends_to_the_image", !model.cross_attention().empty()},
                  {"flops_per_token", model.decoder_flops()}};
  if (c.max_positions != models::unbounded_positions) {
    decoder["max_positions"] = c.max_positions;
  }
  return {{"model", "captioner"},
          {"parameters", model.parameters.count()},
          {"image_model", describe(model.image_model)},
          {"decoder", decoder}};
}

void print_info(const models::Captioner& model) {
  const models::TextShape c = model.decoder_shape();
  const auto& image = model.image_model.pretrained;
  const std::int64_t count = model.parameters.count();
  const bool attends = !model.cross_attention().empty();
  line("model", attends ? "a captioner, which writes about an image and attends to it"
                        : "a captioner, which writes about an image");
  line("parameters", fmt::format("{} ({})", count, short_number(count)));
  line("images", fmt::format("{}, {}, {} features, {} FLOPs an image", model.image_model.architecture,
                             size_text(model.image_model, 0), model.image_model.net->num_features(),
                             short_number(model.image_model.net->flops(image.height, image.width))));
  line("texts",
       fmt::format(
           "{}, {} of width {}{}, {} FLOPs a token", model.decoder_kind(),
           io::counted(c.depth, attends ? "blocks" : "layers"), c.dim,
           c.max_positions == models::unbounded_positions ? "" : fmt::format(", {} tokens at most", c.max_positions),
           short_number(model.decoder_flops())));
  line("vocabulary", fmt::format("{} tokens", c.vocab_size));
}

void print_parameters(const nn::ParameterStore& parameters) {
  std::size_t width = 0;
  for (const nn::Parameter& parameter : parameters.all()) {
    width = std::max(width, parameter.name.size());
  }
  for (const nn::Parameter& parameter : parameters.all()) {
    fmt::print("{:<{}} {:<22} {}\n", parameter.name, width, parameter.value.shape().str(), parameter.value.numel());
  }
}

// Matches the simple patterns that timm's list_models takes: `*` stands for any text.
bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) {
    return name.empty();
  }
  if (pattern.front() == '*') {
    return matches(name, pattern.substr(1)) || (!name.empty() && matches(name.substr(1), pattern));
  }
  return !name.empty() && name.front() == pattern.front() && matches(name.substr(1), pattern.substr(1));
}

// The tensors of a model, with what print_parameters() says of them.
Json tensors_of(const nn::ParameterStore& parameters) {
  Json list = Json::array();
  for (const nn::Parameter& p : parameters.all()) {
    const Shape& shape = p.value.shape();
    list.push_back({{"name", p.name},
                    {"shape", std::vector<std::int64_t>(shape.begin(), shape.end())},
                    {"dtype", name_of(p.value.dtype())},
                    {"buffer", p.buffer}});
  }
  return list;
}

// A pattern without a `*` is any part of a name.
std::string widened(const std::string& pattern) {
  return pattern.find('*') == std::string::npos ? "*" + pattern + "*" : pattern;
}

void list_models(const std::string& pattern, bool names_only, bool as_json) {
  const std::string wide = widened(pattern);
  Json list = Json::array();
  bool any = false;
  for (const models::Architecture& architecture : models::architectures()) {
    if (!matches(architecture.name, wide)) {
      continue;
    }
    any = true;
    if (names_only) {
      fmt::print("{}\n", architecture.name);
      continue;
    }
    const models::Model model = models::describe_model(architecture.name);
    const auto& image = model.pretrained;
    const std::int64_t flops = model.net->flops(image.height, image.width);
    if (as_json) {
      list.push_back({{"name", architecture.name},
                      {"family", architecture.family},
                      {"parameters", model.net->parameters.count()},
                      {"flops", flops},
                      {"input_size", input_size(model)}});
    } else {
      fmt::print("{:<48} {:>9} parameters {:>10} FLOPs  {}\n", architecture.name,
                 short_number(model.net->parameters.count()), short_number(flops), size_text(model, 1));
    }
  }
  for (const std::string& name : models::text_models()) {
    if (!matches(name, wide)) {
      continue;
    }
    any = true;
    if (names_only) {
      fmt::print("{}\n", name);
      continue;
    }
    const models::TextModel model = models::create_text_model(name, {.fill = nn::Fill::meta});
    if (as_json) {
      list.push_back({{"name", name},
                      {"architecture", model.architecture},
                      {"parameters", model.net->parameters.count()},
                      {"flops_per_token", model.net->flops(1)}});
    } else {
      fmt::print("{:<48} {:>9} parameters {:>10} FLOPs  a token\n", name, short_number(model.net->parameters.count()),
                 short_number(model.net->flops(1)));
    }
  }
  check(any || names_only, "no model's name contains '{}'; vitrail models lists all", pattern);
  if (as_json) {
    print_json(list);
  }
}

// Lists the checkpoints that ship with the program, by their cards.
void list_shipped(const std::string& pattern, bool names_only, bool as_json) {
  const std::string wide = widened(pattern);
  Json list = Json::array();
  bool any = false;
  for (const models::ShippedModel& model : models::shipped_models()) {
    const models::ModelCard& card = model.card;
    if (!matches(card.name, wide)) {
      continue;
    }
    any = true;
    if (names_only) {
      fmt::print("{}\n", card.name);
    } else if (as_json) {
      list.push_back({{"name", card.name},
                      {"what", card.what},
                      {"bytes", model.bytes},
                      {"accuracy", card.accuracy},
                      {"measured_by", card.measured_by},
                      {"data", card.data},
                      {"data_licence", card.data_licence},
                      {"licence", card.licence},
                      {"command", card.command},
                      {"limits", card.limits},
                      {"folder", model.folder.string()}});
    } else {
      fmt::print("{:<24} {:>5.2f} MB  {}; {}; {}\n", card.name, static_cast<double>(model.bytes) * 1e-6, card.what,
                 card.accuracy, card.licence);
    }
  }
  if (as_json) {
    print_json(list);
  } else if (!any && !names_only) {
    check(pattern.empty(), "no checkpoint's name contains '{}'; vitrail models --shipped lists all", pattern);
    fmt::print("no checkpoint came with this program; VITRAIL_WEIGHTS names a folder of them\n");
  }
}

}  // namespace

void add_info(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("info", "Describe a model: parameters, FLOPs, tokens, image size");
  struct Flags {
    ModelFlags model;
    bool json = false;
    bool parameters = false;
  };
  const auto flags = std::make_shared<Flags>();
  add_model_argument(command, flags->model);
  command.add_flag("--json", flags->json, "Print one JSON object");
  command.add_flag("--parameters", flags->parameters, "List every parameter with its shape");
  add_examples(command, {"vitrail info vit_base_patch16_224",
                         "vitrail info vit_tiny_patch16_224 --model-kwargs img_size=32 patch_size=4 --num-classes 10",
                         "vitrail info demo/run/best --json"});
  const auto tell = [flags](const auto& model, const nn::ParameterStore& parameters) {
    const std::int64_t int8 = models::int8_weights_in(flags->model.name_or_folder());
    if (flags->json) {
      Json json = describe(model);
      json["int8_parameters"] = int8;
      if (flags->parameters) {
        json["tensors"] = tensors_of(parameters);
      }
      print_json(json);
    } else {
      print_info(model);
      if (int8 > 0) {
        line("int8", fmt::format("{} ({}) of the parameters", int8, short_number(int8)));
      }
    }
    if (flags->parameters && !flags->json) {
      print_parameters(parameters);
    }
  };
  command.callback([flags, tell] {
    const std::string name = flags->model.name_or_folder();
    models::CreateOptions options = flags->model.options();
    options.fill = nn::Fill::meta;  // the model is asked about, not run
    const models::ModelKind kind = flags->model.kind();
    if (kind == models::ModelKind::texts) {
      refuse_image_flags(flags->model);
      const models::TextModel model =
          models::open_text_model(name, {.model_kwargs = options.model_kwargs, .fill = options.fill});
      tell(model, model.net->parameters);
      return;
    }
    if (kind == models::ModelKind::joint) {
      flags->model.check_unchanged();
      const models::JointModel model = models::load_clip(name, options.fill);
      tell(model, model.net->parameters);
      return;
    }
    if (kind == models::ModelKind::detector) {
      flags->model.check_unchanged();
      const models::Detector model = models::load_detector(name, {.fill = options.fill});
      tell(model, model.net->parameters);
      return;
    }
    if (kind == models::ModelKind::captioner) {
      const std::unique_ptr<models::Captioner> model = open_captioner(flags->model);
      tell(*model, model->parameters);
      return;
    }
    models::Model model = models::open_model(name, options);
    data::apply(flags->model.images, model.pretrained);
    tell(model, model.net->parameters);
  });
}

void add_models(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "models", "List the models that exist, of images and of texts, with parameters, FLOPs and image size");
  struct Flags {
    std::string pattern;
    bool names = false;
    bool json = false;
    bool shipped = false;
  };
  const auto flags = std::make_shared<Flags>();
  command.add_option("PATTERN", flags->pattern, "Part of the names; * stands for any text (default: all)")
      ->type_name("");
  command.add_flag("--shipped", flags->shipped,
                   "List the checkpoints that came with the program, vitrail/NAME, with size, accuracy and licence");
  CLI::Option* const names = command.add_flag("--names", flags->names, "Print names only");
  command.add_flag("--json", flags->json, "Print a JSON list")->excludes(names);
  add_examples(command, {"vitrail models", "vitrail models deit", "vitrail models 'bert*'",
                         "vitrail models 'vit_*_patch14_*dinov2' --json", "vitrail models --shipped"});
  command.callback(
      [flags] { (flags->shipped ? list_shipped : list_models)(flags->pattern, flags->names, flags->json); });
}

}  // namespace vitrail::cli
