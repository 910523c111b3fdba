// `vitrail info` in words and as JSON.
#include "vitrail/cli/about/describe.h"

#include <fmt/format.h>

#include "vitrail/io/wording.h"
#include "vitrail/models/formats/preprocessor.h"
#include "vitrail/models/model.h"

namespace vitrail::cli {

using DescribeJson = nlohmann::ordered_json;

namespace {

// How many blocks a model has. Those of MViT v2 are counted by stages for learning rates, as timm does.
std::int64_t blocks_of(const models::Model& model) {
  const DescribeJson arguments = DescribeJson::parse(model.arguments);
  if (arguments.contains("depths") && arguments["depths"].is_array()) {
    std::int64_t sum = 0;
    for (const DescribeJson& depth : arguments["depths"]) {
      sum += depth.get<std::int64_t>();
    }
    return sum;
  }
  return model.net->depth();
}

std::string count_text(std::int64_t parameters) { return fmt::format("{} ({})", parameters, short_number(parameters)); }

}  // namespace

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

std::string size_text(const models::Model& model, std::size_t first) {
  const std::vector<std::int64_t> size = input_size(model);
  return fmt::format("{}", fmt::join(size.begin() + static_cast<std::ptrdiff_t>(first), size.end(), " x "));
}

DescribeJson describe(const models::Model& model) {
  const auto& image = model.pretrained;
  const models::TokenLayout layout = model.net->token_layout(image.height, image.width);
  DescribeJson json;
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
  json["model_args"] = DescribeJson::parse(model.model_args);
  json["label_names"] = image.label_names;
  return json;
}

void line(const std::string& name, const std::string& value) { fmt::print("{:<14} {}\n", name, value); }

void print_info(const models::Model& model) {
  const DescribeJson json = describe(model);
  const auto& image = model.pretrained;
  const models::TokenLayout layout = model.net->token_layout(image.height, image.width);
  line("model", model.architecture);
  line("parameters", count_text(model.net->parameters.count()));
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
  if (json["model_args"] != DescribeJson::object()) {
    line("model_args", json["model_args"].dump());
  }
  if (!image.label_names.empty()) {
    line("labels", fmt::format("{}", fmt::join(image.label_names, ", ")));
  }
}

DescribeJson describe(const models::Detector& model) {
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
          {"config", DescribeJson::parse(model.config)}};
}

void print_info(const models::Detector& model) {
  const models::DetrConfig& config = model.net->config();
  line("model", "DetrForObjectDetection, a detector");
  line("parameters", count_text(model.net->parameters.count()));
  line("queries", std::to_string(config.num_queries));
  line("layers", fmt::format("{} of the backbone, {} of the encoder, {} of the decoder, of width {}",
                             model.net->depth() - config.encoder_layers - config.decoder_layers, config.encoder_layers,
                             config.decoder_layers, config.d_model));
  line("images", fmt::format("shorter side {} pixels, longer side at most {}", model.images.shortest_edge,
                             model.images.longest_edge));
  line("labels", fmt::format("{}", fmt::join(model.labels, ", ")));
}

DescribeJson describe(const models::TextModel& model) {
  const models::TextShape shape = model.net->shape();
  DescribeJson json = {{"model", model.name},
                       {"architecture", model.architecture},
                       {"parameters", model.net->parameters.count()},
                       {"flops_per_token", model.net->flops(1)},
                       {"vocab_size", shape.vocab_size},
                       {"depth", shape.depth},
                       {"dim", shape.dim},
                       {"config", DescribeJson::parse(model.config)}};
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
  line("parameters", count_text(model.net->parameters.count()));
  line("FLOPs", fmt::format("{} ({}) a token, a multiply-accumulate is one", flops, short_number(flops)));
  line("vocabulary", fmt::format("{} tokens", shape.vocab_size));
  if (shape.max_positions != models::unbounded_positions) {
    line("positions", std::to_string(shape.max_positions));
  }
  line("blocks",
       fmt::format("{} of width {}{}", shape.depth, shape.dim,
                   shape.num_heads > 0 ? fmt::format(", {}, {} of keys and values",
                                                     io::counted(shape.num_heads, "heads"), shape.num_kv_heads)
                                       : ""));
}

DescribeJson describe(const models::JointModel& model) {
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
          {"config", DescribeJson::parse(model.config)}};
}

