// What a mask says of an object: its box, its area and its outline.
#include <algorithm>
#include <array>

#include "vitrail/data/scenes/draw.h"

namespace vitrail::data {
namespace {

// Directions along the edges of pixels, clockwise: right, down, left, up.
constexpr std::array<std::array<std::int64_t, 2>, 4> directions = {{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}};

// Follows the edges of an object's pixels with the object on the right hand.
class Tracer {
 public:
  Tracer(const std::vector<std::uint8_t>& objects, std::int64_t side, std::int64_t number)
      : objects_(objects), side_(side), number_(number), seen_(static_cast<std::size_t>(side * side), false) {}

  std::vector<std::vector<std::int64_t>> outlines() {
    std::vector<std::vector<std::int64_t>> result;
    for (std::int64_t y = 0; y < side_; ++y) {
      for (std::int64_t x = 0; x < side_; ++x) {
        // An upper edge that has not been walked along: in this order, a part's outer one comes before those of holes.
        if (has(x, y) && !has(x, y - 1) && !seen_[static_cast<std::size_t>(y * side_ + x)]) {
          std::vector<std::int64_t> outline = walk(x, y);
          if (!outline.empty()) {
            result.push_back(std::move(outline));
          }
        }
      }
    }
    return result;
  }

 private:
  bool has(std::int64_t x, std::int64_t y) const {
    return x >= 0 && x < side_ && y >= 0 && y < side_ && objects_[static_cast<std::size_t>(y * side_ + x)] == number_;
  }

  // Whether an edge leaves the corner (x, y) in a direction: the pixel on its right is of the object, that on its left
  // is not.
  bool leaves(std::int64_t x, std::int64_t y, std::size_t direction) const {
    switch (direction) {
      case 0:
        return has(x, y) && !has(x, y - 1);
      case 1:
        return has(x - 1, y) && !has(x, y);
      case 2:
        return has(x - 1, y - 1) && !has(x - 1, y);
      default:
        return has(x, y - 1) && !has(x - 1, y - 1);
    }
  }

  // The corners of the outline whose first edge is the upper one of pixel (x, y); nothing if it is that of a hole.
  std::vector<std::int64_t> walk(const std::int64_t first_x, const std::int64_t first_y) {
    std::vector<std::int64_t> corners = {first_x, first_y};
    std::int64_t x = first_x;
    std::int64_t y = first_y;
    std::int64_t twice_area = 0;
    std::size_t direction = 0;
    do {
      if (direction == 0) {
        seen_[static_cast<std::size_t>(y * side_ + x)] = true;
      }
      const std::int64_t next_x = x + directions[direction][0];
      const std::int64_t next_y = y + directions[direction][1];
      twice_area += x * next_y - next_x * y;
      x = next_x;
      y = next_y;
      // Sharply to the right first, so that pixels that touch at a corner alone are two parts.
      std::size_t turned = (direction + 1) % 4;
      while (!leaves(x, y, turned)) {
        turned = (turned + 3) % 4;
      }
      if (turned != direction && !(x == first_x && y == first_y && turned == 0)) {
        corners.push_back(x);
        corners.push_back(y);
      }
      direction = turned;
    } while (!(x == first_x && y == first_y && direction == 0));
    return twice_area > 0 ? corners : std::vector<std::int64_t>();
  }

  const std::vector<std::uint8_t>& objects_;
  std::int64_t side_;
  std::int64_t number_;
  std::vector<bool> seen_;  // pixels whose upper edge has been walked along
};

}  // namespace

SceneBox box_of_object(const std::vector<std::uint8_t>& objects, std::int64_t side, std::int64_t number) {
  SceneBox box = {side, side, 0, 0};
  for (std::int64_t i = 0; i < std::ssize(objects); ++i) {
    if (objects[static_cast<std::size_t>(i)] == number) {
      box.left = std::min(box.left, i % side);
      box.right = std::max(box.right, i % side + 1);
      box.top = std::min(box.top, i / side);
      box.bottom = std::max(box.bottom, i / side + 1);
    }
  }
  return box.right == 0 ? SceneBox{} : box;
}

std::vector<SceneBox> boxes_of_objects(const std::vector<std::uint8_t>& mask, std::int64_t side,
                                       const std::vector<std::size_t>& objects) {
  std::vector<SceneBox> boxes;
  boxes.reserve(objects.size());
  for (const std::size_t object : objects) {
    boxes.push_back(box_of_object(mask, side, static_cast<std::int64_t>(object + 1)));
  }
  return boxes;
}

std::int64_t area_of_object(const std::vector<std::uint8_t>& objects, std::int64_t number) {
  return std::ranges::count(objects, static_cast<std::uint8_t>(number));
}

std::vector<std::vector<std::int64_t>> outlines_of_object(const std::vector<std::uint8_t>& objects, std::int64_t side,
                                                          std::int64_t number) {
  return Tracer(objects, side, number).outlines();
}

}  // namespace vitrail::data
