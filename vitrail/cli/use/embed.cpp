// `vitrail embed` computes features of images; embed_texts.cpp has what it does with texts.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/texts.h"
#include "vitrail/io/file.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/features.h"
#include "vitrail/train/study/features.h"

namespace vitrail::cli {
namespace {

struct EmbedFlags {
  ModelFlags model;
  ComputeFlags compute;
  DataFlags data;
  std::string output;
  std::string pool;
  bool unlabeled = false;
  EmbedTextsFlags texts;
};

void embed(const EmbedFlags& flags) {
  if (is_text_model(flags.model)) {
    check_usage(!flags.unlabeled && flags.pool.empty(),
                "'{}' is a model of texts: it takes neither --unlabeled nor --pool", flags.model.model);
    embed_texts(flags.model, flags.compute, flags.data, flags.texts, flags.output);
    return;
  }
  check_usage(!flags.data.data.empty(), "DATA is required");
  check_usage(!flags.output.empty(), "--output is required");
  check_usage(
      flags.texts.similarity.empty() && flags.texts.search.empty() && !flags.texts.json && !flags.texts.batch_tokens,
      "--similarity, --search, --batch-tokens and --json are for models of texts");
  check_usage(!flags.unlabeled || flags.data.split.empty(),
              "--unlabeled takes all of DATA, and --split a part with labels");
  check_not_input(flags.output, flags.data.data);
  const train::EvaluateOptions options = flags.data.options(flags.compute.apply());
  const models::Model model = flags.model.open_for_images();
  const auto dataset = flags.unlabeled ? data::open_unlabeled(flags.data.data) : open_images(flags.data, model);
  const models::Model trunk = models::without_head(model, flags.pool);
  const train::Features features = embed_under_bar("features", trunk, *dataset, options);
  train::save_features(flags.output, features,
                       {{"format", "pt"}, {"model", flags.model.model}, {"architecture", model.architecture}});
  for (const std::string& broken : features.broken) {
    fmt::print("left out: {}\n", broken);
  }
  fmt::print("{}: features {} f32, labels and names of {}\n", flags.output, features.x.shape().str(),
             io::counted(features.x.size(0), "images"));
}

}  // namespace

void add_embed(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "embed", "Write features of images, what a model sees before its classifier, or vectors of texts");
  const auto flags = std::make_shared<EmbedFlags>();
  add_model_argument(command, flags->model);
  add_data_argument(command, flags->data,
                    "Images: a folder of class folders, a .tar, CIFAR or MNIST files, a .csv; for a model of texts a "
                    "file of lines, - for the standard input, or a text",
                    "train, validation, test …");
  command.get_option("DATA")->required(false);
  command
      .add_option("--output", flags->output,
                  "Safetensors file to write: features [N, D] f32, labels [N] i64; names and classes in its metadata")
      ->type_name("FILE");
  command.add_option("--similarity", flags->texts.similarity, "Print the cosine of two texts")
      ->expected(2)
      ->allow_extra_args(false)  // a text in brackets is no list
      ->type_name("A B")
      ->group("Texts");
  command.add_option("--search", flags->texts.search, "Print the nearest lines of a file for each text")
      ->type_name("CORPUS")
      ->group("Texts");
  command.add_option("--topk", flags->texts.topk, "Number of lines that --search names")
      ->capture_default_str()
      ->check(at_least(1))
      ->type_name("N")
      ->group("Texts");
  add_batch_tokens_flag(command, flags->texts.batch_tokens)->group("Texts");
  command.add_flag("--json", flags->texts.json, "Print JSON")->group("Texts");
  command
      .add_option("--pool", flags->pool,
                  "Pooling: token, the class token; avg, the mean of the patches; max … (default: the classifier's)")
      ->type_name("POOL");
  command.add_flag("--unlabeled", flags->unlabeled, "Take all images below DATA, with -1 for labels");
  add_loading_flags(command, flags->data);
  add_compute_flags(command, flags->compute);
  add_image_flags(command, flags->model);
  add_examples(command, {"vitrail embed runs/photos/best photos --split train --output train.safetensors",
                         "vitrail embed my_dinov2 albums --unlabeled --pool avg --output albums.safetensors",
                         "vitrail embed my_minilm sentences.txt --output vectors.safetensors",
                         "vitrail embed my_minilm --similarity \"A man rides.\" \"Someone is on a horse.\"",
                         "vitrail embed my_minilm \"two dogs\" --search sentences.txt --topk 3"});
  command.callback([flags] { embed(*flags); });
}

}  // namespace vitrail::cli
