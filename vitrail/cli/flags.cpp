#include "vitrail/cli/flags.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <numeric>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "vitrail/cli/say.h"
#include "vitrail/data/beside.h"
#include "vitrail/data/resize.h"
#include "vitrail/io/json.h"
#include "vitrail/io/wording.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/models/base/kwargs.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/quantize.h"
#include "vitrail/train/pretrain/autoencoder_network.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/run_options.h"

namespace vitrail::cli {

void fail_usage(const std::string& message) { throw CLI::ValidationError(message); }

void as_usage(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    fail_usage(error.what());
  }
}

// CLI11's own checks of numbers print the largest number there is, take NaN and infinity, and replace an integer that
// is too large by the largest.
CLI::Validator whole_number(std::int64_t low, std::int64_t high) {
  return {[=](std::string& text) -> std::string {
            errno = 0;
            char* end = nullptr;
            const std::int64_t number = std::strtoll(text.c_str(), &end, 0);
            if (text.empty() || *end != '\0') {
              return fmt::format("must be a whole number, but is {}", text.empty() ? "empty" : text);
            }
            if (errno == ERANGE) {
              return fmt::format("must be a number of at most 64 bits, but is {}", text);
            }
            constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
            const std::string wanted =
                high == most ? fmt::format("at least {}", low) : fmt::format("from {} to {}", low, high);
            return number >= low && number <= high ? "" : fmt::format("must be {}, but is {}", wanted, text);
          },
          ""};
}

std::string value_of(const std::vector<std::string>& arguments, const std::string& flag) {
  std::string value;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == flag && i + 1 < arguments.size()) {
      value = arguments[i + 1];
    } else if (arguments[i].starts_with(flag + "=")) {
      value = arguments[i].substr(flag.size() + 1);
    }
  }
  return value;
}

