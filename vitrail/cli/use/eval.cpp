// `vitrail eval` measures how accurate a model is, `vitrail predict` prints what it predicts for images.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/texts.h"
#include "vitrail/cli/use/ask.h"
#include "vitrail/cli/use/captions.h"
#include "vitrail/cli/use/detect.h"
#include "vitrail/cli/use/eval_language.h"
#include "vitrail/cli/use/eval_texts.h"
#include "vitrail/cli/use/eval_translation.h"
#include "vitrail/cli/use/frames.h"
#include "vitrail/cli/use/sets.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/choice.h"
#include "vitrail/train/study/evaluate.h"

namespace vitrail::cli {
namespace {

using Json = nlohmann::ordered_json;

struct EvalFlags {
  ModelFlags model;
  ComputeFlags compute;
  DataFlags data;
  std::string output;
  std::string frames;
  std::string metric;
  std::int64_t tta = 0;
  LanguageFlags language;
  TranslationFlags translation;
  bool json = false;
};

Json to_json(const EvalFlags& flags, const train::Evaluation& result) {
  Json json;
  json["model"] = flags.model.model;
  json["data"] = flags.data.data;
  json["count"] = result.count;
  json["top1"] = result.top1;
  json["top5"] = result.top5;
  json["loss"] = result.loss;
  if (!result.heads.empty()) {
    const auto head = [](const train::Accuracy& of) {
      return Json{{"top1", of.top1}, {"top5", of.top5}, {"loss", of.loss}};
    };
    json["heads"] = {{"head", head(result.heads[0])}, {"head_dist", head(result.heads[1])}};
  }
  json["images_per_second"] = result.images_per_second;
  json["classes"] = Json::array();
  for (std::int64_t c = 0; c < result.num_classes(); ++c) {
    const double accuracy = result.class_accuracy(c);
    json["classes"].push_back({{"name", result.classes[static_cast<std::size_t>(c)]},
                               {"count", result.class_count(c)},
                               {"top1", std::isnan(accuracy) ? Json() : Json(accuracy)}});
  }
  json["confusion"] = result.confusion;
  json["broken"] = result.broken;
  return json;
}

void print_text(const train::Evaluation& result) {
  fmt::print("top-1 {:.2f} %   top-5 {:.2f} %   loss {:.4f}   {}, {:.0f} a second\n", result.top1, result.top5,
             result.loss, io::counted(result.count, "images"), result.images_per_second);
  if (!result.heads.empty()) {
    fmt::print("the mean of two heads:\n");
    for (const auto& [name, head] :
         {std::pair{"class head", result.heads[0]}, {"distillation head", result.heads[1]}}) {
      fmt::print("  {:<17}  top-1 {:.2f} %   top-5 {:.2f} %   loss {:.4f}\n", name, head.top1, head.top5, head.loss);
    }
  }
  fmt::print("\n");
  print_by_class(result);
}

void evaluate(const EvalFlags& flags) {
  as_usage([&] { train::check_tta(flags.tta); });
  train::EvaluateOptions options = flags.data.options(flags.compute.apply());
  options.tta = flags.tta;
  const models::Model model = flags.model.open_classifier();
  const auto dataset = open_images(flags.data, model);
  if (!flags.output.empty()) {
    io::make_folder(flags.output);
  }
  const train::Evaluation result = evaluate_under_bar("evaluating", model, *dataset, options);
  if (!flags.output.empty()) {
    const std::filesystem::path folder = flags.output;
    io::write_atomically(folder / "confusion.svg", train::confusion_svg(result));
    io::write_atomically(folder / "eval.json", to_json(flags, result).dump(2) + "\n");
  }
  if (flags.json) {
    print_json(to_json(flags, result));
    return;
  }
  print_text(result);
  if (!flags.output.empty()) {
    fmt::print("\n{0}/confusion.svg, {0}/eval.json\n", flags.output);
  }
}

struct PredictFlags {
  ModelFlags model;
  ComputeFlags compute;
  std::vector<std::string> images;
  std::int64_t topk = 5;
  const CLI::Option* topk_flag = nullptr;
  std::int64_t batch_size = 64;
  std::optional<std::int64_t> batch_tokens;
  std::int64_t tta = 0;
  bool skip_broken = false;
  bool truncate = false;
  std::string frames;
  std::string format = "text";
  std::string output;
};

class Predictor {
 public:
  explicit Predictor(const PredictFlags& flags)
      : flags_(flags),
        dtype_(flags.compute.apply()),
        model_(flags.model.open_classifier()),
        names_(train::class_names(model_)) {
    as_usage([&] { train::check_tta(flags.tta); });
    check_usage(flags.model.num_classes != 0, "--num-classes 0 leaves no classes to predict");
  }

