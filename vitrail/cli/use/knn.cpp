// `vitrail knn` measures how well nearest neighbours among features tell classes apart.
#include "vitrail/train/study/knn.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/features.h"

namespace vitrail::cli {
namespace {

struct KnnFlags {
  ModelFlags model;
  ComputeFlags compute;
  std::string training;
  std::string train_split;
  DataFlags test;
  std::string pool;
  train::KnnOptions options = {.k = {}};
  bool json = false;
  std::vector<const CLI::Option*> of_images;  ///< those that features in files have no use for
};

// Whether a file holds features: whether it begins as safetensors do, whatever it is called.
bool is_features(const std::string& source) {
  if (source.ends_with(".safetensors")) {
    return true;
  }
  std::error_code error;
  if (!std::filesystem::is_regular_file(source, error)) {  // features are mapped, which a pipe cannot be
    return false;
  }
  std::ifstream file(source, std::ios::binary);
  std::array<char, 9> head{};  // the length of the header, and its first byte
  return file.read(head.data(), head.size()) && head[8] == '{' && head[6] == 0 && head[7] == 0;
}

// The features of the training and of the test set, from files or by the model.
std::pair<train::Features, train::Features> features_of(const KnnFlags& flags) {
  const bool from_files = is_features(flags.training) && is_features(flags.test.data);
  check_usage(from_files || !flags.model.model.empty(),
              "features (.safetensors, from vitrail embed) were expected; for images a --model is needed");
  for (const CLI::Option* option : flags.of_images) {
    check_usage(!from_files || option->count() == 0, "the features are there already: {} has nothing to do",
                option->get_name());
  }
  const DType dtype = flags.compute.apply();
  if (from_files) {
    note_same_source("features", flags.training, flags.test.data);
    return {train::load_features(flags.training), train::load_features(flags.test.data)};
  }
  if (flags.train_split == flags.test.split) {
    note_same_source("images", flags.training, flags.test.data);
  }
  const train::EvaluateOptions options = flags.test.options(dtype);
  const models::Model model = flags.model.open_for_images();
  const models::Model trunk = models::without_head(model, flags.pool);
  std::string noted;
  const auto open = [&](const std::string& source, const std::string& split, std::vector<std::string> classes,
                        const char* title) {
    if (is_features(source)) {
      return train::load_features(source);
    }
    data::DatasetOptions where;
    where.split = split;
    where.classes = std::move(classes);
    where.skip_broken = options.skip_broken;
    const std::unique_ptr<data::Dataset> images = data::open_dataset(source, where);
    say_notes_of(*images);
    if (source != noted) {
      note_beside_classes(source);
      noted = source;
    }
    train::Features features = embed_under_bar(title, trunk, *images, options);
    note_left_out_images(features.broken);
    features.facts = train::facts_of(trunk);
    features.facts.insert({{"model", flags.model.model}, {"pool", flags.pool}, {"layer", ""}});
    return features;
  };
  const bool test_first = is_features(flags.test.data);  // whose classes are numbered already
  train::Features training;
  train::Features test;
  const auto open_test = [&] {
    test = open(flags.test.data, flags.test.split, training.classes, "features to tell apart");
  };
  if (test_first) {
    open_test();
  }
  training = open(flags.training, flags.train_split, test.classes, "features to compare with");
  if (!test_first) {
    open_test();
  }
  return {std::move(training), std::move(test)};
}

void knn(const KnnFlags& flags) {
  const auto [training, test] = features_of(flags);
  train::KnnOptions options = flags.options;
  const std::int64_t bank = training.x.size(0);
  if (options.k.empty()) {  // DINO's, of which those are left out that there are too few images for
    options.k = {10, 20, 100, 200};
    const auto left_out = std::erase_if(options.k, [bank](std::int64_t k) { return k > bank; });
    say_note(left_out > 0 ? fmt::format("{} of the usual 10, 20, 100 and 200 neighbours {} more than there are images",
                                        left_out, left_out == 1 ? "is" : "are")
                          : "");
    if (options.k.empty()) {
      options.k = {bank};
    }
  }
  const std::vector<train::KnnResult> results = train::knn(training, test, options);
  for (const std::string& difference : train::differences(training, test)) {
    say("note: {}\n", difference);
  }
  if (flags.json) {
    nlohmann::ordered_json json;
    json["training"] = training.x.size(0);
    json["test"] = test.x.size(0);
    json["features"] = training.x.size(1);
    json["temperature"] = flags.options.temperature;
    for (const train::KnnResult& result : results) {
      json["knn"].push_back(
          {{"k", result.k}, {"top1", result.top1}, {"top5", result.top5}, {"majority_top1", result.majority_top1}});
    }
    print_json(json);
    return;
  }
  fmt::print("{} by their neighbours among {}, {} each\n\n", io::counted(test.x.size(0), "images"), training.x.size(0),
             io::counted(training.x.size(1), "features"));
  fmt::print("{:>5}  {:>9}  {:>9}  {:>16}\n", "k", "top-1", "top-5", "top-1, majority");
  for (const train::KnnResult& result : results) {
    fmt::print("{:>5}  {:>7.2f} %  {:>7.2f} %  {:>14.2f} %\n", result.k, result.top1, result.top5,
               result.majority_top1);
  }
}

}  // namespace

void add_knn(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("knn", "Tell images apart by their nearest neighbours among features");
  const auto flags = std::make_shared<KnnFlags>();
  command.add_option("TRAIN", flags->training, "Features with labels from vitrail embed, or images (with --model)")
      ->required()
      ->type_name("");
  command.add_option("TEST", flags->test.data, "Features or images to tell apart")->required()->type_name("");
  command
      .add_option("-k,--neighbors", flags->options.k,
                  "Neighbours that vote; several numbers give a line each (default: DINO's 10 20 100 200)")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(at_least(1))
      ->type_name("K");
  command.add_option("--temperature", flags->options.temperature, "A neighbour's vote weighs exp(cosine / T)")
      ->capture_default_str()
      ->check(positive())
      ->type_name("T");
  flags->of_images = {
      command.add_option("--model", flags->model.model, "Model to compute features of images by: a name or a folder")
          ->type_name("MODEL"),
      command.add_option("--train-split", flags->train_split, "Part of TRAIN's images")->type_name("NAME"),
      command.add_option("--split", flags->test.split, "Part of TEST's images")->type_name("NAME"),
      command.add_option("--pool", flags->pool, "Pooling, as in vitrail embed")->type_name("POOL")};
  const auto of_images = [&](const std::vector<CLI::Option*>& options) {
    flags->of_images.insert(flags->of_images.end(), options.begin(), options.end());
  };
  of_images(add_loading_flags(command, flags->test));
  command.add_flag("--json", flags->json, "Print one JSON object");
  of_images(add_model_changes(command, flags->model));
  add_compute_flags(command, flags->compute);
  of_images({command.get_option("--amp"), command.get_option("--amp-dtype")});
  of_images(add_image_flags(command, flags->model));
  add_examples(command, {"vitrail knn train.safetensors test.safetensors -k 10 20 100",
                         "vitrail knn photos photos --train-split train --split validation --model runs/photos/best"});
  command.callback([flags] { knn(*flags); });
}

}  // namespace vitrail::cli
