// Flags that several commands share.
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

// Which model, and what is changed about it.
struct ModelFlags {
  std::string model;
  std::vector<std::string> kwargs;
  std::optional<std::int64_t> num_classes;
  std::optional<std::int64_t> img_size;
  data::PictureOverrides pictures;
  std::uint64_t seed = 0;

  models::CreateOptions options() const;
  models::Model open() const;               // by name or folder
  models::Model open_for_pictures() const;  // Error if the model takes videos
};
void add_model_changes(CLI::App& command, ModelFlags& flags);           // --model-kwargs --num-classes --img-size
void add_picture_flags(CLI::App& command, ModelFlags& flags);           // --crop-pct --crop-mode --mean …
CLI::Option* add_model_argument(CLI::App& command, ModelFlags& flags);  // MODEL and the above

// How it is computed.
struct ComputeFlags {
  int threads = 0;
  std::string dtype = "f32";

  // Sets the number of threads, and returns the dtype to compute in: bf16 on a CPU without bf16 instructions becomes
  // f32, and a line on stderr says so.
  DType apply() const;
};
void add_compute_flags(CLI::App& command, ComputeFlags& flags);  // --threads --dtype

// Adds "Examples:" to a command's help.
void add_examples(CLI::App& command, const std::vector<std::string>& lines);

}  // namespace vitrail::cli