  // Prints the predictions for all images: text and CSV batch by batch, JSON at the end.
  void run() {
    const std::vector<NamedImage> listed = list_images(flags_.images, "", flags_.skip_broken);
    if (flags_.format == "csv") {
      fmt::print("file,rank,label,index,probability\n");
    }
    for_each_batch(listed, flags_.batch_size, flags_.skip_broken,
                   [this](const std::vector<std::string>& names, const std::vector<io::Image>& images) {
                     predict_batch(names, images);
                   });
    if (flags_.format == "json") {
      print_json(results_);
    }
  }

 private:
  void predict_batch(const std::vector<std::string>& names, const std::vector<io::Image>& images) {
    const Tensor probabilities = train::predict(model_, images, dtype_, flags_.batch_size, flags_.tta);
    for (std::size_t i = 0; i < names.size(); ++i) {
      report(names[i], probabilities.select(0, static_cast<std::int64_t>(i)).values());
    }
  }

  void report(const std::string& file, const std::vector<float>& probabilities) {
    const std::vector<std::int64_t> best = kernels::largest(probabilities, flags_.topk);
    const std::vector<std::size_t> order(best.begin(), best.end());
    if (flags_.format == "json") {
      Json top = Json::array();
      for (const std::size_t c : order) {
        top.push_back({{"label", names_[c]}, {"index", c}, {"probability", probabilities[c]}});
      }
      results_.push_back({{"file", io::as_utf8(file)}, {"top", top}});
    } else if (flags_.format == "csv") {
      for (std::size_t i = 0; i < order.size(); ++i) {
        fmt::print("{},{},{},{},{}\n", csv_field(file), i + 1, csv_field(names_[order[i]]), order[i],
                   probabilities[order[i]]);
      }
    } else {
      std::string line = io::on_one_line(file) + ":";
      for (const std::size_t c : order) {
        line += fmt::format("  {} {:.1f} %", io::on_one_line(names_[c]), 100 * probabilities[c]);
      }
      fmt::print("{}\n", line);
    }
  }

