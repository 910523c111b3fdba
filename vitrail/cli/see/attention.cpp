// `vitrail attention` shows what a model attends to in an image.
#include "vitrail/explain/attention.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/see/class_attention.h"
#include "vitrail/cli/see/detector_attention.h"
#include "vitrail/cli/see/text_attention.h"
#include "vitrail/cli/texts.h"
#include "vitrail/cli/use/captions.h"
#include "vitrail/cli/use/detect.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/explain/page.h"
#include "vitrail/io/file.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/io/wording.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/train/finite.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

struct AttentionFlags {
  ModelFlags model;
  ComputeFlags compute;
  std::string image;
  std::string text;
  bool truncate = false;
  std::string output = "attention";
  std::string raw;
  std::optional<std::string> query;
  std::optional<std::int64_t> query_box;
  std::optional<std::string> point;
  std::optional<std::int64_t> layer;
  std::optional<std::int64_t> head;
  std::string method = "layers";
  std::optional<double> threshold;
  std::string masks;
};

void write_raw(const std::string& path, const explain::Attention& attention) {
  io::NamedTensors tensors = {{"logits", attention.logits}};
  for (std::size_t i = 0; i < attention.layers.size(); ++i) {
    tensors.emplace_back(fmt::format("attention.{}", i), attention.layers[i]);
  }
  if (attention.pool.defined()) {
    tensors.emplace_back("attention.pool", attention.pool);
  }
  io::save_safetensors(path, tensors);
  fmt::print("{}: the probabilities of {}\n", path, io::counted(std::ssize(attention.layers), "layers"));
}

// The query that --query names as ROW,COL; the class token if it is not given.
explain::Query query_of(const std::optional<std::string>& text) {
  explain::Query query;
  if (text.has_value()) {
    query.kind = explain::Query::Kind::patch;
    const std::size_t comma = std::min(text->find(','), text->size());
    const auto read = [&](std::string_view part, std::int64_t& number) {
      const auto [end, status] = std::from_chars(part.data(), part.data() + part.size(), number);
      return status == std::errc() && end == part.data() + part.size();
    };
    const bool right = comma < text->size() && read(std::string_view(*text).substr(0, comma), query.row) &&
                       read(std::string_view(*text).substr(comma + 1), query.column);
    check_usage(right, "--query takes the row and the column of a patch, as in 3,4, not '{}'", *text);
  }
  return query;
}

class Report {
 public:
  Report(const AttentionFlags& flags, const models::Model& model, const explain::Query& query)
      : flags_(flags), folder_(flags.output), x_(model_input(model, io::read_image(flags.image))), query_(query) {
    check(model.net->has_attention(), "{} has no attention to show", model.architecture);
    attention_ = explain::record_attention(*model.net, x_, flags.compute.apply());
    check(!attention_.layers.empty(), "{} has no attention to show", model.architecture);
    std::ranges::for_each(attention_.layers, [](const Tensor& layer) { train::check_finite(layer); });
    image_ = explain::image_of(x_, model.pretrained.mean, model.pretrained.std);
  }

