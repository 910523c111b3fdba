// `vitrail encoder` takes the encoder out of a run.
#include <filesystem>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/images.h"
#include "vitrail/models/features.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/kind.h"
#include "vitrail/models/model.h"
#include "vitrail/models/vit/mae.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/pretrain/autoencoder_network.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/tasks/registry.h"

namespace vitrail::cli {
namespace {

namespace fs = std::filesystem;

// Which of the networks of a run of this kind is its encoder.
std::string encoder_of(const std::string& kind) {
  if (kind == "dino") {
    return "the teacher's encoder, without DINO's head";
  }
  if (kind == "mocov3") {
    return "the base encoder (not the momentum encoder), without projector and predictor";
  }
  if (kind == "simclr") {
    return "the encoder, without the projector";
  }
  if (kind == "autoencoder") {
    return "the encoder and its bottleneck, without the decoder";
  }
  if (kind == "clip") {
    return "the vision tower, without the text model";
  }
  return kind == "mae" ? "the encoder, without the decoder" : "the model, without its classifier";
}

struct EncoderFlags {
  std::string run;
  std::string output;
  bool no_bottleneck = false;
};

void write_encoder(const EncoderFlags& flags) {
  check(!fs::exists(flags.output) || (fs::is_directory(flags.output) && fs::is_empty(flags.output)),
        "'{}' exists: choose another --output", flags.output);
  const fs::path folder = train::model_of(flags.run);
  check(fs::is_directory(folder), "there is no run '{}'", flags.run);
  fs::path around = fs::absolute(folder).lexically_normal();
  around = (around.has_filename() ? around : around.parent_path()).parent_path();  // "runs/a/best/" has no file name
  std::string kind;
  std::error_code none;
  if (fs::exists(around / "config.toml", none)) {
    kind = train::task_kind_of_run(around).name;
  } else if (models::kind_of(folder.string()) == models::ModelKind::joint) {
    kind = "clip";
  } else if (models::model_type_in(folder) == models::mae_type) {
    kind = "mae";
  }
  const bool images = kind.empty() || kind == "dino" || kind == "mocov3" || kind == "simclr" || kind == "mae" ||
                      kind == "classify" || kind == "autoencoder" || kind == "clip";
  check(images, "'{}' is a run of the task {}, which has no encoder of images by itself", flags.run, kind);
  // The bottleneck of an autoencoder has the place of a classifier, by which the latent vectors are its logits.
  const bool bottleneck = kind == "autoencoder" || train::is_autoencoder(folder);
  check_usage(bottleneck || !flags.no_bottleneck, "--no-bottleneck has no effect on '{}', which is no autoencoder",
              flags.run);
  models::CreateOptions create;
  if (!bottleneck || flags.no_bottleneck) {
    create.num_classes = 0;
  }
  models::Model model = models::load_model(folder, create);
  settle_processor(model.pretrained, folder.string());
  model.pretrained.bottleneck = bottleneck && model.net->num_classes() > 0;
  models::save_model(model, flags.output);
  const std::string what = bottleneck ? encoder_of(flags.no_bottleneck ? "mae" : "autoencoder") : encoder_of(kind);
  fmt::print("of {}, {}: {}, {:.2f} M parameters, {} numbers for an image of {}x{} pixels{}: {}\n", folder.string(),
             what, model.architecture, static_cast<double>(model.net->parameters.count()) * 1e-6,
             model.net->num_classes() > 0 ? model.net->num_classes() : model.net->num_features(),
             model.pretrained.width, model.pretrained.height,
             model.net->num_classes() > 0 ? ", which 'vitrail embed --logits' writes" : "", flags.output);
}

}  // namespace

void add_encoder(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("encoder", "Take the encoder out of a run, as a model without classifier");
  const auto flags = std::make_shared<EncoderFlags>();
  command.add_option("RUN", flags->run, "Run folder, one of its checkpoints, or another model folder")
      ->required()
      ->type_name("");
  command
      .add_option("--output", flags->output,
                  "New model folder, in timm's layout with num_classes=0 (a bottleneck: its numbers)")
      ->required()
      ->type_name("DIR");
  command.add_flag("--no-bottleneck", flags->no_bottleneck,
                   "Of an autoencoder: leave the bottleneck out too, which otherwise stands as the classifier");
  add_examples(command, {"vitrail encoder output/train/NAME --output encoder",
                         "# a new head on it: all of it is trained, or the head alone",
                         "vitrail train labelled --model encoder --layer-decay 0.75",
                         "vitrail train labelled --model encoder --linear-probe"});
  command.callback([flags] { write_encoder(*flags); });
}

}  // namespace vitrail::cli