  const PredictFlags& flags_;
  DType dtype_;
  models::Model model_;
  std::vector<std::string> names_;
  Json results_ = Json::array();
};

void predict(const PredictFlags& flags) {
  check_usage(flags.output.empty() || is_text_model(flags.model),
              "--output draws the labels of words, but '{}' is no model of texts", flags.model.model);
  if (flags.model.kind() == models::ModelKind::frames) {
    check_usage(flags.tta == 0 && !flags.truncate && !flags.batch_tokens,
                "'{}' reads sequences: it takes none of --tta, --truncate and --batch-tokens", flags.model.model);
    predict_frames(flags.model, flags.compute,
                   {.sources = flags.images,
                    .frames = flags.frames,
                    .topk_given = flags.topk_flag->count() > 0,
                    .topk = flags.topk,
                    .batch_size = flags.batch_size,
                    .skip_broken = flags.skip_broken,
                    .format = flags.format});
    return;
  }
  check_usage(flags.frames.empty(), "--frames is for models of sequences of images, but '{}' is none",
              flags.model.model);
  if (flags.model.kind() == models::ModelKind::captioner) {
    check_usage(flags.tta == 0 && !flags.truncate && !flags.batch_tokens && flags.topk_flag->count() == 0,
                "'{}' captions images: it takes none of --topk, --tta, --truncate and --batch-tokens",
                flags.model.model);
    CaptionFlags captions;
    captions.model = flags.model;
    captions.compute = flags.compute;
    captions.images = flags.images;
    captions.batch_size = flags.batch_size;
    captions.skip_broken = flags.skip_broken;
    captions.format = flags.format;
    caption_images(captions);
    return;
  }
  if (flags.model.kind() == models::ModelKind::sets) {
    check_usage(flags.tta == 0 && !flags.truncate && !flags.batch_tokens && flags.topk_flag->count() == 0,
                "'{}' says sets of sets: it takes none of --topk, --tta, --truncate and --batch-tokens",
                flags.model.model);
    predict_sets(flags.model, flags.compute,
                 {.sources = flags.images, .batch_size = flags.batch_size, .format = flags.format});
    return;
  }
  if (!is_text_model(flags.model)) {
    check_usage(!flags.truncate && !flags.batch_tokens, "--truncate and --batch-tokens are for texts");
    Predictor(flags).run();
    return;
  }
  check_usage(flags.tta == 0, "'{}' is a model of texts: it takes no --tta", flags.model.model);
  predict_texts(flags.model, flags.compute,
                {.texts = flags.images,
                 .topk = flags.topk,
                 .topk_given = flags.topk_flag->count() > 0,
                 .batch_size = flags.batch_size,
                 .batch_tokens = flags.batch_tokens,
                 .truncate = flags.truncate,
                 .skip_broken = flags.skip_broken,
                 .format = flags.format,
                 .output = flags.output});
}

}  // namespace

void add_eval(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("eval",
                                          "Measure a model: accuracy and confusion matrix of images, perplexity or "
                                          "accuracy of texts, BLEU of translations");
  const auto flags = std::make_shared<EvalFlags>();
  add_model_argument(command, flags->model);
  add_data_argument(
      command, flags->data,
      "Images: a folder of class folders, a .tar, CIFAR or MNIST files, a .csv; or what a model of texts is trained "
      "on: a text, texts or words with labels");
  add_language_flags(command, flags->language);
  add_translation_flags(command, flags->translation);
  command
      .add_option("--output", flags->output,
                  "Folder for eval.json and confusion.svg, angles.svg, or of a text by_position.svg with --by-position")
      ->type_name("DIR");
  add_frames_flag(command, flags->frames);
  add_loading_flags(command, flags->data);
  command
      .add_option("--tta", flags->tta,
                  "Average each image and its mirror image (2), both also moved by a pixel (6), or take it alone (0)")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number());
  command.add_option("--metric", flags->metric, "Of a detector: coco, the twelve figures of COCO, which it has anyway")
      ->type_name("NAME")
      ->check(CLI::IsMember({"coco"}));
  command.add_flag("--json", flags->json, "Print one JSON object");
  add_compute_flags(command, flags->compute);
  add_image_flags(command, flags->model);
  add_examples(command, {"vitrail eval demo/run/best data/cifar10/test.tar",
                         "vitrail eval demo/run/best photos --split validation --output report --json",
                         "vitrail eval runs/shakespeare test.txt --by-position --output report",
                         "vitrail eval runs/moods test.tsv", "vitrail eval runs/de-en --src test.de --tgt test.en"});
  CLI::Option* const batch = command.get_option("--batch-size");
  const CLI::Option* const workers = command.get_option("--workers");
  command.callback([flags, batch, workers] {
    const TranslationFlags& pairs = flags->translation;
    check_usage(flags->metric.empty() || flags->model.kind() == models::ModelKind::detector,
                "--metric is for detectors, but '{}' is none", flags->model.model);
    check_usage(!pairs.given() || flags->data.data.empty(), "give DATA, or --src and --tgt, not both");
    if (is_text_model(flags->model)) {
      check_usage(flags->tta == 0 && flags->frames.empty(), "'{}' {}: it takes neither --tta nor --frames",
                  flags->model.model, models::words_of(flags->model.kind()).is_or_does);
      check_usage(workers->count() == 0, "'{}' {}: it takes no --workers", flags->model.model,
                  models::words_of(flags->model.kind()).is_or_does);
      evaluate_text_model(flags->model, flags->compute,
                          {.data = flags->data.data,
                           .split = flags->data.split,
                           .batch_size = batch->count() > 0 ? std::optional(flags->data.batch_size) : std::nullopt,
                           .skip_broken = flags->data.skip_broken,
                           .output = flags->output,
                           .json = flags->json},
                          flags->language, pairs);
      return;
    }
    check_usage(!pairs.given(), "'{}' is no model of texts: it is evaluated on DATA, not on --src and --tgt",
                flags->model.model);
    check_usage(!flags->data.data.empty(), "DATA is required: images, or sequences of them");
    if (!flags->output.empty()) {
      check_beside_data(flags->output, flags->data.data);
    }
    note_learned_data(flags->model, flags->data);
    const bool captions = flags->model.kind() == models::ModelKind::captioner;
    check_usage(!flags->language.given() && (captions || !pairs.num_beams) && !pairs.batch_tokens,
                "'{}' is no model of texts: it takes no flags of language models, nor {}--batch-tokens",
                flags->model.model, captions ? "" : "--num-beams and ");
    if (flags->model.kind() == models::ModelKind::frames) {
      check_usage(flags->tta == 0, "'{}' reads sequences: it takes no --tta", flags->model.model);
      evaluate_frames(flags->model, flags->compute, flags->data, flags->frames, flags->output, flags->json);
      return;
    }
    check_usage(flags->frames.empty(), "--frames is for models of sequences of images, but '{}' is none",
                flags->model.model);
    if (flags->model.kind() == models::ModelKind::detector) {
      check_usage(flags->tta == 0, "'{}' finds objects: it takes no --tta", flags->model.model);
      evaluate_detections(flags->model, flags->compute, flags->data, flags->output, flags->json);
      return;
    }
    if (flags->model.kind() == models::ModelKind::sets) {
      check_usage(flags->tta == 0, "'{}' says sets of sets: it takes no --tta", flags->model.model);
      evaluate_sets(flags->model, flags->compute, flags->data, flags->output, flags->json);
      return;
    }
    if (flags->model.kind() == models::ModelKind::answerer) {
      check_usage(flags->tta == 0, "'{}' answers questions: it takes no --tta", flags->model.model);
      evaluate_questions(flags->model, flags->compute, flags->data, flags->output, flags->json);
      return;
    }
    if (captions) {
      check_usage(flags->tta == 0 && flags->output.empty(), "'{}' captions images: it takes neither --tta nor --output",
                  flags->model.model);
      evaluate_captioner(flags->model, flags->compute, flags->data, pairs.num_beams.value_or(1), flags->json);
      return;
    }
    evaluate(*flags);
  });
}

