// vitrail train and vitrail pretrain: fit a model to pictures, with their classes and without.
#include <any>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/option_flags.h"
#include "vitrail/cli/pictures.h"
#include "vitrail/explain/reconstruction.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/models/kwargs.h"
#include "vitrail/train/interrupt.h"
#include "vitrail/train/options.h"
#include "vitrail/train/pretrain.h"
#include "vitrail/train/trainer.h"

namespace vitrail::cli {
namespace {

// The short names that timm's train.py gives.
const std::map<std::string, std::string> short_names = {{"batch_size", "-b"}, {"workers", "-j"}};

// Other names of flags: those of DeiT's main.py, and one more of timm's.
const std::map<std::string, std::string> other_names = {{"kd_model_name", "--teacher-model"},
                                                        {"kd_temperature", "--distillation-tau"},
                                                        {"distillation_type", "--kd-token-distill-type"}};

// What has no meaning without classes, or is not for the encoder of a masked autoencoder.
bool is_about_classes(std::string_view name) {
  for (const char* other :
       {"val_split",     "val_dir",    "pretrained_path",   "initial_checkpoint",    "num_classes", "gp",
        "drop",          "drop_path",  "linear_probe",      "validation_batch_size", "mixup",       "cutmix",
        "cutmix_minmax", "mixup_prob", "mixup_switch_prob", "mixup_off_epoch",       "smoothing",   "bce_loss",
        "val_interval",  "eval_metric"}) {
    if (name == other) {
      return true;
    }
  }
  return false;
}

// The flags of timm's train.py, bound to the fields of one TrainOptions, or those of pre-training.
class TrainFlags {
 public:
  explicit TrainFlags(CLI::App& command, const train::TrainOptions& defaults = {})
      : defaults_(defaults), parsed_(defaults) {
    const bool pretraining = !defaults.pretrain.empty();
    train::visit_options(parsed_,
                         [&](const char* group, const char* name, auto& field, const char* metavar, const char* help) {
                           const bool of_pretraining = std::string_view(group) == "pretraining";
                           if (std::string_view(name) == "pretrain" || (of_pretraining && !pretraining) ||
                               (pretraining && is_about_classes(name))) {
                             given_.push_back({nullptr, &field});
                             return;
                           }
                           CLI::Option* option = add(command, name, field, help);
                           option->group(group);
                           if (*metavar != '\0') {
                             option->type_name(metavar);
                           }
                           given_.push_back({option, &field});
                         });
    command.add_option("-c,--config", config_, "Take what is not given here from the config.toml of another run")
        ->type_name("FILE")
        ->group("run");
  }

  // What is given on the command line, over --config, over the run that is resumed, over the defaults.
  train::TrainOptions options() {
    check(config_.empty() || parsed_.resume.empty(),
          "--config and --resume exclude each other: a run that is resumed has its own config.toml");
    train::TrainOptions result = defaults_;
    if (!parsed_.resume.empty()) {
      result = train::resume_options(parsed_.resume);
    } else if (!config_.empty()) {
      result = train::options_from_toml(config_, defaults_);
    }
    check(result.pretrain == defaults_.pretrain, "{} is a run of `vitrail {}`",
          config_.empty() ? "'" + parsed_.resume + "'" : config_, result.pretrain.empty() ? "train" : "pretrain");
    parsed_.model_kwargs = models::kwargs_to_json(kwargs_);
    std::size_t i = 0;
    const std::string resume = result.resume;
    train::visit_options(result, [&](const char*, const char*, auto& field, const char*, const char*) {
      const auto& [option, value] = given_[i++];
      if (option != nullptr && option->count() > 0) {
        field = *std::any_cast<std::decay_t<decltype(field)>*>(value);
      }
    });
    if (!parsed_.resume.empty()) {
      result.resume = resume;
    }
    return result;
  }

 private:
  template <class Field>
  CLI::Option* add(CLI::App& command, const std::string& name, Field& field, const char* help) {
    std::string flag = train::flag_of(name);
    if (const auto other = other_names.find(name); other != other_names.end()) {
      flag += "," + other->second;
    }
    if (name == "model_kwargs") {
      return command.add_option(flag, kwargs_, help);
    }
    if (name == "data_dir") {
      return command.add_option("DATA," + flag, field, help);
    }
    const auto short_name = short_names.find(name);
    return add_train_flag(command, name, field, help,
                          short_name == short_names.end() ? flag : short_name->second + "," + flag);
  }