void print_info(const models::JointModel& model) {
  const models::ClipConfig& c = model.net->config();
  const auto& image = model.pretrained;
  const std::int64_t count = model.net->parameters.count();
  const std::int64_t flops = model.net->vision().flops(image.height, image.width);
  const bool siglip = model.net->is_siglip();
  line("model", fmt::format("{}, which puts images and texts into one space", siglip ? "siglip" : "clip"));
  line("class", siglip ? "SiglipModel" : "CLIPModel");
  line("parameters", count_text(count));
  line("projection", fmt::format("{} dimensions", c.projection_dim));
  line("images", fmt::format("{} blocks of width {}, {} heads, {} x {} x {}, patches of {} x {}, {} FLOPs an image",
                             c.vision.depth, c.vision.embed_dim, c.vision.num_heads, image.channels, image.height,
                             image.width, c.vision.patch_size[0], c.vision.patch_size[1], short_number(flops)));
  line("texts", fmt::format("{} blocks of width {}, {} heads, {} tokens of {}, {} FLOPs a token", c.text.depth,
                            c.text.dim, c.text.block.attention.num_heads, c.text.max_positions, c.text.vocab_size,
                            short_number(model.net->text().flops(1))));
}

DescribeJson describe(const models::Captioner& model) {
  const models::TextShape c = model.decoder_shape();
  DescribeJson decoder = {{"kind", model.decoder_kind()},
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
  line("parameters", count_text(count));
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

DescribeJson describe(const models::FrameNetwork& model) {
  const nn::RecurrentConfig& network = model.network();
  DescribeJson target = {{"kind", models::name_of(model.target.kind)}, {"outputs", model.target.outputs()}};
  if (model.target.kind == models::FrameTarget::Kind::angle) {
    target["bins"] = model.target.bins;
    target["circular"] = model.target.circular;
  }
  return {{"model", "frames"},
          {"parameters", model.parameters.count()},
          {"image_model", describe(model.encoder)},
          {"network", DescribeJson::parse(model.network_config())},
          {"layers", network.num_layers},
          {"bidirectional", network.bidirectional},
          {"target", target},
          {"label_names", model.target.classes}};
}

void print_info(const models::FrameNetwork& model) {
  const nn::RecurrentConfig& network = model.network();
  const models::FrameTarget& target = model.target;
  const auto& image = model.encoder.pretrained;
  line("model", fmt::format("a recurrent network, which reads sequences of images and tells {}",
                            !target.each_frame()                               ? "the class of each"
                            : target.kind == models::FrameTarget::Kind::frames ? "the class of each frame"
                                                                               : "the angle of each frame"));
  line("parameters", count_text(model.parameters.count()));
  line("frames", fmt::format("{}, {}, {} features, {} FLOPs a frame", model.encoder.architecture,
                             size_text(model.encoder, 0), model.encoder.net->num_features(),
                             short_number(model.encoder.net->flops(image.height, image.width))));
  line("network",
       fmt::format("{}, {} of width {}{}", nn::name_of(network.kind), io::counted(network.num_layers, "layers"),
                   network.hidden_size, network.bidirectional ? " in both directions" : ""));
  if (target.kind == models::FrameTarget::Kind::angle) {
    line("angles", fmt::format("{}{}", target.bins > 0 ? fmt::format("one of {} bins", target.bins) : "cosine and sine",
                               target.circular ? "; behind the last frame comes the first" : ""));
  }
  if (!target.classes.empty()) {
    line("labels", fmt::format("{}", fmt::join(target.classes, ", ")));
  }
}

DescribeJson describe(const models::RecurrentModel& model) {
  const nn::RecurrentConfig& network = model.network.config;
  return {{"model", nn::name_of(network.kind)}, {"parameters", model.parameters.count()},
          {"input_size", network.input_size},   {"hidden_size", network.hidden_size},
          {"layers", network.num_layers},       {"bidirectional", network.bidirectional}};
}

void print_info(const models::RecurrentModel& model) {
  const nn::RecurrentConfig& network = model.network.config;
  line("model", fmt::format("a recurrent network by itself ({}), which `vitrail forward` runs on sequences of vectors",
                            nn::name_of(network.kind)));
  line("parameters", count_text(model.parameters.count()));
  line("input", fmt::format("{} numbers a step", network.input_size));
  line("network", fmt::format("{} of width {}{}", io::counted(network.num_layers, "layers"), network.hidden_size,
                              network.bidirectional ? " in both directions" : ""));
}

DescribeJson describe(const models::VqaModel& model) {
  const models::VqaConfig& c = model.net->config();
  const auto& image = model.pretrained;
  return {{"model", model.name},
          {"parameters", model.net->parameters.count()},
          {"input_size", {image.channels, image.height, image.width}},
          {"mean", image.mean},
          {"std", image.std},
          {"sees_the_image", model.net->sees_picture()},
          {"reads_the_question", model.net->reads_question()},
          {"vocab_size", c.vocab_size},
          {"max_positions", c.max_positions},
          {"answers", model.answers},
          {"config", DescribeJson::parse(model.config)}};
}

void print_info(const models::VqaModel& model) {
  const models::VqaConfig& c = model.net->config();
  const bool sees = model.net->sees_picture();
  const bool reads = model.net->reads_question();
  const auto& image = model.pretrained;
  line("model", fmt::format("{}, which answers questions about images{}", model.name,
                            !sees    ? " without seeing them"
                            : !reads ? " without reading the questions"
                                     : ""));
  line("parameters", count_text(model.net->parameters.count()));
  if (sees) {
    line("images",
         fmt::format("{} x {} x {}, {} x {} tokens", image.channels, image.height, image.width, c.side(), c.side()));
  }
  if (reads) {
    line("questions", fmt::format("{} tokens of {}", c.max_positions, c.vocab_size));
  }
  line("answers", fmt::format("{}: {}", model.answers.size(), fmt::join(model.answers, ", ")));
}

DescribeJson describe(const models::BlipModel& model) {
  const models::BlipConfig& c = model.net->config();
  const auto& image = model.pretrained;
  return {{"model", "blip"},
          {"architecture", models::blip_answerer_class},
          {"parameters", model.net->parameters.count()},
          {"input_size", {image.channels, image.height, image.width}},
          {"mean", image.mean},
          {"std", image.std},
          {"vision", {{"depth", c.vision.depth}, {"dim", c.vision.embed_dim}, {"num_heads", c.vision.num_heads}}},
          {"text",
           {{"depth", c.text.depth},
            {"dim", c.text.dim},
            {"num_heads", c.text.num_heads},
            {"vocab_size", c.text.vocab_size},
            {"max_positions", c.text.max_positions}}},
          {"config", DescribeJson::parse(model.config)}};
}

void print_info(const models::BlipModel& model) {
  const models::BlipConfig& c = model.net->config();
  const auto& image = model.pretrained;
  line("model", "blip, which answers questions about images");
  line("class", models::blip_answerer_class);
  line("parameters", count_text(model.net->parameters.count()));
  line("images", fmt::format("{} blocks of width {}, {} heads, {} x {} x {}, patches of {} x {}", c.vision.depth,
                             c.vision.embed_dim, c.vision.num_heads, image.channels, image.height, image.width,
                             c.vision.patch_size[0], c.vision.patch_size[1]));
  line("texts", fmt::format("twice {} blocks of width {}, {} heads, {} tokens of {}", c.text.depth, c.text.dim,
                            c.text.num_heads, c.text.max_positions, c.text.vocab_size));
}

DescribeJson describe(const models::SetModel& model) {
  const models::Set2SetConfig& c = model.net->config();
  return {{"model", "set2set"},
          {"parameters", model.net->parameters.count()},
          {"input_size", c.input_size},
          {"output_size", c.output_size},
          {"num_queries", c.num_queries},
          {"d_model", c.d_model},
          {"encoder_layers", c.encoder_layers},
          {"decoder_layers", c.decoder_layers},
          {"config", DescribeJson::parse(model.config)}};
}

void print_info(const models::SetModel& model) {
  const models::Set2SetConfig& c = model.net->config();
  line("model", "set2set, which says sets of sets");
  line("parameters", count_text(model.net->parameters.count()));
  line("reads", fmt::format("sets of elements of {}, in any order", io::counted(c.input_size, "numbers")));
  line("says", fmt::format("sets of elements of {}, {} at most", io::counted(c.output_size, "numbers"), c.num_queries));
  line("layers",
       fmt::format("{} of the encoder, {} of the decoder, of width {}", c.encoder_layers, c.decoder_layers, c.d_model));
}

}  // namespace vitrail::cli
