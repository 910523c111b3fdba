// vitrail train: fit a model to pictures.
#include <any>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/models/kwargs.h"
#include "vitrail/train/interrupt.h"
#include "vitrail/train/options.h"
#include "vitrail/train/trainer.h"

namespace vitrail::cli {
namespace {

// The short names that timm's train.py gives.
const std::map<std::string, std::string> short_names = {{"batch_size", "-b"}, {"workers", "-j"}};

// Other names of flags: those of DeiT's main.py, and one more of timm's.
const std::map<std::string, std::string> other_names = {{"kd_model_name", "--teacher-model"},
                                                        {"kd_temperature", "--distillation-tau"},
                                                        {"distillation_type", "--kd-token-distill-type"}};

// The flags of timm's train.py, bound to the fields of one TrainOptions.
class TrainFlags {
 public:
  explicit TrainFlags(CLI::App& command) {
    train::visit_options(parsed_,
                         [&](const char* group, const char* name, auto& field, const char* metavar, const char* help) {
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
    train::TrainOptions result;
    if (!parsed_.resume.empty()) {
      result = train::resume_options(parsed_.resume);
    } else if (!config_.empty()) {
      result = train::options_from_toml(config_);
    }
    parsed_.model_kwargs = models::kwargs_to_json(kwargs_);
    std::size_t i = 0;
    const std::string resume = result.resume;
    train::visit_options(result, [&](const char*, const char*, auto& field, const char*, const char*) {
      const auto& [option, value] = given_[i++];
      if (option->count() > 0) {
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
    if constexpr (std::is_same_v<Field, bool>) {
      return field ? command.add_flag(flag + ",!--no-" + flag.substr(2), field, help)
                   : command.add_flag(flag, field, help);
    } else {
      if (name == "model_kwargs") {
        return command.add_option(flag, kwargs_, help);
      }
      if (name == "data_dir") {
        return command.add_option("DATA," + flag, field, help);
      }
      const auto short_name = short_names.find(name);
      CLI::Option* option =
          command.add_option(short_name == short_names.end() ? flag : short_name->second + "," + flag, field, help);
      if constexpr (requires { field.empty(); }) {
        return field.empty() ? option : option->capture_default_str();
      }
      return option->capture_default_str();
    }
  }

  struct Given {
    CLI::Option* option;
    std::any field;  // a pointer to the field of parsed_
  };
  train::TrainOptions parsed_;
  std::vector<std::string> kwargs_;
  std::string config_;
  std::vector<Given> given_;
};

void run_training(const train::TrainOptions& options) {
  const train::Interrupt interrupt;
  train::Progress progress(stdout);
  progress.set_interval(options.log_interval);
  train::FitHooks hooks;
  hooks.should_stop = train::Interrupt::requested;
  hooks.progress = &progress;
  if (train::fit(options, hooks).stopped) {
    throw CLI::RuntimeError(128 + train::Interrupt::signal());  // what `vitrail train … && …` has to know
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

}  // namespace vitrail::cli
