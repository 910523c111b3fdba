// `vitrail embed` computes features of images.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
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
};

void embed(const EmbedFlags& flags) {
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
  CLI::App& command = *app.add_subcommand("embed", "Write features of images: what a model sees before its classifier");
  const auto flags = std::make_shared<EmbedFlags>();
  add_model_argument(command, flags->model);
  add_data_argument(command, flags->data, "", "train, validation, test …");
  command
      .add_option("--output", flags->output,
                  "Safetensors file to write: features [N, D] f32, labels [N] i64; names and classes in its metadata")
      ->required()
      ->type_name("FILE");
  command
      .add_option("--pool", flags->pool,
                  "Pooling: token, the class token; avg, the mean of the patches; max … (default: the classifier's)")
      ->type_name("POOL");
  command.add_flag("--unlabeled", flags->unlabeled, "Take all images below DATA, with -1 for labels");
  add_loading_flags(command, flags->data);
  add_compute_flags(command, flags->compute);
  add_image_flags(command, flags->model);
  add_examples(command, {"vitrail embed runs/photos/best photos --split train --output train.safetensors",
                         "vitrail embed my_dinov2 albums --unlabeled --pool avg --output albums.safetensors"});
  command.callback([flags] { embed(*flags); });
}

}  // namespace vitrail::cli
