// `vitrail convert` writes a model folder in another layout.
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "vitrail/cli/app.h"
#include "vitrail/cli/flags.h"
#include "vitrail/models/quantize.h"

namespace vitrail::cli {
namespace {

struct ConvertFlags {
  ModelFlags model;
  std::string output;
  std::string layout = "timm";
};

void convert(const ConvertFlags& flags) {
  namespace fs = std::filesystem;
  check(!fs::exists(flags.output) || (fs::is_directory(flags.output) && fs::is_empty(flags.output)),
        "'{}' exists: choose another --output", flags.output);
  const models::Model model = flags.model.open();
  flags.model.note_random_weights(model);
  const bool timm = flags.layout == "timm";
  models::save_model(model, flags.output, timm ? models::Layout::timm : models::Layout::huggingface);
  fmt::print("{}, {:.2f} M parameters, in the layout of {}{}: {}\n", model.architecture,
             static_cast<double>(model.net->parameters.count()) * 1e-6, timm ? "timm" : "Hugging Face's transformers",
             models::is_quantized(*model.net) ? " with int8 weights, which vitrail alone reads" : "", flags.output);
}

}  // namespace

void add_convert(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("convert", "Write a model folder in timm's or in Hugging Face's layout");
  const auto flags = std::make_shared<ConvertFlags>();
  add_model_argument(command, flags->model);
  command.add_option("--output", flags->output, "New model folder")->required()->type_name("DIR");
  command
      .add_option("--layout", flags->layout,
                  "Layout: timm, or huggingface, which transformers' from_pretrained() reads")
      ->capture_default_str()
      ->check(CLI::IsMember({"timm", "huggingface"}));
  add_image_flags(command, flags->model);
  add_examples(command, {"# what AutoModelForImageClassification.from_pretrained(\"hub\") reads",
                         "vitrail convert output/train/NAME/best --output hub --layout huggingface",
                         "# and back, for timm.create_model(\"local-dir:model\", pretrained=True)",
                         "vitrail convert hub --output model"});
  command.callback([flags] { convert(*flags); });
}

}  // namespace vitrail::cli