CLI::Validator whole_number() {
  return whole_number(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
}

CLI::Validator at_least(std::int64_t low) { return whole_number(low, std::numeric_limits<std::int64_t>::max()); }

namespace {

CLI::Validator check_of_number(const std::string& wanted, const std::function<bool(double)>& is_right) {
  return {[=](std::string& text) -> std::string {
            double number = 0;
            if (!CLI::detail::lexical_cast(text, number)) {
              return fmt::format("must be a number such as 1.5 or 1e-3, but is {}", text.empty() ? "empty" : text);
            }
            const bool right = std::isfinite(number) && is_right(number);
            return right ? std::string() : fmt::format("must be {}, but is {}", wanted, text);
          },
          ""};
}

}  // namespace

CLI::Validator finite() {
  return check_of_number("a finite number", [](double) { return true; });
}

CLI::Validator positive() {
  return check_of_number("a number above 0", [](double number) { return number > 0; });
}

CLI::Validator not_negative() {
  return check_of_number("a number of 0 or more", [](double number) { return number >= 0; });
}

CLI::Validator share() {
  return check_of_number("from 0 to 1", [](double number) { return number >= 0 && number <= 1; });
}

CLI::Validator inner_share() {
  return check_of_number("above 0 and below 1", [](double number) { return number > 0 && number < 1; });
}

std::int64_t from_end(std::int64_t index, std::int64_t count) {
  return index < 0 && index >= -count ? index + count : index;
}

std::vector<std::int64_t> chosen(const std::optional<std::int64_t>& one, std::int64_t count) {
  if (one.has_value()) {
    return {from_end(*one, count)};
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

models::CreateOptions ModelFlags::options() const {
  models::CreateOptions options;
  options.num_classes = num_classes;
  as_usage([&] {
    options.model_kwargs = models::kwargs_to_json(kwargs);
    if (img_size) {
      const std::string other = models::set_kwarg(options.model_kwargs, "img_size", std::to_string(*img_size));
      check(other.empty(), "--img-size is {}, but --model-kwargs has {}: give one of them", *img_size, other);
    }
  });
  options.seed = seed;
  return options;
}

bool ModelFlags::is_changed() const { return !kwargs.empty() || num_classes || img_size; }

void ModelFlags::check_unchanged(std::string_view is_or_does) const {
  check_usage(!is_changed(), "'{}' {}: it takes no --model-kwargs, --num-classes or --img-size", model,
              is_or_does.empty() ? models::words_of(kind()).is_or_does : is_or_does);
}

bool ModelFlags::prepares_images() const {
  return images.crop_pct || !images.crop_mode.empty() || !images.interpolation.empty() || !images.mean.empty() ||
         !images.std.empty();
}

std::string ModelFlags::name_or_folder() const { return train::model_of(model).string(); }

models::ModelKind ModelFlags::kind() const { return models::kind_of(name_or_folder()); }

std::string ModelFlags::instead(std::string_view command) const {
  const models::KindWords& words = models::words_of(kind());
  return kind() == models::ModelKind::images ? fmt::format(
                                                   "'vitrail {}' makes a model that does; what a model "
                                                   "says of images as a whole is printed by "
                                                   "'vitrail predict'",
                                                   command)
                                             : fmt::format("it {}; {}", words.is_or_does, words.use);
}

models::Model ModelFlags::open() const {
  const std::string source = name_or_folder();
  models::check_has_image_model(source, model);
  models::Model result = models::open_model(source, options());
  as_usage([&] { data::apply(images, result.pretrained); });
  return result;
}

void ModelFlags::note_random_weights(const models::Model& opened) const {
  const std::string source = name_or_folder();
  if (!models::names_folder(source)) {
    say("note: {} is the name of an architecture, whose weights are random: name a model folder\n", model);
    return;
  }
  if (num_classes.has_value() || !kwargs.empty()) {
    models::CreateOptions unchanged;
    unchanged.fill = nn::Fill::meta;  // only asked for its number of classes
    const std::int64_t before = models::open_model(source, unchanged).net->num_classes();
    const std::int64_t now = opened.net->num_classes();
    if (now != before && now > 0) {
      say("note: {} has {}: the head for {} is new, and its weights are random\n", model,
          before == 0 ? "no head" : io::counted(before, "classes"), now);
    }
  }
}

models::Model ModelFlags::open_for_images() const {
  models::Model result = open();
  note_random_weights(result);
  models::check_takes_images(result);
  return result;
}

models::Model ModelFlags::open_classifier() const {
  const std::string source = name_or_folder();
  check(!train::is_autoencoder(source), "'{}' is an autoencoder, which has no classifier", model);
  check(kind() != models::ModelKind::joint, "'{}' {}, which has no classifier: {}", model,
        models::words_of(models::ModelKind::joint).is_or_does, models::words_of(models::ModelKind::joint).use);
  models::Model result = open_for_images();
  check(result.net->num_classes() > 0 || num_classes.has_value(),
        "'{}' has no classifier: `vitrail knn` and `vitrail probe` tell images apart by what it gives", model);
  check(!result.pretrained.bottleneck || num_classes.has_value(),
        "'{}' ends in the bottleneck of an autoencoder, whose numbers are no classes: `vitrail embed --logits` writes "
        "them",
        model);
  check(result.pretrained.problem_type != models::ProblemType::regression,
        "'{}' predicts numbers ('problem_type' is 'regression' in its config.json), not classes", model);
  return result;
}

std::vector<CLI::Option*> add_model_changes(CLI::App& command, ModelFlags& flags) {
  return {command
              .add_option("--model-kwargs", flags.kwargs,
                          "Arguments of the model, as timm names them: img_size=32 patch_size=4 …")
              ->type_name("KEY=VALUE")
              ->allow_extra_args(false),
          command
              .add_option("--num-classes", flags.num_classes,
                          "Number of classes; another one than the folder's gives a new head")
              ->check(whole_number(0, 1 << 20)),
          command.add_option("--img-size", flags.img_size, "Image size in pixels; positions are resized")
              ->check(at_least(1))};
}

std::vector<CLI::Option*> add_image_flags(CLI::App& command, ModelFlags& flags) {
  const std::vector<CLI::Option*> options = {
      command.add_option("--crop-pct", flags.images.crop_pct, "Crop: share of the resized image that is kept")
          ->check(positive())
          ->check(share()),
      command.add_option("--crop-mode", flags.images.crop_mode, "Crop: center, squash or border")
          ->type_name("NAME")
          ->check(CLI::IsMember({"center", "squash", "border"}).description("")),
      command
          .add_option("--interpolation", flags.images.interpolation,
                      fmt::format("Resizing: {}", fmt::join(data::interpolation_names(), ", ")))
          ->type_name("NAME")
          ->check(CLI::IsMember(data::interpolation_names()).description("")),
      command.add_option("--mean", flags.images.mean, "Mean of each colour, from 0 to 1")
          ->expected(1, 3)
          ->check(share()),
      command.add_option("--std", flags.images.std, "Standard deviation of each colour, up to 1")
          ->expected(1, 3)
          ->check(positive())
          ->check(share())};
  for (CLI::Option* option : options) {
    option->group("Images (default: as the model says)");
  }
  return options;
}

CLI::Option* add_model_argument(CLI::App& command, ModelFlags& flags) {
  CLI::Option* option =
      command.add_option("MODEL", flags.model, "Name (see: vitrail models) or folder with config.json and weights");
  option->required()->type_name("");
  add_model_changes(command, flags);
  return option;
}

DType ComputeFlags::apply() const {
  as_usage([&] { train::check_threads(threads); });
  if (threads > 0) {
    kernels::set_threads(static_cast<int>(threads));
  }
  std::string message;
  const DType usable = train::usable_dtype(dtype_named(!dtype.empty() ? dtype : amp ? amp_dtype : "f32"), &message);
  if (!message.empty()) {
    say("note: {}\n", message);
  }
  return usable;
}

void add_threads_flag(CLI::App& command, ComputeFlags& flags) {
  command.add_option("--threads", flags.threads, "Compute threads; 0: all cores")
      ->capture_default_str()
      ->check(whole_number());
}

void add_compute_flags(CLI::App& command, ComputeFlags& flags) {
  add_threads_flag(command, flags);
  command.add_flag("--amp", flags.amp, "Mixed precision: products and activations in --amp-dtype, weights in float32");
  command.add_option("--amp-dtype", flags.amp_dtype, "Lower precision of --amp: bfloat16, or float32 for none")
      ->capture_default_str()
      ->type_name("DTYPE")
      ->check(CLI::IsMember({"bfloat16", "bf16", "float32", "f32"}))
      ->needs("--amp");
  add_dtype_flag(command, flags.dtype);
}

namespace {

// `int8`: whether the weights are to be quantized; null if they cannot.
CLI::Option* add_dtype_of(CLI::App& command, std::string& dtype, const std::string& help, const bool* int8) {
  command.parse_complete_callback([&command, &dtype, int8] {
    const CLI::Option* const amp = command.get_option_no_throw("--amp");
    const bool is_amp = amp != nullptr && amp->count() > 0;
    if ((dtype.empty() && !is_amp) || (int8 != nullptr && *int8)) {
      return;
    }
    for (const char* name : {"MODEL", "--model"}) {
      const CLI::Option* const model = command.get_option_no_throw(name);
      if (model != nullptr && model->count() > 0) {
        note_int8_weights(model->results().back(), is_amp ? "--amp" : "--dtype");
      }
    }
  });
  return command.add_option("--dtype", dtype, help)->type_name("DTYPE")->excludes("--amp", "--amp-dtype");
}

}  // namespace

void add_dtype_flag(CLI::App& command, std::string& dtype) {
  add_dtype_of(command, dtype, "", nullptr)
      ->group("")
      ->check(CLI::Validator(
          [](const std::string& word) {  // the parser names no flag that the help does not show
            const bool known = word == "f32" || word == "bf16" || word == "float32" || word == "bfloat16";
            return known ? std::string() : fmt::format("--dtype: {} is neither f32 nor bf16", word);
          },
          "{f32,bf16}"));  // for completion
}

void add_compute_flags_with_int8(CLI::App& command, ComputeFlags& flags) {
  add_compute_flags(command, flags);
  command.remove_option(command.get_option("--dtype"));
  CLI::Option* const dtype =
      add_dtype_of(command, flags.dtype, "Compute in f32, bf16 or int8: the same as --amp or --int8", &flags.int8);
  dtype->transform([&flags](const std::string& word) {  // before the check
    flags.int8 = flags.int8 || word == "int8";
    return word == "int8" ? std::string("f32") : word;
  });
  dtype->check(CLI::IsMember({"f32", "bf16", "int8", "float32", "bfloat16"}).description("{f32,bf16,int8}"));
  command.add_flag("--int8", flags.int8, "Quantize the model's linear maps first; the rest runs as --amp says")
      ->excludes(dtype);
}

void note_int8_weights(const std::string& model, std::string_view flag) {
  if (models::int8_weights_in(train::model_of(model)) > 0) {
    say("note: the weights of '{}' are in int8, and {} is for the rest of the model\n", model, flag);
  }
}

CLI::Option* add_cache_flag(CLI::App& command, std::optional<DType>& dtype) {
  const auto take = [&dtype](const std::string& word) {
    dtype = word == "int8" ? DType::i8 : word == "bf16" ? DType::bf16 : DType::f32;
  };
  return command
      .add_option_function<std::string>("--cache-dtype", take,
                                        "Of the keys and values that are kept (default: that of the products)")
      ->check(CLI::IsMember({"f32", "bf16", "int8"}))
      ->type_name("DTYPE");
}

CLI::Option* expect_ending(CLI::Option* option, const std::string& ending) {
  return option->type_name("FILE" + ending)->check([ending](const std::string& name) {
    return CLI::detail::to_lower(name).ends_with(ending)
               ? std::string()
               : fmt::format("'{}' does not end in {}, the format in which it is written", name, ending);
  });
}

void check_not_input(const std::string& output, const std::string& input) {
  std::error_code error;  // of files that are not there, which are not the same
  check(!std::filesystem::equivalent(output, input, error), "'{}' is the input: choose another --output", output);
}

void check_beside_data(const std::string& output, const std::string& data) {
  std::error_code error;
  check(!std::filesystem::is_directory(data, error) || !data::lies_in(output, data),
        "'{}' lies in the data '{}': choose another --output", output, data);
}

void check_not_of_model(const std::string& output, const ModelFlags& model) {
  std::error_code error;
  if (output.empty()) {
    return;
  }
  const std::filesystem::path file = output;
  const std::string name = file.filename().string();
  const std::vector<std::string> own = {"config.json",
                                        "preprocessor_config.json",
                                        models::generation_file,
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "train-state.safetensors",
                                        "card.json",
                                        "vocab.json",
                                        "special_tokens_map.json"};
  const bool may_be_its =
      name.starts_with("model") || name.starts_with("pytorch_model") || std::ranges::find(own, name) != own.end();
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  if (!may_be_its || !std::filesystem::exists(file, error)) {
    return;
  }
  check(!std::filesystem::equivalent(folder, model.name_or_folder(), error),
        "'{}' belongs to the model '{}': choose another --output", output, model.model);
  check(!std::filesystem::exists(folder / models::config_file, error),
        "'{}' belongs to a model, whose {} lies beside it: choose another --output", output, models::config_file);
}

void note_left_out(const std::string& folder) {
  if (!std::filesystem::is_directory(folder)) {
    return;
  }
  const auto has_decoder = [&] {  // in a file of its own, or with the encoder
    return train::is_autoencoder(folder) ||
           std::ranges::any_of(models::open_weights(folder).names(),
                               [](const auto& name) { return name.starts_with("decoder."); });
  };
  const char* left_out = models::kind_of(folder) == models::ModelKind::joint ? "text model"
                         : has_decoder()                                     ? "decoder"
                                                                             : nullptr;
  if (left_out != nullptr) {
    say("note: this is the image model of '{}' alone, without its {}\n", folder, left_out);
  }
}

train::EvaluateOptions DataFlags::options(DType dtype) const {
  train::EvaluateOptions options;
  options.dtype = dtype;
  options.batch_size = batch_size;
  options.workers = workers;
  options.skip_broken = skip_broken;
  return options;
}

namespace {

CLI::Option* add_split(CLI::App& command, DataFlags& flags, const std::string& of, const std::string& parts) {
  return command.add_option("--split", flags.split, fmt::format("Part of {}: {} (default: DATA itself)", of, parts))
      ->type_name("NAME");
}

}  // namespace

void add_data_argument(CLI::App& command, DataFlags& flags, const std::string& help, const std::string& parts) {
  CLI::Option* const data =
      command
          .add_option("DATA", flags.data,
                      help.empty() ? "Images: a folder of class folders, a .tar, CIFAR or MNIST files, a .csv, or "
                                     "scenes:count=1000,task=count"
                                   : help)
          ->type_name("");
  command.add_option("--data", flags.data, "The same as DATA")->type_name("DATA")->excludes(data);
  add_split(command, flags, "DATA", parts);
}

void add_data_flag(CLI::App& command, DataFlags& flags, const std::string& flag, const std::string& help) {
  CLI::Option* data = command.add_option(flag, flags.data, help)->type_name("DATA");
  add_split(command, flags, flag, "validation, test …")->needs(data);
}

std::vector<CLI::Option*> add_loading_flags(CLI::App& command, DataFlags& flags) {
  return {command.add_option("-b,--batch-size", flags.batch_size, "Images a batch")
              ->capture_default_str()
              ->check(at_least(1)),
          command.add_option("-j,--workers", flags.workers, "Threads that decode ahead")
              ->capture_default_str()
              ->check(whole_number(0, train::most_workers)),
          command.add_flag("--skip-broken", flags.skip_broken, "Leave broken images out and name them")};
}

void add_examples(CLI::App& command, const std::vector<std::string>& lines) {
  std::string footer = "Examples:";
  for (const std::string& line : lines) {
    footer += "\n  " + line;
  }
  command.footer(footer);
}

}  // namespace vitrail::cli