void add_predict(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "predict", "Print what a model sees in images or texts: names and probabilities, or captions");
  const auto flags = std::make_shared<PredictFlags>();
  add_model_argument(command, flags->model);
  add_images_argument(command, flags->images);
  command.get_option("IMAGES")->required(false);  // of one alone, a shipped model says what it sees
  flags->topk_flag = command.add_option("--topk", flags->topk, "Number of classes to name, the likeliest first")
                         ->capture_default_str()
                         ->check(at_least(1));
  command.add_option("-b,--batch-size", flags->batch_size, "Images or texts a batch")
      ->capture_default_str()
      ->check(at_least(1));
  command.add_flag("--skip-broken", flags->skip_broken,
                   "Leave broken images out and name them, or lines of texts that are not UTF-8, and count them");
  add_frames_flag(command, flags->frames);
  add_batch_tokens_flag(command, flags->batch_tokens);
  command.add_flag("--truncate", flags->truncate, "Cut texts that are longer than the model's positions");
  command
      .add_option("--tta", flags->tta,
                  "Average each image and its mirror image (2), both also moved by a pixel (6), or take it alone (0)")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number());
  CLI::Option* format =
      command
          .add_option("--format", flags->format,
                      "Output: text, a line for each image; csv, a line for each class that is named; "
                      "json, a list")
          ->capture_default_str()
          ->type_name("FORMAT")
          ->check(CLI::IsMember({"text", "csv", "json"}));
  expect_ending(
      command.add_option("--output", flags->output, "Draw the words with their labels (models that label words)"),
      ".svg");
  // Its name in earlier versions.
  command.add_flag_callback("--json", [flags] { flags->format = "json"; })->group("")->excludes(format);
  add_compute_flags(command, flags->compute);
  add_image_flags(command, flags->model);
  add_examples(command, {"vitrail predict cat.jpg", "vitrail predict demo/run/best cat.jpg",
                         "vitrail predict demo/run/best photos/ --topk 1 --format csv",
                         "find . -name '*.png' | vitrail predict demo/run/best -",
                         "vitrail predict my_bert_of_moods \"What a day!\" reviews.txt"});
  command.callback([flags] {
    if (flags->images.empty()) {
      const std::optional<std::string> image = image_without_model(flags->model, "vitrail/cifar10_resnet");
      check_usage(image.has_value(), "IMAGES is required");
      flags->images = {*image};
    }
    check_one_image_without_model(flags->model, "vitrail/cifar10_resnet");
    predict(*flags);
  });
}

}  // namespace vitrail::cli
