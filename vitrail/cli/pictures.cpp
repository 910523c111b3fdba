#include "vitrail/cli/pictures.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "vitrail/data/sources.h"
#include "vitrail/data/transforms.h"
#include "vitrail/tensor/error.h"
#include "vitrail/train/progress.h"

namespace vitrail::cli {

namespace fs = std::filesystem;

Tensor model_input(const models::Model& model, const io::Image& image) {
  return data::eval_transform(model.pretrained)(image).unsqueeze(0);
}

std::unique_ptr<data::Dataset> open_pictures(const std::string& path, const std::string& split,
                                             const models::Model& model) {
  data::DatasetOptions where;
  where.split = split;
  where.classes = model.pretrained.label_names;
  return data::open_dataset(path, where);
}

namespace {

// What `run` returns, given the options with a bar of progress.
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

train::Features embed_under_bar(std::string_view title, const models::Model& model, const data::Dataset& dataset,
                                train::EvaluateOptions options) {
  return under_bar(title, dataset, std::move(options),
                   [&](const train::EvaluateOptions& o) { return train::embed(model, dataset, o); });
}

std::vector<std::string> list_pictures(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  for (const std::string& argument : arguments) {
    if (argument == "-") {
      for (std::string line; std::getline(std::cin, line);) {
        if (!line.empty()) {
          result.push_back(line);
        }
      }
      continue;
    }
    std::error_code error;
    check(fs::exists(argument, error), "{}: there is no such file or folder", argument);
    if (!fs::is_directory(argument, error)) {
      result.push_back(argument);
      continue;
    }
    std::error_code unknown;  // of a link to nothing, which is no file
    std::vector<std::string> found;
    for (fs::recursive_directory_iterator it(argument, error), end; !error && it != end; it.increment(error)) {
      if (it->is_regular_file(unknown) && io::is_image_name(it->path())) {
        found.push_back(it->path().string());
      }
    }
    check(!error, "{}: the folder cannot be read: {}", argument, error.message());
    check(!found.empty(), "{}: there are no pictures (.jpg, .jpeg, .png, .webp) in this folder", argument);
    std::ranges::sort(found, data::natural_less);
    result.insert(result.end(), found.begin(), found.end());
  }
  check(!result.empty(), "no pictures were given");
  return result;
}

}  // namespace vitrail::cli
