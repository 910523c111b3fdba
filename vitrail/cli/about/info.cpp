// `vitrail info` describes a model, or data.
#include <algorithm>
#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/about/describe.h"
#include "vitrail/cli/about/describe_data.h"
#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/cli/texts.h"
#include "vitrail/cli/use/captions.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/models/quantize.h"
#include "vitrail/train/run/zero.h"

namespace vitrail::cli {
namespace {

using Json = nlohmann::ordered_json;

void print_parameters(const nn::ParameterStore& parameters) {
  std::size_t width = 0;
  for (const nn::Parameter& parameter : parameters.all()) {
    width = std::max(width, parameter.name.size());
  }
  for (const nn::Parameter& parameter : parameters.all()) {
    fmt::print("{:<{}} {:<22} {}\n", parameter.name, width, parameter.value.shape().str(), parameter.value.numel());
  }
}

// The tensors of a model, with what print_parameters() says of them.
Json tensors_of(const nn::ParameterStore& parameters) {
  Json list = Json::array();
  for (const nn::Parameter& p : parameters.all()) {
    const Shape& shape = p.value.shape();
    list.push_back({{"name", p.name},
                    {"shape", std::vector<std::int64_t>(shape.begin(), shape.end())},
                    {"dtype", name_of(p.value.dtype())},
                    {"buffer", p.buffer}});
  }
  return list;
}

std::int64_t count_trainable(const nn::ParameterStore& parameters) {
  std::int64_t count = 0;
  for (const nn::Parameter& one : parameters.all()) {
    count += one.trainable && !one.buffer ? one.value.numel() : 0;
  }
  return count;
}

// The bytes that a rank keeps for each number of ranks and stage of ZeRO, with an optimizer of two moments (Adam's).
Json zero_of(const nn::ParameterStore& parameters) {
  const auto count = static_cast<double>(count_trainable(parameters));
  Json rows = Json::array();
  for (const int ranks : {1, 2, 4, 8, 16, 32, 64}) {
    Json row = {{"ranks", ranks}};
    for (const int stage : {0, 1, 2}) {
      row[fmt::format("zero_{}", stage)] = std::llround(train::zero_state_bytes(stage, ranks, 2) * count);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void print_zero(const nn::ParameterStore& parameters) {
  fmt::print("\nMB a rank keeps in training: weights, gradients, and the two moments of AdamW, in f32\n{:>12}",
             "ranks");
  for (const int stage : {0, 1, 2}) {
    fmt::print("{:>12}", fmt::format("--zero {}", stage));
  }
  fmt::print("\n");
  for (const Json& row : zero_of(parameters)) {
    fmt::print("{:>12}", row["ranks"].get<int>());
    for (const int stage : {0, 1, 2}) {
      fmt::print("{:>12.1f}", row[fmt::format("zero_{}", stage)].get<double>() / 1e6);
    }
    fmt::print("\n");
  }
}

}  // namespace

void add_info(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "info", "Describe a model (parameters, FLOPs, tokens, image size) or data (what there is to learn from)");
  struct Flags {
    ModelFlags model;
    bool json = false;
    bool parameters = false;
    bool zero = false;
  };
  const auto flags = std::make_shared<Flags>();
  add_model_argument(command, flags->model)
      ->description(
          "Name of a model (see: vitrail models), folder with config.json and weights, or data as tasks take "
          "them");
  command.add_flag("--json", flags->json, "Print one JSON object");
  command.add_flag("--parameters", flags->parameters, "List every parameter with its shape");
  command.add_flag("--zero", flags->zero,
                   "What each of several ranks keeps in training, with `train --zero` and without");
  add_examples(command, {"vitrail info vit_base_patch16_224", "vitrail info vit_large_patch16_224 --zero",
                         "vitrail info vit_tiny_patch16_224 --model-kwargs img_size=32 patch_size=4 --num-classes 10",
                         "vitrail info demo/run/best --json",
                         "vitrail info photos                     # its parts, classes, boxes, captions …"});
  const auto tell = [flags](const auto& model, const nn::ParameterStore& parameters) {
    const std::int64_t int8 = models::int8_weights_in(flags->model.name_or_folder());
    if (flags->json) {
      Json json = describe(model);
      json["int8_parameters"] = int8;
      if (flags->parameters) {
        json["tensors"] = tensors_of(parameters);
      }
      if (flags->zero) {
        json["zero"] = zero_of(parameters);
      }
      print_json(json);
    } else {
      print_info(model);
      if (int8 > 0) {
        line("int8", fmt::format("{} ({}) of the parameters", int8, short_number(int8)));
      }
    }
    if (flags->parameters && !flags->json) {
      print_parameters(parameters);
    }
    if (flags->zero && !flags->json) {
      print_zero(parameters);
    }
  };
  command.callback([flags, tell] {
    const std::string name = flags->model.name_or_folder();
    if (names_data(name)) {
      check_usage(!flags->parameters && !flags->zero && !flags->model.is_changed(),
                  "'{}' is not a model folder: it has no config.json", name);
      if (flags->json) {
        print_json(describe_data(name));
      } else {
        print_data(name);
      }
      return;
    }
    models::CreateOptions options = flags->model.options();
    options.fill = nn::Fill::meta;  // the model is asked about, not run
    if (models::is_detector_name(name)) {
      check_usage(!flags->model.num_classes && !flags->model.img_size,
                  "'{}' finds objects: it takes no --num-classes or --img-size", name);
      const models::Detector model = models::create_detector(name, {.fill = options.fill}, options.model_kwargs);
      tell(model, model.net->parameters);
      return;
    }
    const models::ModelKind kind = flags->model.kind();
    if (kind == models::ModelKind::texts) {
      refuse_image_flags(flags->model);
      const models::TextModel model =
          models::open_text_model(name, {.model_kwargs = options.model_kwargs, .fill = options.fill});
      tell(model, model.net->parameters);
      return;
    }
    if (kind == models::ModelKind::joint) {
      flags->model.check_unchanged();
      const models::JointModel model = models::load_clip(name, options.fill);
      tell(model, model.net->parameters);
      return;
    }
    if (kind == models::ModelKind::detector) {
      flags->model.check_unchanged();
      const models::Detector model = models::load_detector(name, {.fill = options.fill});
      tell(model, model.net->parameters);
      return;
    }
    if (models::is_blip_folder(name)) {
      flags->model.check_unchanged();
      const models::BlipModel model = models::load_blip(name, options.fill);
      tell(model, model.net->parameters);
      return;
    }
    if (kind == models::ModelKind::captioner) {
      const std::unique_ptr<models::Captioner> model = open_captioner(flags->model);
      tell(*model, model->parameters);
      return;
    }
    if (kind == models::ModelKind::frames) {
      flags->model.check_unchanged();
      const std::unique_ptr<models::FrameNetwork> model = models::load_frame_network(name);
      tell(*model, model->parameters);
      return;
    }
    if (kind == models::ModelKind::sets) {
      flags->model.check_unchanged();
      const models::SetModel model = models::load_set_model(name, options.fill);
      tell(model, model.net->parameters);
      return;
    }
    if (kind == models::ModelKind::answerer) {
      flags->model.check_unchanged();
      const models::VqaModel model = models::load_vqa(name, options.fill);
      tell(model, model.net->parameters);
      return;
    }
    if (models::is_recurrent_folder(name)) {
      flags->model.check_unchanged("is a recurrent network");
      const std::unique_ptr<models::RecurrentModel> model = models::load_recurrent(name);
      tell(*model, model->parameters);
      return;
    }
    models::Model model = models::open_model(name, options);
    data::apply(flags->model.images, model.pretrained);
    tell(model, model.net->parameters);
  });
}

}  // namespace vitrail::cli
