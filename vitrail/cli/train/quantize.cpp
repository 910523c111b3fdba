// The command `vitrail quantize`, which converts the weights of a model to int8.
#include "vitrail/models/quantize.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/autograd/tape.h"
#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/texts.h"
#include "vitrail/cli/train/quantize_texts.h"
#include "vitrail/data/dataset_part.h"
#include "vitrail/train/bench/benchmark.h"
#include "vitrail/train/study/evaluate.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

struct QuantizeFlags {
  ModelFlags model;
  ComputeFlags compute;
  std::string output;
  std::string calibrate;
  std::int64_t calibration_images = 512;
  DataFlags eval;
  std::string src;
  std::string tgt;
  bool json = false;
  std::vector<CLI::Option*> loading;  ///< those that say how images are read
};

train::Evaluation run(const models::Model& model, const data::Dataset& images, const QuantizeFlags& flags, DType dtype,
                      const char* title) {
  train::Evaluation result = evaluate_under_bar(title, model, images, flags.eval.options(dtype));
  note_left_out_images(result.broken);
  return result;
}

models::Model quantized(const models::Model& model, const QuantizeFlags& flags) {
  if (flags.calibrate.empty()) {
    return models::quantize(model);
  }
  const auto images = data::open_unlabeled(flags.calibrate, flags.eval.skip_broken);
  say_notes_of(*images);
  const data::DatasetPart sample(*images, data::spread_images(*images, flags.calibration_images));
  const auto forward = [&](const Tensor& x, nn::Pass& pass) { return model.net->forward(x, pass); };
  models::InputRanges ranges;
  const train::Features features =
      embed_under_bar("calibrating", model, sample, forward, flags.eval.options(DType::f32));
  note_left_out_images(features.broken);
  return models::quantize(model, &ranges);
}

std::string size_line(const nlohmann::ordered_json& bytes) {
  const double now = bytes["int8"].get<double>();
  const double before = bytes["float"].get<double>();
  const bool small = before < 1e6;
  const double unit = small ? 1e3 : 1e6;
  const char* const name = small ? "kB" : "MB";
  return fmt::format("  size            {:.1f} {}, was {:.1f} {}", now / unit, name, before / unit, name);
}

