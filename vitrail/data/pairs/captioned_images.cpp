#include "vitrail/data/pairs/captioned_images.h"

#include <utility>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/data/sources.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

// Whether a source has texts beside its images, in a form that says so itself.
bool has_texts(const fs::path& source) {
  const std::string extension = source.extension().string();
  if (extension == ".json" || extension == ".tar") {
    return true;
  }
  return fs::exists(source / "captions.json") || fs::exists(source / "captions.csv");
}

// The names of the classes as the captions of their images; images without a class are left out.
TextPairs captioned_by_class(const fs::path& source, const std::string& split) {
  DatasetOptions part;
  part.split = split;
  const std::shared_ptr<const Dataset> images = open_dataset(source.string(), part);
  TextPairs all{images, {}};
  std::vector<std::int64_t> named;
  for (std::int64_t i = 0; i < images->size(); ++i) {
    const std::int64_t label = images->label(i);
    all.texts.emplace_back();
    if (label != unlabeled) {
      all.texts.back().push_back(images->classes()[static_cast<std::size_t>(label)]);
      named.push_back(i);
    }
  }
  check(!named.empty(), "{}: no image has a caption, or the name of a class", source.string());
  return std::ssize(named) == images->size() ? all : part_of(all, std::move(named));
}

}  // namespace

TextPairs open_captioned_images(const fs::path& source, const std::string& split) {
  if (has_texts(source)) {
    check(split.empty() || is_training_split(split), "{}: there is no part '{}' of it", source.string(), split);
    return open_text_pairs(source);
  }
  for (const std::string& name : split.empty() ? std::vector<std::string>() : names_of_split(split)) {
    if (has_texts(source / name)) {
      return open_text_pairs(source / name);
    }
  }
  return captioned_by_class(source, split);
}

}  // namespace vitrail::data
