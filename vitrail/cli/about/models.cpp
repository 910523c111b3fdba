// `vitrail models` lists the models that can be made, and the checkpoints that came with the program.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/about/describe.h"
#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/cli/print_json.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/models/model.h"
#include "vitrail/models/text/text_model.h"

namespace vitrail::cli {
namespace {

using ListJson = nlohmann::ordered_json;

// Matches the simple patterns that timm's list_models takes: `*` stands for any text.
bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) {
    return name.empty();
  }
  if (pattern.front() == '*') {
    return matches(name, pattern.substr(1)) || (!name.empty() && matches(name.substr(1), pattern));
  }
  return !name.empty() && name.front() == pattern.front() && matches(name.substr(1), pattern.substr(1));
}

// A pattern without a `*` is any part of a name.
std::string widened(const std::string& pattern) {
  return pattern.find('*') == std::string::npos ? "*" + pattern + "*" : pattern;
}

void list_models(const std::string& pattern, bool names_only, bool as_json) {
  const std::string wide = widened(pattern);
  ListJson list = ListJson::array();
  bool any = false;
  // Whether a model is to be described; prints its name where that is all.
  const auto is_described = [&](const std::string& name) {
    const bool wanted = matches(name, wide);
    any = any || wanted;
    if (wanted && names_only) {
      fmt::print("{}\n", name);
    }
    return wanted && !names_only;
  };
  for (const models::Architecture& architecture : models::architectures()) {
    if (!is_described(architecture.name)) {
      continue;
    }
    const models::Model model = models::describe_model(architecture.name);
    const auto& image = model.pretrained;
    const std::int64_t flops = model.net->flops(image.height, image.width);
    if (as_json) {
      list.push_back({{"name", architecture.name},
                      {"family", architecture.family},
                      {"parameters", model.net->parameters.count()},
                      {"flops", flops},
                      {"input_size", input_size(model)}});
    } else {
      fmt::print("{:<48} {:>9} parameters {:>10} FLOPs  {}\n", architecture.name,
                 short_number(model.net->parameters.count()), short_number(flops), size_text(model, 1));
    }
  }
  for (const std::string& name : models::text_models()) {
    if (!is_described(name)) {
      continue;
    }
    const models::TextModel model = models::create_text_model(name, {.fill = nn::Fill::meta});
    if (as_json) {
      list.push_back({{"name", name},
                      {"architecture", model.architecture},
                      {"parameters", model.net->parameters.count()},
                      {"flops_per_token", model.net->flops(1)}});
    } else {
      fmt::print("{:<48} {:>9} parameters {:>10} FLOPs  a token\n", name, short_number(model.net->parameters.count()),
                 short_number(model.net->flops(1)));
    }
  }
  for (const std::string& name : models::detector_names()) {
    if (!is_described(name)) {
      continue;
    }
    const models::Detector model = models::create_detector(name, {.fill = nn::Fill::meta});
    if (as_json) {
      list.push_back({{"name", name}, {"architecture", "detr"}, {"parameters", model.net->parameters.count()}});
    } else {
      fmt::print("{:<48} {:>9} parameters  finds objects\n", name, short_number(model.net->parameters.count()));
    }
  }
  check(any || names_only,
        "no model's name contains '{}'; vitrail models lists all, and vitrail models --shipped those that are trained",
        pattern);
  if (as_json) {
    print_json(list);
  }
}

// Lists the checkpoints that ship with the program, by their cards.
void list_shipped(const std::string& pattern, bool names_only, bool as_json) {
  const std::string wide = widened(pattern);
  ListJson list = ListJson::array();
  bool any = false;
  for (const models::ShippedModel& model : models::shipped_models()) {
    const models::ModelCard& card = model.card;
    if (!matches(card.name, wide)) {
      continue;
    }
    any = true;
    if (names_only) {
      fmt::print("{}\n", card.name);
    } else if (as_json) {
      list.push_back({{"name", card.name},
                      {"what", card.what},
                      {"bytes", model.bytes},
                      {"accuracy", card.accuracy},
                      {"measured_by", card.measured_by},
                      {"data", card.data},
                      {"data_licence", card.data_licence},
                      {"licence", card.licence},
                      {"command", card.command},
                      {"limits", card.limits},
                      {"folder", model.folder.string()}});
    } else {
      fmt::print("{:<24} {:>5.2f} MB  {}; {}; {}\n", card.name, static_cast<double>(model.bytes) * 1e-6, card.what,
                 card.accuracy, card.licence);
    }
  }
  if (as_json) {
    print_json(list);
  } else if (!any && !names_only) {
    check(pattern.empty(), "no checkpoint's name contains '{}'; vitrail models --shipped lists all", pattern);
    fmt::print("no checkpoint came with this program; VITRAIL_WEIGHTS names a folder of them\n");
  }
}

}  // namespace

void add_models(CLI::App& app) {
  CLI::App& command = *app.add_subcommand(
      "models", "List the models that exist, of images and of texts, with parameters, FLOPs and image size");
  struct Flags {
    std::string pattern;
    bool names = false;
    bool json = false;
    bool shipped = false;
  };
  const auto flags = std::make_shared<Flags>();
  command.add_option("PATTERN", flags->pattern, "Part of the names; * stands for any text (default: all)")
      ->type_name("");
  command.add_flag("--shipped", flags->shipped,
                   "List the checkpoints that came with the program, vitrail/NAME, with size, accuracy and licence");
  CLI::Option* const names = command.add_flag("--names", flags->names, "Print names only");
  command.add_flag("--json", flags->json, "Print a JSON list")->excludes(names);
  add_examples(command, {"vitrail models", "vitrail models deit", "vitrail models 'bert*'",
                         "vitrail models 'vit_*_patch14_*dinov2' --json", "vitrail models --shipped"});
  command.callback(
      [flags] { (flags->shipped ? list_shipped : list_models)(flags->pattern, flags->names, flags->json); });
}

}  // namespace vitrail::cli
