// `vitrail embed` computes features of images; embed_texts.cpp has what it does with texts.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/cli/say.h"
#include "vitrail/cli/texts.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/features.h"
#include "vitrail/train/study/embedding_file.h"
#include "vitrail/train/study/layer_features.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

struct EmbedFlags {
  ModelFlags model;
  ComputeFlags compute;
  DataFlags data;
  std::string output;
  std::string pool;
  std::optional<std::int64_t> layer;
  bool logits = false;
  DType output_dtype = DType::f32;
  bool unlabeled = false;
  EmbedTextsFlags texts;
  std::vector<const CLI::Option*> of_images;  ///< those that texts have no use for
};

// What is taken for the features, and of which model.
struct FeatureChoice {
  models::Model model;
  train::FeatureFunction function;
};

FeatureChoice choose_features(models::Model model, const EmbedFlags& flags) {
  FeatureChoice choice{std::move(model), {}};
  if (flags.logits) {
    check(choice.model.net->num_classes() > 0, "the model '{}' has no classifier, and so no --logits",
          choice.model.architecture);
  } else if (flags.layer || flags.pool == "last4") {
    choice.function = train::layer_features(choice.model, flags.layer, flags.pool);
    return choice;
  } else {
    choice.model = models::without_head(choice.model, flags.pool);
  }
  choice.function = [net = choice.model.net.get()](const Tensor& x, nn::Pass& pass) { return net->forward(x, pass); };
  return choice;
}

// The images with their labels. A model's features are of use for classes that it does not know: where DATA has
// others, their numbers are those of DATA.
std::unique_ptr<data::Dataset> open_labelled(const EmbedFlags& flags, const models::Model& model) {
  auto dataset = open_images(flags.data, model, !flags.logits);
  const std::vector<std::string>& known = model.pretrained.label_names;
  if (!known.empty() && dataset->classes() != known) {
    say("note: the labels are numbers of the {} of '{}', not all of which the model knows\n",
        io::counted(std::ssize(dataset->classes()), "classes"), flags.data.data);
  }
  return dataset;
}

// Whether images lie in a folder itself, in which nothing says their classes or parts.
bool is_without_classes(const fs::path& folder) {
  bool holds_images = false;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    if (data::is_hidden(entry.path().filename())) {
      continue;
    }
    if (entry.is_directory() || io::is_table_name(entry.path()) || entry.path().extension() == ".jsonl" ||
        data::holds_images(entry.path())) {
      return false;
    }
    holds_images = holds_images || io::is_image_name(entry.path());
  }
  return holds_images;
}

// All images of DATA if they are asked for, or if it is a folder that says no classes.
std::unique_ptr<data::Dataset> open_embedded(const EmbedFlags& flags, const models::Model& model) {
  const bool without_labels = flags.data.split.empty() && is_without_classes(flags.data.data);
  if (!flags.unlabeled && !without_labels) {
    return open_labelled(flags, model);
  }
  auto dataset = data::open_unlabeled(flags.data.data, flags.data.skip_broken);
  say_notes_of(*dataset);
  if (!flags.unlabeled) {
    say("note: '{}' has no folders of classes: the labels of its images are -1\n", flags.data.data);
  }
  return dataset;
}

