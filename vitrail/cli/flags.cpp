#include "vitrail/cli/flags.h"

#include <cstdio>

#include <CLI/CLI.hpp>

#include "vitrail/kernels/cpu.h"
#include "vitrail/models/base/kwargs.h"
#include "vitrail/train/run_options.h"

namespace vitrail::cli {

models::CreateOptions ModelFlags::options() const {
  models::CreateOptions options;
  options.num_classes = num_classes;
  std::vector<std::string> all = kwargs;
  if (img_size.has_value()) {
    all.push_back(fmt::format("img_size={}", *img_size));
  }
  options.model_kwargs = models::kwargs_to_json(all);
  options.seed = seed;
  return options;
}

models::Model ModelFlags::open() const {
  models::Model result = models::open_model(model, options());
  data::apply(images, result.pretrained);
  return result;
}

models::Model ModelFlags::open_for_images() const {
  models::Model result = open();
  models::check_takes_images(result);
  return result;
}

void add_model_changes(CLI::App& command, ModelFlags& flags) {
  command
      .add_option("--model-kwargs", flags.kwargs,
                  "Arguments of the model, as timm names them: img_size=32 patch_size=4 …")
      ->type_name("KEY=VALUE")
      ->allow_extra_args();
  command.add_option("--num-classes", flags.num_classes,
                     "Number of classes; another one than the folder's gives a new head");
  command.add_option("--img-size", flags.img_size, "Image size in pixels; positions are resized");
}

void add_image_flags(CLI::App& command, ModelFlags& flags) {
  const char* group = "Images (default: as the model says)";
  command.add_option("--crop-pct", flags.images.crop_pct, "Crop: share of the resized image that is kept")
      ->group(group);
  command.add_option("--crop-mode", flags.images.crop_mode, "Crop: center, squash or border")->group(group);
  command.add_option("--interpolation", flags.images.interpolation, "Resizing: nearest, bilinear, bicubic or lanczos")
      ->group(group);
  command.add_option("--mean", flags.images.mean, "Mean of each colour, from 0 to 1")->group(group)->expected(1, 3);
  command.add_option("--std", flags.images.std, "Standard deviation of each colour")->group(group)->expected(1, 3);
}

CLI::Option* add_model_argument(CLI::App& command, ModelFlags& flags) {
  CLI::Option* option = command.add_option(
      "MODEL", flags.model, "Name (see: vitrail models) or folder with config.json and model.safetensors");
  option->required()->type_name("");
  add_model_changes(command, flags);
  return option;
}

DType ComputeFlags::apply() const {
  if (threads > 0) {
    kernels::set_threads(threads);
  }
  std::string message;
  const DType usable = train::usable_dtype(dtype_named(!dtype.empty() ? dtype : amp ? amp_dtype : "f32"), &message);
  if (!message.empty()) {
    fmt::print(stderr, "note: {}\n", message);
  }
  return usable;
}

void add_compute_flags(CLI::App& command, ComputeFlags& flags) {
  command.add_option("--threads", flags.threads, "Compute threads (default: all cores)")->check(CLI::PositiveNumber);
  command.add_flag("--amp", flags.amp, "Mixed precision: products and activations in --amp-dtype, weights in float32");
  command.add_option("--amp-dtype", flags.amp_dtype, "Lower precision of --amp: bfloat16, or float32 for none")
      ->capture_default_str()
      ->type_name("DTYPE")
      ->check(CLI::IsMember({"bfloat16", "bf16", "float32", "f32"}));
  add_dtype_flag(command, flags.dtype);
}

void add_dtype_flag(CLI::App& command, std::string& dtype) {
  command.add_option("--dtype", dtype)
      ->group("")
      ->check(CLI::IsMember({"f32", "bf16", "float32", "bfloat16"}))
      ->excludes("--amp", "--amp-dtype");
}

CLI::Option* expect_ending(CLI::Option* option, const std::string& ending) {
  return option->type_name("FILE" + ending)->check([ending](const std::string& name) {
    return CLI::detail::to_lower(name).ends_with(ending)
               ? std::string()
               : fmt::format("'{}' does not end in {}, the format in which the image is written", name, ending);
  });
}

void add_examples(CLI::App& command, const std::vector<std::string>& lines) {
  std::string footer = "Examples:";
  for (const std::string& line : lines) {
    footer += "\n  " + line;
  }
  command.footer(footer);
}

}  // namespace vitrail::cli
