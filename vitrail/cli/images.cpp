#include "vitrail/cli/images.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vitrail/cli/say.h"
#include "vitrail/data/coco/coco_file.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/shards/shards.h"
#include "vitrail/data/transforms.h"
#include "vitrail/explain/page.h"
#include "vitrail/io/file.h"
#include "vitrail/io/tar.h"
#include "vitrail/io/wording.h"
#include "vitrail/models/base/shipped.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/vit/mae.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/run/progress.h"
#include "vitrail/train/run/run_folder.h"
#include "vitrail/train/sources/data_kinds.h"
#include "vitrail/train/task.h"

namespace vitrail::cli {

namespace fs = std::filesystem;

Tensor model_input(const models::Model& model, const io::Image& image) {
  return data::eval_transform(model.pretrained)(image).unsqueeze(0);
}

void check_own_page(const fs::path& page) {
  std::error_code none;
  const std::string there = fs::is_regular_file(page, none) ? io::read_text(page) : "";
  const auto has = [&](std::string_view part) { return there.find(part) != std::string::npos; };
  // Pages of earlier versions do not name the program.
  check(there.empty() || has(explain::page_generator) || has("<p class=\"lead\">") || has("<canvas id=\"map\">"),
        "'{}' is a page that vitrail has not made, and would be replaced: choose another --output", page.string());
}

void make_page_folder(const fs::path& folder) {
  check_own_page(folder / "index.html");
  io::make_folder(folder);
}

void note_learned_data(const ModelFlags& model, const DataFlags& data) {
  fs::path folder = fs::absolute(model.name_or_folder()).lexically_normal();
  folder = folder.has_filename() ? folder : folder.parent_path();
  const fs::path config = folder.parent_path() / "config.toml";  // of the run
  if ((!data.split.empty() && !data::is_training_split(data.split)) || !io::is_file(config)) {
    return;
  }
  std::map<std::string, std::string> facts;
  try {
    facts = train::read_facts(config);
  } catch (const Error&) {
    return;  // of another program
  }
  const auto source = facts.find(train::held_out_source_fact);
  if (source != facts.end() && source->second == data::absolute_source(data.data)) {
    say_note(fmt::format("the model has learnt these, all but a share of {} that its run held out",
                         facts[train::held_out_fact]));
  }
}

std::unique_ptr<data::Dataset> open_images(const DataFlags& flags, const models::Model& model, bool or_own_classes) {
  data::DatasetOptions where;
  where.split = flags.split;
  where.classes = model.pretrained.label_names;
  where.or_own_classes = or_own_classes;
  where.skip_broken = flags.skip_broken;
  auto dataset = data::open_dataset(flags.data, where);
  say_notes_of(*dataset);
  note_beside_classes(flags.data);
  return dataset;
}

void note_beside_classes(const std::string& source) {
  std::vector<std::string> tasks;
  try {
    tasks = fs::is_directory(source) ? train::tasks_beside_classes(source) : tasks;
  } catch (const std::exception&) {  // what lies there is no such data, or cannot be read
    return;
  }
  if (!tasks.empty()) {
    say_note(fmt::format("beside the classes of '{}' there is what is for --task {}", source, fmt::join(tasks, ", ")));
  }
}

void settle_processor(models::PretrainedConfig& images, const std::string& folder) {
  using Resize = data::ImageProcessor::Resize;
  if (!images.processor) {
    return;
  }
  const data::ImageProcessor processor = *images.processor;
  if (processor.resize == Resize::none) {
    say("note: the folder's processor takes the middle of images as they are, which timm resizes first "
        "(docs/data.md)\n");
  } else if (models::model_type_in(folder) == models::mae_type) {
    images.processor.reset();
  } else if (processor.resize == Resize::shorter_side || processor.height != processor.width ||
             (processor.height - processor.crop_height) % 2 != 0) {
    say("note: timm does not know the folder's processor, and may crop images a pixel beside (docs/data.md): "
        "predictions "
        "may differ a little there\n");
  }
}

void say_notes_of(const data::Dataset& dataset) {
  for (const std::string& note : data::notes_of({&dataset})) {
    say_note(note);
  }
}

namespace {

// Calls `run` with options that update a progress bar, and returns what it returns.
template <class Run>
auto under_bar(std::string_view title, const data::Dataset& dataset, train::EvaluateOptions options, Run run) {
  train::Progress progress(stderr);
  if (progress.terminal()) {
    progress.begin(title, dataset.size());
    options.progress = [&](std::int64_t done, std::int64_t) { progress.update(done, ""); };
  }
  auto result = run(options);
  progress.end();
  return result;
}

}  // namespace

train::Evaluation evaluate_under_bar(std::string_view title, const models::Model& model, const data::Dataset& dataset,
                                     train::EvaluateOptions options) {
  return under_bar(title, dataset, std::move(options),
                   [&](const train::EvaluateOptions& o) { return train::evaluate(model, dataset, o); });
}

train::DetectorEvaluation evaluate_under_bar(std::string_view title, const models::Detector& detector,
                                             const data::BoxedImages& data, train::EvaluateOptions options) {
  return under_bar(title, *data.images, std::move(options),
                   [&](const train::EvaluateOptions& o) { return train::evaluate_detector(detector, data, o); });
}

train::AnswerEvaluation evaluate_under_bar(std::string_view title, const train::Answerer& answerer,
                                           const data::ImageQuestions& questions, train::EvaluateOptions options) {
  return under_bar(title, *questions.images, std::move(options),
                   [&](const train::EvaluateOptions& o) { return answerer.evaluate(questions, o); });
}

void note_same_source(std::string_view items, const std::string& learned, const std::string& judged) {
  std::vector<std::string> notes;
  train::note_same_data(notes, items, {learned}, {judged});
  std::ranges::for_each(notes, say_note);
}

void note_left_out_images(const std::vector<std::string>& broken) {
  static std::set<std::string> said;
  for (const std::string& one : broken) {
    if (said.insert(one).second) {
      say("left out: {}\n", one);
    }
  }
}

void print_by_class(const train::Evaluation& evaluation) {
  std::size_t width = 5;
  std::vector<std::string> names;
  names.reserve(evaluation.classes.size());
  for (const std::string& name : evaluation.classes) {
    names.push_back(io::on_one_line(name));
    width = std::max(width, names.back().size());
  }
  fmt::print("{:<{}}  {:>8}  {:>8}\n", "class", width, "images", "top-1");
  for (std::int64_t c = 0; c < evaluation.num_classes(); ++c) {
    const std::int64_t count = evaluation.class_count(c);
    fmt::print("{:<{}}  {:>8}  {:>8}\n", names[static_cast<std::size_t>(c)], width, count,
               count == 0 ? "-" : fmt::format("{:.2f} %", evaluation.class_accuracy(c)));
  }
  for (const std::string& broken : evaluation.broken) {
    fmt::print("left out: {}\n", broken);
  }
}

train::Features embed_under_bar(std::string_view title, const models::Model& model, const data::Dataset& dataset,
                                train::EvaluateOptions options) {
  return under_bar(title, dataset, std::move(options),
                   [&](const train::EvaluateOptions& o) { return train::embed(model, dataset, o); });
}

train::Features embed_under_bar(std::string_view title, const models::Model& model, const data::Dataset& dataset,
                                const train::FeatureFunction& function, train::EvaluateOptions options) {
  return under_bar(title, dataset, std::move(options),
                   [&](const train::EvaluateOptions& o) { return train::embed(model, dataset, function, o); });
}

train::EmbeddingFile embed_to_file_under_bar(std::string_view title, const models::Model& model,
                                             const data::Dataset& dataset, const train::FeatureFunction& function,
                                             train::EvaluateOptions options, const std::string& output,
                                             const train::EmbeddingFileOptions& file) {
  return under_bar(title, dataset, std::move(options), [&](const train::EvaluateOptions& o) {
    return train::embed_to_file(model, dataset, function, o, output, file);
  });
}

void check_none_in(const std::string& folder, const std::vector<NamedImage>& images) {
  for (const NamedImage& image : images) {
    const fs::path path = image.name;
    std::error_code error;  // of a folder that is not there yet, and of images that are no files
    const fs::path picture = fs::path(path).replace_extension(".png");
    check(!fs::exists(path, error) || !fs::exists(picture, error) ||
              !fs::equivalent(path.has_parent_path() ? path.parent_path() : ".", folder, error),
          "'{}' lies in the folder that the pictures are drawn into, and would be replaced by one: choose another "
          "--output",
          picture.string());
  }
}

std::string PictureNames::next(const std::string& image) {
  const std::string stem = fs::path(image).stem().string();
  for (int& count = counts_[stem];;) {
    ++count;
    const std::string name = count == 1 ? stem + ".png" : fmt::format("{}-{}.png", stem, count);
    if (taken_.insert(name).second) {  // unless an image of another name took it: x-2 beside the second x
      return name;
    }
  }
}

void PictureNames::note_others_in(const std::string& folder) const {
  const std::int64_t others =
      std::ranges::count_if(fs::directory_iterator(folder), [&](const fs::directory_entry& file) {
        return file.path().extension() == ".png" && !taken_.contains(file.path().filename().string());
      });
  if (others > 0) {
    say("note: '{}' has {} that {} there before\n", folder, io::counted(others, "other pictures"),
        others == 1 ? "was" : "were");
  }
}

std::optional<std::string> image_without_model(ModelFlags& model, std::string_view shipped) {
  if (!io::is_image_name(model.model)) {
    const std::filesystem::path path = model.model;
    std::error_code error;
    const bool holds_model = std::filesystem::exists(path / models::config_file, error) ||
                             std::filesystem::exists(path / "config.toml", error);
    check_usage(!std::filesystem::exists(path, error) || holds_model || models::is_shipped_name(model.model),
                "'{}' is no model, and without one a single JPEG, PNG or WebP is looked at: name a MODEL in front of "
                "it, such as {}",
                model.model, shipped);
    return std::nullopt;
  }
  check(io::is_file(model.model), "there is no image '{}'", model.model);
  std::string image = std::exchange(model.model, std::string(shipped));
  say("note: no MODEL is named: '{}' looks at it, which knows little (vitrail models --shipped {})\n", shipped,
      shipped);
  return image;
}

void check_one_image_without_model(const ModelFlags& model, std::string_view shipped) {
  check_usage(!io::is_image_name(model.model),
              "'{}' is an image, and without a model one alone is looked at: name a MODEL in front, such as {}",
              model.model, shipped);
}

void add_images_argument(CLI::App& command, std::vector<std::string>& images) {
  command
      .add_option(
          "IMAGES", images,
          "Image files, folders, .tar files, shards 'train-{000000..000003}.tar', scenes:count=8, or - for a list "
          "of paths on standard input")
      ->required()
      ->type_name("");
}

std::vector<std::string> with_input_lines(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  for (const std::string& argument : arguments) {
    if (argument != "-") {
      result.push_back(argument);
      continue;
    }
    std::error_code error;
    bool first = true;
    for (std::string line; io::next_input_line(line); first = false) {
      if (first) {
        line = std::string(io::without_byte_order_mark(line));
      }
      if (line.ends_with('\r') && !fs::exists(line, error)) {
        line.pop_back();  // a list from Windows
      }
      for (std::size_t begin = 0; begin < line.size();) {  // a line of paths that `find -print0` has written
        const std::size_t end = std::min(line.find('\0', begin), line.size());
        if (end > begin) {
          result.push_back(line.substr(begin, end - begin));
        }
        begin = end + 1;
      }
    }
  }
  return result;
}

std::vector<NamedImage> list_images(const std::vector<std::string>& arguments, const std::string& output,
                                    bool skip_broken) {
  std::vector<NamedImage> result;
  const auto add_file = [&result](const std::string& path) {
    result.push_back({path, [path] { return io::read_image(path); }});
  };
  for (const std::string& argument : arguments) {
    std::error_code error;
    if (argument == "-") {
      for (const std::string& path : with_input_lines({argument})) {
        check(
            std::ranges::none_of(path, [](unsigned char c) { return c < ' ' && c != '\t'; }) || fs::exists(path, error),
            "-: the standard input is no list of paths, one a line: it has control characters");
        add_file(path);
      }
      continue;
    }
    const bool in_shards = data::is_shard_source(argument);
    const bool drawn = data::is_scene_source(argument);
    check(drawn || in_shards || fs::exists(argument, error), "{}: there is no such file or folder", argument);
    const bool is_file = !drawn && !in_shards && !fs::is_directory(argument, error);
    if (is_file && !data::holds_images(argument)) {
      add_file(argument);
      continue;
    }
    const std::shared_ptr<const data::Dataset> all = data::open_unlabeled(argument, skip_broken);
    say_notes_of(*all);
    for (std::int64_t i = 0; i < all->size(); ++i) {
      const bool beside = is_file && !io::is_tar_name(argument);
      const fs::path folder = in_shards ? all->file(i).parent_path()
                              : beside  ? fs::path(argument).parent_path()
                                        : fs::path(argument);
      result.push_back({(folder / all->name(i)).string(), [all, i] { return all->image(i); }});
    }
  }
  check(!result.empty(), "no images were given");
  if (!output.empty()) {
    for (const NamedImage& image : result) {
      check_not_input(output, image.name);
    }
  }
  return result;
}

std::map<std::string, std::int64_t> ids_in_names(const std::vector<NamedImage>& images) {
  std::vector<std::string> names;
  std::ranges::transform(images, std::back_inserter(names), &NamedImage::name);
  return data::ids_in_names(names);
}

std::optional<io::Image> read_image(const NamedImage& image, bool skip_broken) {
  try {
    return image.read();
  } catch (const Error& error) {
    check(skip_broken, "{} (broken images can be skipped: --skip-broken)", error.what());
    say("left out: {}\n", error.what());
    return std::nullopt;
  }
}

void for_each_batch(
    const std::vector<NamedImage>& images, std::int64_t batch_size, bool skip_broken,
    const std::function<void(const std::vector<std::string>& names, const std::vector<io::Image>&)>& run) {
  std::vector<std::string> names;
  std::vector<io::Image> batch;
  bool any = false;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (std::optional<io::Image> image = read_image(images[i], skip_broken)) {
      batch.push_back(*std::move(image));
      names.push_back(images[i].name);
    }
    if (std::ssize(batch) == batch_size || (i + 1 == images.size() && !batch.empty())) {
      run(names, batch);
      any = true;
      names.clear();
      batch.clear();
    }
  }
  check(any, "none of the {} images could be read", images.size());
}

}  // namespace vitrail::cli
