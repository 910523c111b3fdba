#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/boxes/listings.h"
#include "vitrail/data/coco/coco_file.h"
#include "vitrail/io/json.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

Box read_bbox(io::Fields& f) {
  const auto numbers = f.get<std::vector<double>>("bbox", {-1e7, 1e7});
  check(numbers.size() == 4, "{}: 'bbox' has {} numbers, expected 4: x, y, width, height", f.source(), numbers.size());
  return {numbers[0], numbers[1], numbers[0] + numbers[2], numbers[1] + numbers[3]};
}

void check_outline(io::Fields& f) {
  if (f.kind("segmentation") != io::Kind::list) {
    return;
  }
  std::size_t number = 0;
  for (const nlohmann::json& polygon : f.raw("segmentation")) {
    check(polygon.is_array() && polygon.size() % 2 == 0,
          "{}: polygon {} of 'segmentation' has {} numbers, expected pairs of x and y", f.source(), number,
          polygon.size());
    ++number;
  }
}

}  // namespace

BoxListing list_coco_boxes(const fs::path& path, bool skip_broken) {
  const CocoFile file(path, {"images", "annotations", "categories"}, "boxes", skip_broken);
  BoxListing result;
  result.in_coco_layout = true;
  std::vector<std::pair<std::int64_t, std::string>> categories;
  file.read_with_ids("categories", [&](io::Fields& f) {
    categories.emplace_back(f.get<std::int64_t>("id"), f.get<std::string>("name"));
  });
  std::ranges::sort(categories);
  CocoPlaces class_of;
  for (const auto& [id, name] : categories) {
    const auto other = std::ranges::find(result.categories, name);
    if (other != result.categories.end()) {
      fail("{}: the categories {} and {} are both called '{}'", path.string(),
           result.category_ids[static_cast<std::size_t>(other - result.categories.begin())], id, name);
    }
    class_of[id] = result.categories.size();
    result.categories.push_back(name);
    result.category_ids.push_back(id);
  }
  const CocoPlaces images =
      file.read_images([&](io::Fields& f, std::int64_t id, const std::string& name, const fs::path& where) {
        ListedImage image;
        image.id = id;
        image.name = name;
        image.path = where;
        image.width = f.get<std::int64_t>("width", 0, {0, 1e7});
        image.height = f.get<std::int64_t>("height", 0, {0, 1e7});
        result.images.push_back(std::move(image));
      });
  bool has_zero = false;
  const auto read_object = [&](io::Fields& f) {
    has_zero = has_zero || f.optional<std::int64_t>("id") == 0;
    const std::size_t image = CocoFile::image_of(f, images);
    const auto category = f.get<std::int64_t>("category_id");
    const auto found = class_of.find(category);
    check(found != class_of.end(), "{}: the category {} is none of those that 'categories' declares", f.source(),
          category);
    ListedObject object;
    object.box = read_bbox(f);
    object.category = found->second;
    object.area = f.optional<double>("area");
    object.crowd = f.get<std::int64_t>("iscrowd", 0, {0, 1}) == 1;
    check_outline(f);
    result.images[image].objects.push_back(object);
  };
  file.read_with_ids("annotations", read_object, true);
  if (has_zero) {
    result.notes.push_back(
        fmt::format("{}: an annotation has the id 0, which pycocotools takes for one that is never found: its figures "
                    "are below those here",
                    path.string()));
  }
  return result;
}

}  // namespace vitrail::data
