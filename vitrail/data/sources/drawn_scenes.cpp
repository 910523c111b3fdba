// Scenes that are drawn when they are asked for, as a data set.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/scenes/source.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {

std::pair<std::int64_t, std::int64_t> range_of_part(const SceneFolder& what, const std::string& split) {
  return is_drawn_for_validation(split, "scenes") ? std::pair(what.first + what.count, what.validation_count())
                                                  : std::pair(what.first, what.count);
}

Listing list_scenes(const std::filesystem::path& source, const std::string& split, bool labeled) {
  const SceneFolder what =
      labeled ? read_scene_source(source, {"captions", "questions", "paraphrase"}) : read_scene_source(source);
  check(!labeled || what.scenes.task != SceneTask::none,
        "{}: what are the classes? Add 'task=same-different' or 'task=count'", source.string());
  const auto [first, count] = range_of_part(what, split);
  Listing listing;
  std::vector<std::string> class_names;
  class_names.reserve(static_cast<std::size_t>(count));
  listing.names.reserve(static_cast<std::size_t>(count));
  for (std::int64_t index = first; index < first + count; ++index) {
    listing.names.push_back(scene_file(index));
    if (labeled) {
      class_names.push_back(scene_class(what.scenes.task, sample_scene(what.scenes, index)));
    }
  }
  if (labeled) {
    label_by_name(listing, class_names);
  }
  listing.file = [source](std::int64_t) { return source; };
  listing.image = [what, first = first](std::int64_t i) { return scene_image(what, first + i); };
  return listing;
}

}  // namespace vitrail::data
