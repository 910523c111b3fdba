#include "vitrail/data/pairs/places.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "vitrail/data/scenes/draw.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {

std::vector<Box> read_boxes(io::Fields& annotation) {
  std::vector<Box> boxes;
  if (annotation.kind("boxes") != io::Kind::list) {
    return boxes;
  }
  for (const nlohmann::json& item : annotation.raw("boxes")) {
    check(item.is_array() && item.size() == 4 && std::ranges::all_of(item, [](const auto& n) { return n.is_number(); }),
          "{}: a box must be four numbers: left, top, width, height", annotation.source());
    const auto left = item[0].get<double>();
    const auto top = item[1].get<double>();
    boxes.push_back({left, top, left + item[2].get<double>(), top + item[3].get<double>()});
  }
  return boxes;
}

std::vector<Box> drawn_boxes(const std::vector<std::uint8_t>& mask, std::int64_t side,
                             const std::vector<std::size_t>& objects) {
  std::vector<Box> boxes;
  for (const SceneBox& box : boxes_of_objects(mask, side, objects)) {
    boxes.push_back({static_cast<double>(box.left), static_cast<double>(box.top), static_cast<double>(box.right),
                     static_cast<double>(box.bottom)});
  }
  return boxes;
}

}  // namespace vitrail::data
