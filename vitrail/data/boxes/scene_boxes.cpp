// Scenes that are drawn when they are asked for, as images with boxes.
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "vitrail/data/boxes/listings.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/sources/sources.h"
#include "vitrail/tensor/side_by_side.h"

namespace vitrail::data {

BoxListing list_scene_boxes(const std::filesystem::path& source, const std::string& split) {
  const SceneFolder what = read_scene_source(source, {"captions", "questions", "paraphrase"});
  const auto [first, count] = range_of_part(what, split);
  BoxListing listing;
  listing.categories = scene_categories(what.style);
  listing.category_ids.resize(listing.categories.size());
  std::iota(listing.category_ids.begin(), listing.category_ids.end(), std::int64_t{1});
  listing.images.resize(static_cast<std::size_t>(count));
  const auto list = [&, start = first](std::size_t i) {
    const std::int64_t index = start + static_cast<std::int64_t>(i);
    ListedImage& image = listing.images[i];
    image.name = scene_file(index);
    image.id = index;
    image.width = what.side;
    image.height = what.side;
    for (const SceneInstance& instance : scene_instances(what, index)) {
      const auto [left, top, right, bottom] = instance.box;
      image.objects.push_back({.box = {static_cast<double>(left), static_cast<double>(top), static_cast<double>(right),
                                       static_cast<double>(bottom)},
                               .category = instance.category,
                               .area = static_cast<double>(instance.area)});
    }
  };
  // Boxes are those of the pixels that are drawn, so that each scene has to be.
  side_by_side(listing.images.size(), static_cast<int>(std::thread::hardware_concurrency()), list);
  listing.image = [what, start = first](std::int64_t i) { return scene_image(what, start + i); };
  return listing;
}

}  // namespace vitrail::data
