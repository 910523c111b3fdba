/// \file
/// Flags that several commands share, and what is wrong usage.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "vitrail/models/kind.h"
#include "vitrail/models/model.h"
#include "vitrail/train/study/evaluate.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace vitrail::cli {

/// Ends the program with exit status 2: the message names the command and its help.
[[noreturn]] void fail_usage(const std::string& message);
/// fail_usage() with a formatted message, unless `condition` holds.
template <class... Args>
void check_usage(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) {
    fail_usage(fmt::format(format, std::forward<Args>(args)...));
  }
}
/// Calls `read`, which makes something of the values of flags: an Error that it throws is wrong usage.
void as_usage(const std::function<void()>& read);

/// The value of a flag among the arguments, given as "--NAME VALUE" or "--NAME=VALUE", the last time if it is given
/// several times; "" if it is not given.
std::string value_of(const std::vector<std::string>& arguments, const std::string& flag);

/// Checks of values: that a number is whole, fits 64 bits and, with limits, is within them.
CLI::Validator whole_number();
CLI::Validator whole_number(std::int64_t low, std::int64_t high);
CLI::Validator at_least(std::int64_t low);
/// Checks of values: that a number is finite, and above 0, or from 0 to 1, or between them.
CLI::Validator finite();
CLI::Validator positive();
CLI::Validator not_negative();
CLI::Validator share();
CLI::Validator inner_share();

/// The index that a flag means which counts from the end if it is negative; one beyond either end stays as it is.
std::int64_t from_end(std::int64_t index, std::int64_t count);
/// The indices that were asked for: one, see from_end(), or all of `count`.
std::vector<std::int64_t> chosen(const std::optional<std::int64_t>& one, std::int64_t count);

/// The flags that choose a model and change its options and its preparation of images.
struct ModelFlags {
  std::string model;
  std::vector<std::string> kwargs;
  std::optional<std::int64_t> num_classes;
  std::optional<std::int64_t> img_size;
  data::ImageOverrides images;
  std::uint64_t seed = 0;

  models::CreateOptions options() const;
  bool is_changed() const;  ///< whether flags of add_model_changes() were given
  /// Wrong usage if is_changed() is asked of a model that is taken as it is, since it `is_or_does`
  /// something; without this word, since it is of its kind().
  void check_unchanged(std::string_view is_or_does = "") const;
  bool prepares_images() const;        ///< whether flags of add_image_flags() were given
  std::string name_or_folder() const;  ///< `model`, or the best model of the run folder `model`
  models::ModelKind kind() const;
  /// For a message that it is not of the kind that was expected: what it is instead, and which command takes it, or
  /// that `vitrail COMMAND` makes such a model.
  std::string instead(std::string_view command) const;
  models::Model open() const;  ///< opens the model by name or folder
  /// Opens the model to use it on images, and calls note_random_weights(). Throws Error if it takes videos.
  models::Model open_for_images() const;
  /// The same, for commands that take what the model gives for classes. Throws Error if it has a bottleneck instead.
  models::Model open_classifier() const;
  /// Says on stderr which weights of the model that was opened are random: all of them if `model` is just the name of
  /// an architecture, those of the head if the folder has another number of classes.
  void note_random_weights(const models::Model& opened) const;
};
// Functions that add several flags return them in the order in which they are named here.

/// Adds --model-kwargs --num-classes --img-size.
std::vector<CLI::Option*> add_model_changes(CLI::App& command, ModelFlags& flags);
/// Adds --crop-pct --crop-mode --interpolation --mean --std.
std::vector<CLI::Option*> add_image_flags(CLI::App& command, ModelFlags& flags);
/// Adds MODEL and the flags of add_model_changes().
CLI::Option* add_model_argument(CLI::App& command, ModelFlags& flags);

/// The flags that set threads and precision.
struct ComputeFlags {
  std::int64_t threads = 0;
  bool amp = false;
  std::string amp_dtype = "bfloat16";
  std::string dtype;  ///< of --dtype; empty: --amp and --amp-dtype say it
  bool int8 = false;  ///< of --int8 or --dtype int8: the linear maps are to be quantized

  /// Sets the number of threads, and returns the dtype to compute in: on a CPU without bf16 instructions, f32 replaces
  /// bf16, and a line on stderr says so.
  DType apply() const;
};
void add_threads_flag(CLI::App& command, ComputeFlags& flags);   ///< adds --threads
void add_compute_flags(CLI::App& command, ComputeFlags& flags);  ///< adds --threads --amp --amp-dtype
/// Adds --dtype, which stands for --amp and --amp-dtype and which the help does not show, to a command that has them.
void add_dtype_flag(CLI::App& command, std::string& dtype);
/// The same as add_compute_flags(), and --int8, for which --dtype int8 stands too; here the help shows --dtype.
void add_compute_flags_with_int8(CLI::App& command, ComputeFlags& flags);
/// Says on stderr, if the weights of a model folder are in int8, that they stay so whatever `flag` asks for. The
/// functions above see to it for MODEL and --model.
void note_int8_weights(const std::string& model, std::string_view flag);
/// Adds --cache-dtype: of the keys and values that are kept of texts; unset: that of the products.
CLI::Option* add_cache_flag(CLI::App& command, std::optional<DType>& dtype);

/// Has a flag that names a file to write refuse names that do not end in `ending`, such as ".png".
CLI::Option* expect_ending(CLI::Option* option, const std::string& ending);

/// Throws Error if the file `output`, which a command is about to write, is `input`, which it reads.
void check_not_input(const std::string& output, const std::string& input);
/// The same of the files of the model that it opens.
void check_not_of_model(const std::string& output, const ModelFlags& model);
/// Throws Error if what is found out about data, and drawn, would be written into their own folder.
void check_beside_data(const std::string& output, const std::string& data);

/// Says on stderr what a command leaves out that writes the image model of `folder` alone: the text model of a model of
/// images and texts, or a decoder.
void note_left_out(const std::string& folder);

/// The flags that choose a data set, and how it is gone through.
struct DataFlags {
  std::string data;
  std::string split;
  std::int64_t batch_size = 64;
  int workers = 1;
  bool skip_broken = false;

  train::EvaluateOptions options(DType dtype) const;
};
/// Adds the argument DATA, --data in its place, and the flag --split, whose help names some parts. The command checks
/// whether one of both was given.
void add_data_argument(CLI::App& command, DataFlags& flags, const std::string& help = "",
                       const std::string& parts = "validation, test …");
/// Adds a flag in place of the argument DATA, and --split.
void add_data_flag(CLI::App& command, DataFlags& flags, const std::string& flag, const std::string& help);
/// Adds --batch-size --workers --skip-broken.
std::vector<CLI::Option*> add_loading_flags(CLI::App& command, DataFlags& flags);

/// Adds a section "Examples:" with these lines to the help of a command.
void add_examples(CLI::App& command, const std::vector<std::string>& lines);

}  // namespace vitrail::cli