void quantize(const QuantizeFlags& flags) {
  check(!fs::exists(flags.output) || (fs::is_directory(flags.output) && fs::is_empty(flags.output)),
        "'{}' exists: choose another --output", flags.output);
  if (flags.model.kind() == models::ModelKind::texts) {
    const fs::path folder = text_model_folder(flags.model);
    check_usage(flags.calibrate.empty(), "--calibrate is for images, but '{}' is a model of texts", flags.model.model);
    for (const CLI::Option* option : flags.loading) {
      check_usage(option->count() == 0 || option->check_lname("skip-broken"),
                  "'{}' is a model of texts: it takes no {}", flags.model.model, option->get_name());
    }
    const QuantizeTextsFlags texts{flags.output, flags.eval.data,        flags.eval.split, flags.src,
                                   flags.tgt,    flags.eval.skip_broken, flags.json};
    check_usage(texts.compares() || !texts.skip_broken, "--skip-broken has no effect without --eval or --src");
    return quantize_texts(folder, texts, flags.compute);
  }
  for (const CLI::Option* option : flags.loading) {
    check_usage(option->count() == 0 || !flags.calibrate.empty() || !flags.eval.data.empty(),
                "{} has no effect without --calibrate or --eval", option->get_name());
  }
  check_usage(flags.src.empty() && flags.tgt.empty(),
              "--src and --tgt are for translators, but '{}' is a model of images", flags.model.model);
  const DType dtype = flags.compute.apply();
  const models::Model model = flags.model.open_for_images();
  note_left_out(flags.model.name_or_folder());
  const auto images = flags.eval.data.empty() ? nullptr : open_images(flags.eval, model);
  const models::Model small = quantized(model, flags);

  nlohmann::ordered_json json;
  json["model"] = flags.model.model;
  json["output"] = flags.output;
  json["activations"] = flags.calibrate.empty() ? "token" : "tensor";
  json["bytes"] = {{"float", models::stored_bytes(*model.net, flags.model.name_or_folder())},
                   {"int8", models::parameter_bytes(*small.net)}};
  for (const std::int64_t size : {std::int64_t{1}, std::int64_t{8}}) {
    // In turns, so that what else the machine does meets both.
    double was = std::numeric_limits<double>::infinity();
    double is = was;
    for (int turn = 0; turn < 3; ++turn) {
      was = std::min(was, train::fastest_forward_ms(model, size, dtype));
      is = std::min(is, train::fastest_forward_ms(small, size, dtype));
    }
    json["forward_ms"].push_back({{"batch_size", size}, {"float", was}, {"int8", is}});
  }
  if (images != nullptr) {
    const train::Evaluation before = run(model, *images, flags, dtype, "evaluating as it was");
    const train::Evaluation after = run(small, *images, flags, dtype, "evaluating in int8");
    std::int64_t changed = 0;
    for (std::size_t i = 0; i < before.predictions.size(); ++i) {
      changed += before.predictions[i] != after.predictions[i] ? 1 : 0;
    }
    json["images"] = before.count;
    json["top1"] = {{"float", before.top1}, {"int8", after.top1}};
    json["changed"] = changed;
  }
  models::save_model(small, flags.output);
  if (flags.json) {
    print_json(json);
    return;
  }
  fmt::print("{}: weights by output in int8, activations by {}\n", flags.output,
             json["activations"].get<std::string>());
  fmt::print("{}\n", size_line(json["bytes"]));
  for (const auto& row : json["forward_ms"]) {
    const auto was = row["float"].get<double>();
    const auto is = row["int8"].get<double>();
    fmt::print("  forward of {:<4} {:.2f} ms, was {:.2f} ms in {}: {:.2f} times as fast\n",
               row["batch_size"].get<std::int64_t>(), is, was, name_of(dtype), was / is);
  }
  if (!flags.eval.data.empty()) {
    fmt::print("  top-1           {:.2f} %, was {:.2f} %; {} of {} answers changed\n",
               json["top1"]["int8"].get<double>(), json["top1"]["float"].get<double>(),
               json["changed"].get<std::int64_t>(), json["images"].get<std::int64_t>());
  }
}

}  // namespace

void add_quantize(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("quantize", "Make a model folder with int8 weights, for faster inference");
  const auto flags = std::make_shared<QuantizeFlags>();
  add_model_argument(command, flags->model);
  command.add_option("--output", flags->output, "New model folder")->required()->type_name("DIR");
  CLI::Option* calibrate =
      command
          .add_option("--calibrate", flags->calibrate,
                      "Images to choose one fixed scale for each layer's input by (default: a scale for each token)")
          ->type_name("DATA");
  command
      .add_option("--calibration-images", flags->calibration_images,
                  "Number of images to calibrate on, spread over DATA")
      ->capture_default_str()
      ->check(at_least(1))
      ->needs(calibrate);
  command.add_option("--calibration-pictures", flags->calibration_images)
      ->group("")
      ->check(at_least(1));  // its name in earlier versions
  add_data_flag(
      command, flags->eval, "--eval",
      "Images to compare the accuracy on, before and after; or a text, for perplexity or an encoder's vectors");
  command
      .add_option("--src", flags->src,
                  "Texts to compare a translator's BLEU on, before and after; or a table of pairs, without --tgt")
      ->type_name("FILE");
  command.add_option("--tgt", flags->tgt, "Their translations, line by line")->type_name("FILE");
  flags->loading = add_loading_flags(command, flags->eval);
  command.add_flag("--json", flags->json, "Print one JSON object");
  add_compute_flags(command, flags->compute);
  add_image_flags(command, flags->model);
  add_examples(command,
               {"vitrail quantize runs/photos/best --output small --eval photos --split validation",
                "vitrail quantize runs/photos/best --output small --calibrate photos/train --amp",
                "vitrail predict small cat.jpg", "vitrail quantize my_llama --output my_llama_int8 --eval book.txt",
                "vitrail quantize runs/de-en --output de-en_int8 --src test.de --tgt test.en"});
  command.callback([flags] { quantize(*flags); });
}

}  // namespace vitrail::cli