  void write() {
    const auto depth = std::ssize(attention_.layers);
    const std::vector<std::int64_t> layers = chosen(flags_.layer, depth);
    const bool rolls_out = explain::can_roll_out(attention_);
    // The rollout over all layers, or the last layer's map if the model has none. Before any file is written, this
    // throws Error if the query does not exist, and the loop does if a layer or a head does not.
    const Tensor whole = rolls_out ? explain::rollout(attention_, query_)
                                   : explain::attention_map(attention_, depth - 1, explain::all_heads, query_);
    for (const std::int64_t layer : layers) {
      for (const std::int64_t head :
           chosen(flags_.head, layer < 0 || layer >= depth ? 1 : attention_.num_heads(layer))) {
        explain::attention_map(attention_, layer, head, query_);
        file(head_name(layer, head));
      }
      file(layer_name(layer));
    }
    const std::string over_all = rolls_out ? "rollout" : "last";
    for (const std::string& name : {std::string("image"), std::string("sheet"), over_all, std::string("pool")}) {
      file(name);
    }
    make_page_folder(folder_);
    if (!flags_.raw.empty()) {
      write_raw(flags_.raw, attention_);
    }
    explain::Section heads{.title = "Layers and heads", .text = {}, .table = {}, .figures = {}, .figure_width = 150};
    explain::Section means{
        .title = "Layers, the mean of their heads", .text = {}, .table = {}, .figures = {}, .figure_width = 150};
    std::vector<std::vector<io::Image>> all;
    explain::SheetLabels labels;
    std::size_t count = 0;
    for (const std::int64_t layer : layers) {
      all.emplace_back();
      labels.rows.push_back(fmt::format("layer {}", layer));
      means.figures.push_back(save(layer_name(layer), fmt::format("layer {}", layer),
                                   explain::attention_map(attention_, layer, explain::all_heads, query_)));
      for (const std::int64_t head : chosen(flags_.head, attention_.num_heads(layer))) {
        heads.figures.push_back(save(head_name(layer, head), fmt::format("layer {}, head {}", layer, head),
                                     explain::attention_map(attention_, layer, head, query_)));
        all.back().push_back(last_);
        if (all.back().size() > labels.columns.size()) {
          labels.columns.push_back(fmt::format("head {}", head));
        }
        ++count;
      }
    }
    explain::Section overview{.title = "Over all layers", .text = {}, .table = {}, .figures = {}, .figure_width = 224};
    io::write_png(file("image"), image_);
    overview.figures = {{"image.png", "what the model sees"},
                        save(over_all, rolls_out ? "attention rollout" : "the last layer", whole)};
    if (attention_.pool.defined()) {
      overview.figures.push_back(save("pool", "attention pooling, by its own query", explain::pooling_map(attention_)));
    }
    io::write_png(file("sheet"), explain::sheet(all, labels));
    io::write_atomically(folder_ / "index.html", explain::html_page("Attention", lead(), {overview, means, heads}));
    fmt::print("{} images in {}: sheet.png (a row a layer, a column a head), {}.png, index.html\n",
               overview.figures.size() + count + means.figures.size(), folder_.string(), over_all);
  }

 private:
  static std::string layer_name(std::int64_t layer) { return fmt::format("layer{:02}", layer); }
  static std::string head_name(std::int64_t layer, std::int64_t head) {
    return fmt::format("{}-head{:02}", layer_name(layer), head);
  }
  // The file of an image. Throws Error if that is the one that was read.
  fs::path file(const std::string& name) const {
    fs::path path = folder_ / (name + ".png");
    check_not_input(path.string(), flags_.image);
    return path;
  }

  explain::Figure save(const std::string& name, const std::string& caption, const Tensor& map) {
    last_ =
        explain::overlay(image_, map, {.patch = query_, .grid = {attention_.layout.rows, attention_.layout.columns}});
    io::write_png(file(name), last_);
    return {name + ".png", caption};
  }

  std::string lead() const {
    const std::string who = query_.kind == explain::Query::Kind::patch
                                ? fmt::format("the patch in row {}, column {}", query_.row, query_.column)
                                : (attention_.layout.class_token ? "the class token" : "all patches on average");
    return fmt::format("{}: where {} look{} in {}. Bright is much, dark is little.", flags_.image, who,
                       who.starts_with("all") ? "" : "s", flags_.model.model);
  }

  const AttentionFlags& flags_;
  fs::path folder_;
  Tensor x_;
  explain::Query query_;
  explain::Attention attention_;
  io::Image image_;
  io::Image last_;
};

}  // namespace

