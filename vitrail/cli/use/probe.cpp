// `vitrail probe` measures how well a linear classifier on features tells classes apart.
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/say.h"
#include "vitrail/io/wording.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/study/linear_classifier.h"

namespace vitrail::cli {
namespace {

struct ProbeFlags {
  std::string training;
  std::string test;
  train::LinearClassifierOptions options;
  ComputeFlags compute;
  bool json = false;
};

void probe(const ProbeFlags& flags) {
  flags.compute.apply();
  note_same_source("features", flags.training, flags.test);
  const train::Features training = train::load_features(flags.training);
  const train::Features test = train::load_features(flags.test);
  train::Progress progress(stderr);
  train::LinearClassifierOptions options = flags.options;
  if (progress.terminal()) {
    progress.begin("epochs", options.epochs);
    options.progress = [&](std::int64_t done, std::int64_t) { progress.update(done, ""); };
  }
  const std::vector<train::LinearClassifierResult> results = train::train_linear_classifiers(training, test, options);
  progress.end();
  for (const std::string& difference : train::differences(training, test)) {
    say("note: {}\n", difference);
  }
  if (flags.json) {
    nlohmann::ordered_json json;
    json["training"] = training.x.size(0);
    json["test"] = test.x.size(0);
    json["features"] = training.x.size(1);
    json["epochs"] = options.epochs;
    for (const train::LinearClassifierResult& result : results) {
      json["probe"].push_back({{"lr", result.lr},
                               {"train_loss", result.train_loss},
                               {"loss", result.test.loss},
                               {"top1", result.test.top1},
                               {"top5", result.test.top5},
                               {"best_top1", result.best_top1},
                               {"best_epoch", result.best_epoch}});
    }
    print_json(json);
    return;
  }
  fmt::print("{} by a linear classifier of {}, {} each, {}\n\n", io::counted(test.x.size(0), "images"),
             training.x.size(0), io::counted(training.x.size(1), "features"), io::counted(options.epochs, "epochs"));
  fmt::print("{:>8}  {:>13}  {:>9}  {:>9}  {:>9}  {:>9}\n", "lr", "training loss", "loss", "top-1", "top-5", "best");
  for (const train::LinearClassifierResult& result : results) {
    fmt::print("{:>8g}  {:>13.4f}  {:>9.4f}  {:>7.2f} %  {:>7.2f} %  {:>7.2f} %\n", result.lr, result.train_loss,
               result.test.loss, result.test.top1, result.test.top5, result.best_top1);
  }
}

}  // namespace

void add_probe(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("probe", "Tell images apart by a linear classifier on features");
  const auto flags = std::make_shared<ProbeFlags>();
  flags->options.lr = {0.001, 0.01, 0.1, 1};
  command.add_option("TRAIN", flags->training, "Features with labels from vitrail embed")->required()->type_name("");
  command.add_option("TEST", flags->test, "Features to tell apart")->required()->type_name("");
  command
      .add_option("--lr", flags->options.lr,
                  "Learning rates for batches of 256; several give a classifier each, on the same batches")
      ->capture_default_str()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(positive())
      ->type_name("LR");
  command.add_option("--epochs", flags->options.epochs, "Epochs, over which the rate goes to 0 by half a cosine")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N");
  command.add_option("-b,--batch-size", flags->options.batch_size, "Features of a batch")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N");
  command.add_option("--seed", flags->options.seed, "Seed of the first weights and of the order")
      ->capture_default_str()
      ->check(at_least(0))
      ->type_name("N");
  add_threads_flag(command, flags->compute);
  command.add_flag("--json", flags->json, "Print one JSON object");
  add_examples(command, {"vitrail embed my_dino photos --split train --pool last4 --output train.safetensors",
                         "vitrail embed my_dino photos --split validation --pool last4 --output test.safetensors",
                         "vitrail probe train.safetensors test.safetensors --lr 0.01 0.1 1"});
  command.callback([flags] { probe(*flags); });
}

}  // namespace vitrail::cli