void embed(const EmbedFlags& flags) {
  if (is_text_model(flags.model)) {
    for (const CLI::Option* option : flags.of_images) {
      check_usage(option->count() == 0, "'{}' is a model of texts: it takes no {}", flags.model.model,
                  option->get_name());
    }
    embed_texts(flags.model, flags.compute, flags.data, flags.texts, flags.output);
    return;
  }
  check_usage(
      flags.texts.similarity.empty() && flags.texts.search.empty() && !flags.texts.json && !flags.texts.batch_tokens,
      "--similarity, --search, --batch-tokens and --json are for models of texts");
  check_usage(!flags.data.data.empty(), "DATA is required");
  check_usage(!flags.output.empty(), "--output is required");
  check_usage(!flags.logits || (!flags.layer && flags.pool.empty()),
              "--logits are what the classifier gives: they have neither a --layer nor a --pool");
  check_usage(!flags.unlabeled || flags.data.split.empty(),
              "--unlabeled takes all of DATA, and --split a part with labels");
  check_not_of_model(flags.output, flags.model);
  const train::EvaluateOptions options = flags.data.options(flags.compute.apply());
  models::Model model = flags.model.open_for_images();
  const auto dataset = open_embedded(flags, model);
  const FeatureChoice choice = choose_features(std::move(model), flags);
  train::EmbeddingFileOptions file;
  file.dtype = flags.output_dtype;
  file.facts = {{"format", "pt"},
                {"model", flags.model.model},
                {"architecture", choice.model.architecture},
                {"split", flags.data.split},
                {"pool", flags.pool},
                {"layer", flags.layer ? fmt::format("{}", *flags.layer) : (flags.logits ? "logits" : "")}};
  const train::EmbeddingFile written =
      embed_to_file_under_bar("features", choice.model, *dataset, choice.function, options, flags.output, file);
  if (written.found > 0) {
    fmt::print("the features of {} were there already\n", io::counted(written.found, "images"));
  }
  if (written.changed > 0) {
    fmt::print("the features of {} were made anew, as files have changed since\n",
               io::counted(written.changed, "images"));
  }
  for (const std::string& broken : written.broken) {
    fmt::print("left out: {}\n", broken);
  }
  fmt::print("{}: features {} {}, labels and names of {}\n", flags.output, written.shape.str(),
             name_of(flags.output_dtype), io::counted(written.shape[0], "images"));
}

}  // namespace

void add_embed(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "embed", "Write features of images, what a model sees before its classifier, or vectors of texts");
  const auto flags = std::make_shared<EmbedFlags>();
  add_model_argument(command, flags->model);
  add_data_argument(command, flags->data,
                    "Images: a folder of class folders or of images alone, a .tar, CIFAR or MNIST files, a .csv; for a "
                    "model of texts a "
                    "file of lines, - for the standard input, or a text",
                    "train, validation, test …");
  expect_ending(
      command.add_option(
          "--output", flags->output,
          "File to write: features [N, D], labels [N] i64; names and classes in its metadata. Of many images, it "
          "grows in a folder FILE.parts, from which a run that was stopped goes on"),
      ".safetensors");
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
      ->needs(command.get_option("--search"))
      ->type_name("N")
      ->group("Texts");
  add_batch_tokens_flag(command, flags->texts.batch_tokens)->group("Texts");
  command.add_flag("--json", flags->texts.json, "Print JSON")->group("Texts");
  const auto take_dtype = [flags = flags.get()](const std::string& word) {
    flags->output_dtype = word == "bf16" ? DType::bf16 : DType::f32;
  };
  flags->of_images = {
      command
          .add_option(
              "--pool", flags->pool,
              "Pooling: token, the class token; avg, the mean of the patches; max …; last4, the class tokens of "
              "the last four blocks, as DINO's linear evaluation takes them (default: the classifier's)")
          ->type_name("POOL"),
      command
          .add_option("--layer", flags->layer,
                      "Features of this block or stage, from 0, or from the end if negative; --pool is token or avg")
          ->check(whole_number())
          ->type_name("N"),
      command.add_flag("--logits", flags->logits,
                       "What the classifier gives; of `vitrail pretrain autoencoder` the latent vectors"),
      command
          .add_option_function<std::string>("--output-dtype", take_dtype,
                                            "Of the features in the file: f32, or bf16, which takes half the space")
          ->check(CLI::IsMember({"f32", "bf16"}))
          ->type_name("DTYPE"),
      command.add_flag("--unlabeled", flags->unlabeled, "Take all images below DATA, with -1 for labels")};
  const std::vector<CLI::Option*> loading = add_loading_flags(command, flags->data);
  // Texts come in batches too, and may be broken.
  flags->of_images.insert(flags->of_images.end(), loading.begin() + 1, loading.end() - 1);
  command.get_option("--skip-broken")
      ->description("Leave broken images out and name them, or lines of texts that are not UTF-8, and count them");
  add_compute_flags(command, flags->compute);
  add_image_flags(command, flags->model);
  add_examples(command, {"vitrail embed runs/photos/best photos --split train --output train.safetensors",
                         "vitrail embed my_dinov2 albums --unlabeled --pool avg --output-dtype bf16 --output "
                         "albums.safetensors",
                         "vitrail embed my_minilm sentences.txt --output vectors.safetensors",
                         "vitrail embed my_minilm --similarity \"A man rides.\" \"Someone is on a horse.\"",
                         "vitrail embed my_minilm \"two dogs\" --search sentences.txt --topk 3"});
  command.callback([flags] { embed(*flags); });
}

}  // namespace vitrail::cli