  struct Given {
    CLI::Option* option;  // null: there is no such flag
    std::any field;       // a pointer to the field of parsed_
  };
  train::TrainOptions defaults_;
  train::TrainOptions parsed_;
  std::vector<std::string> kwargs_;
  std::string config_;
  std::vector<Given> given_;
};

train::FitResult run_training(const train::TrainOptions& options) {
  const train::Interrupt interrupt;
  train::Progress progress(stdout);
  progress.set_interval(options.log_interval);
  train::FitHooks hooks;
  hooks.should_stop = train::Interrupt::requested;
  hooks.progress = &progress;
  train::FitResult result = train::fit(options, hooks);
  if (result.stopped) {
    throw CLI::RuntimeError(128 + train::Interrupt::signal());  // what `vitrail train … && …` has to know
  }
  return result;
}

// What the model in a run folder makes of a few of its pictures.
void draw_reconstructions(const train::TrainOptions& options, const std::filesystem::path& folder) {
  constexpr std::int64_t rows = 8;
  const models::Model model = models::open_masked_autoencoder((folder / "best").string());
  data::DatasetOptions pictures;
  pictures.split = options.train_split;
  pictures.labeled = false;
  const std::unique_ptr<data::Dataset> dataset = data::open_dataset(options.data_dir, pictures);
  const std::int64_t count = std::min(rows, dataset->size());
  std::vector<Tensor> inputs;
  for (std::int64_t i = 0; i < dataset->size() && std::ssize(inputs) < count; ++i) {
    // Spread over the pictures, which lie in order.
    const std::int64_t index = i * dataset->size() / count % dataset->size();
    try {
      inputs.push_back(model_input(model, dataset->image(index)));
    } catch (const Error&) {
      if (!options.skip_broken) {
        throw;
      }
    }
  }
  if (!inputs.empty()) {
    const std::filesystem::path file = folder / "reconstructions.png";
    io::write_png(file, explain::reconstruction_sheet(model, inputs, static_cast<std::uint64_t>(options.seed)));
    fmt::print("masked, reconstructed and original pictures: {}\n", file.string());
  }
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("train", "Train or fine-tune a model on pictures");
  const auto flags = std::make_shared<TrainFlags>(command);
  add_examples(
      command,
      {"# photos/train/cat/1.jpg, photos/validation/dog/7.png …; a .tar of that, CIFAR and MNIST files, a .csv work "
       "too",
       "vitrail train photos --model vit_tiny_patch16_224 --epochs 50", "# small pictures, in bf16",
       "vitrail train data/cifar10 --val-split test --amp --model-kwargs img_size=32 patch_size=4 --train-crop-mode "
       "pad",
       "# fine-tune a folder saved by timm", "vitrail train photos --model my_model --layer-decay 0.75 --lr 5e-4",
       "# go on with a run that was stopped by Ctrl-C or a power cut", "vitrail train --resume output/train/NAME"});
  command.callback([flags] { run_training(flags->options()); });
}

void add_pretrain(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("pretrain", "Train a model on pictures without labels");
  const auto method = std::make_shared<std::string>("mae");
  command.add_option("METHOD", *method, "mae: masked autoencoder (He et al. 2022)")
      ->type_name("")
      ->check(CLI::IsMember({"mae"}));
  const auto flags = std::make_shared<TrainFlags>(command, train::pretraining_defaults("mae"));
  add_examples(command,
               {"# any folder of pictures; then fine-tune what has been learned, or train a head on it alone",
                "vitrail pretrain mae photos --model vit_small_patch16_224 --epochs 200 --amp",
                "vitrail train labelled --model output/train/NAME/best --layer-decay 0.75",
                "vitrail train labelled --model output/train/NAME/best --linear-probe", "# what it makes of pictures",
                "vitrail reconstruct output/train/NAME/best photos --output sheet.png",
                "# go on with a run that was stopped", "vitrail pretrain --resume output/train/NAME"});
  command.callback([flags, method] {
    const train::TrainOptions options = flags->options();
    draw_reconstructions(options, run_training(options).folder);
  });
}

}  // namespace vitrail::cli