void add_attention(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("attention", "Draw what a model attends to in an image, or in a text");
  const auto flags = std::make_shared<AttentionFlags>();
  add_model_argument(command, flags->model);
  command.add_option("IMAGE", flags->image, "Image file: JPEG, PNG or WebP")->type_name("");
  command.add_option("--text", flags->text, "A text, for a model of texts: which word looks at which")
      ->check([](const std::string& text) { return text.empty() ? "there is no text in it" : ""; })
      ->type_name("TEXT");
  command.add_flag("--truncate", flags->truncate, "Cut a text that is longer than the model's positions")
      ->needs("--text");
  const CLI::Option* const output =
      command.add_option("--output", flags->output, "Folder for the images")->capture_default_str()->type_name("DIR");
  command
      .add_option("--query", flags->query, "Show where this patch looks, counted from 0, instead of the class token")
      ->type_name("ROW,COL");
  command
      .add_option("--query-box", flags->query_box,
                  "Of a detector: show where the decoder looked for this box, 1 for the likeliest")
      ->check(at_least(1))
      ->type_name("N");
  command
      .add_option("--point", flags->point, "Of a detector: show what the encoder looks at from this pixel of the image")
      ->type_name("X,Y");
  command.add_option("--layer", flags->layer, "One layer only, from 0; -1 is the last")->check(whole_number());
  command.add_option("--head", flags->head, "One head only, from 0")->check(whole_number());
  command
      .add_option(
          "--method", flags->method,
          "Each layer and head, and rollout (layers), or the class token's heads in one layer on the whole image, "
          "at its own size or with --img-size pixels on the shorter side, and what they segment (dino)")
      ->capture_default_str()
      ->check(CLI::IsMember({"layers", "dino"}).description(""))
      ->type_name("NAME");
  command
      .add_option("--threshold", flags->threshold,
                  "With --method dino, the share of a head's attention that its mask keeps (default: 0.6)")
      ->check(share())
      ->type_name("X");
  command
      .add_option("--masks", flags->masks,
                  "With --method dino, IMAGE is a folder of images, and this one of masks of the same names: print how "
                  "well each head's mask fits what is not black in them")
      ->type_name("DIR");
  expect_ending(
      command.add_option(
          "--raw", flags->raw,
          "Write the logits [num_classes] of an image and the probabilities: attention.{i} [1, H, N, M] f32, with "
          "windows [W, H, N, N]; of attention pooling, attention.pool [1, H, 1, N]; of a translator also "
          "decoder_attention.{i} and cross_attention.{i}; with --method dino, attention [H, rows, columns] f32 and "
          "mask u8"),
      ".safetensors");
  add_compute_flags(command, flags->compute);
  add_image_flags(command, flags->model);
  add_examples(command, {"vitrail attention cat.jpg", "vitrail attention demo/run/best cat.jpg",
                         "vitrail attention demo/run/best cat.jpg --query 3,4 --layer -1 --output maps",
                         "vitrail attention vit_tiny_patch16_224 cat.jpg --raw maps.safetensors",
                         "vitrail attention my_detector street.jpg --query-box 3",
                         "vitrail attention my_dino cat.jpg --method dino --threshold 0.6 --img-size 480",
                         "vitrail attention my_dino scenes/test/images --method dino --masks scenes/test/masks",
                         "vitrail attention my_bert --text \"The animal didn't cross the street because it was too "
                         "tired.\""});
  command.callback([flags, output] {
    if (flags->image.empty() && flags->text.empty()) {
      const bool whole = flags->method == "dino";
      flags->image =
          image_without_model(flags->model, whole ? "vitrail/scenes_dino" : "vitrail/cifar10_vit").value_or("");
    }
    check_usage(flags->image.empty() != flags->text.empty(), "attention takes either IMAGE or --text TEXT");
    check_not_of_model(flags->raw, flags->model);
    if (!flags->text.empty()) {
      const ModelFlags& model = flags->model;
      check_usage(model.kwargs.empty() && !model.num_classes && !model.img_size && !model.prepares_images(),
                  "--model-kwargs, --num-classes, --img-size and other flags of images have no effect on --text");
      check_usage(!flags->query && !flags->query_box && !flags->point,
                  "--query, --query-box and --point name places of an image: they have no effect on --text");
      check_usage(flags->method == "layers" && !flags->threshold && flags->masks.empty(),
                  "--method, --threshold and --masks have no effect on --text");
      check_usage(is_text_model(flags->model), "'{}' is no model of texts: name an IMAGE in place of --text",
                  flags->model.model);
      draw_text_attention({.model = flags->model.name_or_folder(),
                           .text = flags->text,
                           .truncate = flags->truncate,
                           .output = flags->output,
                           .raw = flags->raw,
                           .layer = flags->layer,
                           .head = flags->head,
                           .dtype = flags->compute.apply()});
      return;
    }
    const fs::path folder = flags->model.name_or_folder();
    check(!is_text_model(flags->model) || !fs::exists(folder / "preprocessor_config.json"),
          "'{}' writes images pixel by pixel, whose attention is not drawn: name a model that reads images or texts",
          flags->model.model);
    check_usage(!is_text_model(flags->model), "'{}' is a model of texts: name one by --text", flags->model.model);
    if (flags->model.kind() == models::ModelKind::detector) {
      check_usage(!flags->query && flags->method == "layers" && !flags->threshold && flags->masks.empty(),
                  "'{}' finds objects: --query, --method, --threshold and --masks have no effect on it",
                  flags->model.model);
      check_usage(!flags->query_box || !flags->point, "give --query-box or --point, not both");
      check_usage(flags->query_box || flags->point || (!flags->layer && !flags->head),
                  "--layer and --head want --query-box or --point beside them");
      check_not_input(flags->raw, flags->image);
      draw_detector_attention({.model = flags->model,
                               .image = flags->image,
                               .output = flags->output,
                               .raw = flags->raw,
                               .box = flags->query_box,
                               .point = flags->point,
                               .layer = flags->layer,
                               .head = flags->head,
                               .dtype = flags->compute.apply()});
      return;
    }
    check_usage(!flags->query_box && !flags->point, "--query-box and --point are for detectors, but '{}' is none",
                flags->model.model);
    const explain::Query query = query_of(flags->query);
    check_not_input(flags->raw, flags->image);
    if (flags->method == "dino") {
      check_usage(!flags->query && !flags->head, "--query and --head have no effect on --method dino");
      if (!flags->masks.empty()) {
        check_usage(flags->raw.empty() && output->count() == 0, "--raw and --output have no effect on --masks");
        measure_class_attention({.model = flags->model,
                                 .images = flags->image,
                                 .masks = flags->masks,
                                 .threshold = flags->threshold.value_or(0.6),
                                 .layer = flags->layer,
                                 .dtype = flags->compute.apply()});
        return;
      }
      draw_class_attention({.model = flags->model,
                            .image = flags->image,
                            .output = flags->output,
                            .raw = flags->raw,
                            .threshold = flags->threshold.value_or(0.6),
                            .layer = flags->layer,
                            .dtype = flags->compute.apply()});
      return;
    }
    check_usage(!flags->threshold && flags->masks.empty(), "--threshold and --masks belong to --method dino");
    if (flags->model.kind() ==
        models::ModelKind::captioner) {  // the words come of a recurrent network: what attends is the image model
      const auto captioner = open_captioner(flags->model);
      check(captioner->image_model.net->has_attention(),
            "the image model of '{}', {}, has no attention to show: `vitrail caption --attention` shows where the "
            "decoder looked for each word",
            flags->model.model, captioner->image_model.architecture);
      Report(*flags, captioner->image_model, query).write();
      return;
    }
    const models::Model model = flags->model.open_for_images();
    Report(*flags, model, query).write();
  });
}

}  // namespace vitrail::cli
