/// \file
/// Images of scenes, and what is where on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vitrail/data/scenes/scene.h"
#include "vitrail/io/image.h"

namespace vitrail::data {

constexpr std::int64_t smallest_scene = 32;  ///< pixels of a side
constexpr std::int64_t largest_scene = 512;

/// A scene as an image.
struct DrawnScene {
  io::Image image;
  /// [side, side] The object that covers half of a pixel at least, counted from 1 in the order of Scene::objects; 0 is
  /// the background.
  std::vector<std::uint8_t> objects;
  std::vector<std::uint8_t> heads;  ///< [side, side] the same of the heads of birds
  std::vector<std::uint8_t> beaks;  ///< [side, side] the same of their beaks, wherever these touch a pixel
};
/// The mask of objects, or of the heads or beaks of birds.
const std::vector<std::uint8_t>& mask_of(const DrawnScene& drawn, ScenePart part);

/// Draws a scene as a square of `side` pixels. It is drawn at four times the size with integers alone and averaged, so
/// that its bytes are the same on every machine. Throws Error if the side is out of range.
DrawnScene draw_scene(const Scene& scene, std::int64_t side = 64);

/// What a mask of `side` × `side` pixels says of object `number`: the box of its pixels, all zero if there are none.
SceneBox box_of_object(const std::vector<std::uint8_t>& objects, std::int64_t side, std::int64_t number);
/// The same of several objects, by their places in the scene, from 0 on.
std::vector<SceneBox> boxes_of_objects(const std::vector<std::uint8_t>& mask, std::int64_t side,
                                       const std::vector<std::size_t>& objects);

/// The number of pixels of object `number`.
std::int64_t area_of_object(const std::vector<std::uint8_t>& objects, std::int64_t number);

/// The outlines of object `number` along the edges of its pixels: closed polygons x0, y0, x1, y1 … of which only the
/// corners are named, one for each connected part. What they enclose is the object, but for holes.
std::vector<std::vector<std::int64_t>> outlines_of_object(const std::vector<std::uint8_t>& objects, std::int64_t side,
                                                          std::int64_t number);

}  // namespace vitrail::data
