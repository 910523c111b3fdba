#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "vitrail/data/boxes/listings.h"
#include "vitrail/data/sources.h"
#include "vitrail/io/json.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;

// Reads the objects of a list with `id`s that are unique, and gives each with its fields to `read`.
template <class Read>
std::unordered_map<std::int64_t, std::size_t> read_list(const nlohmann::json& json, const char* key,
                                                        const std::string& source, Read&& read) {
  std::unordered_map<std::int64_t, std::size_t> place_of;
  std::size_t number = 0;
  for (const nlohmann::json& item : json[key]) {
    io::Fields f(item, fmt::format("{}: '{}' {}", source, key, number));
    if (f.kind("id") != io::Kind::absent || std::string_view(key) != "annotations") {
      const auto id = f.get<std::int64_t>("id");
      check(place_of.emplace(id, number).second, "{}: the id {} is there twice", f.source(), id);
    }
    read(f);
    ++number;
  }
  return place_of;
}

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

BoxListing list_coco_boxes(const fs::path& file) {
  const std::string source = file.string();
  const nlohmann::json json = io::read_json(file);
  io::Fields fields(json, source);
  for (const char* key : {"images", "annotations", "categories"}) {
    check(fields.kind(key) == io::Kind::list, "{}: there is no list '{}', as boxes in COCO's layout have it", source,
          key);
  }
  BoxListing result;
  std::vector<std::pair<std::int64_t, std::string>> categories;
  read_list(json, "categories", source,
            [&](io::Fields& f) { categories.emplace_back(f.get<std::int64_t>("id"), f.get<std::string>("name")); });
  std::ranges::sort(categories);
  std::unordered_map<std::int64_t, std::size_t> class_of;
  for (const auto& [id, name] : categories) {
    class_of[id] = result.categories.size();
    result.categories.push_back(name);
    result.category_ids.push_back(id);
  }
  const auto place_of = read_list(json, "images", source, [&](io::Fields& f) {
    ListedImage image;
    image.id = f.get<std::int64_t>("id");
    image.name = f.get<std::string>("file_name");
    image.width = f.get<std::int64_t>("width", 0, {0, 1e7});
    image.height = f.get<std::int64_t>("height", 0, {0, 1e7});
    image.path = coco_image(file, image.name, f.source());
    result.images.push_back(std::move(image));
  });
  read_list(json, "annotations", source, [&](io::Fields& f) {
    const auto image = f.get<std::int64_t>("image_id");
    const auto place = place_of.find(image);
    check(place != place_of.end(), "{}: there is no image with the id {}", f.source(), image);
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
    result.images[place->second].objects.push_back(object);
  });
  return result;
}

}  // namespace vitrail::data
