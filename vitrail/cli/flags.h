/// \file
/// Flags that several commands share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/model.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace vitrail::cli {

/// The flags that choose a model and change its options and its preparation of images.
struct ModelFlags {
  std::string model;
  std::vector<std::string> kwargs;
  std::optional<std::int64_t> num_classes;
  std::optional<std::int64_t> img_size;
  data::ImageOverrides images;
  std::uint64_t seed = 0;

  models::CreateOptions options() const;
  models::Model open() const;             ///< opens the model by name or folder
  models::Model open_for_images() const;  ///< as open(), but throws Error if the model takes videos
};
void add_model_changes(CLI::App& command, ModelFlags& flags);  ///< adds --model-kwargs --num-classes --img-size
void add_image_flags(CLI::App& command, ModelFlags& flags);    ///< adds --crop-pct --crop-mode --mean …
/// Adds MODEL and the flags of add_model_changes().
CLI::Option* add_model_argument(CLI::App& command, ModelFlags& flags);

/// The flags that set threads and precision.
struct ComputeFlags {
  int threads = 0;
  bool amp = false;
  std::string amp_dtype = "bfloat16";
  std::string dtype;  ///< of --dtype; empty: --amp and --amp-dtype say it

  /// Sets the number of threads, and returns the dtype to compute in: on a CPU without bf16 instructions, f32 replaces
  /// bf16, and a line on stderr says so.
  DType apply() const;
};
void add_compute_flags(CLI::App& command, ComputeFlags& flags);  ///< adds --threads --amp --amp-dtype
/// Adds --dtype, which stands for --amp and --amp-dtype and which the help does not show, to a command that has them.
void add_dtype_flag(CLI::App& command, std::string& dtype);

/// Has a flag that names an image to write refuse names that do not end in `ending`, ".png" or ".svg".
CLI::Option* expect_ending(CLI::Option* option, const std::string& ending);

/// Adds a section "Examples:" with these lines to the help of a command.
void add_examples(CLI::App& command, const std::vector<std::string>& lines);

}  // namespace vitrail::cli
