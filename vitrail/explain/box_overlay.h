/// \file
/// Boxes with names, drawn on images.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/data/boxes/box.h"
#include "vitrail/explain/drawing/colormap.h"
#include "vitrail/io/image.h"

namespace vitrail::explain {

/// A box and what is written at its corner.
struct NamedBox {
  data::Box box;  ///< in pixels of the image
  std::string text;
  Color color = {255, 255, 255};
};

/// The colour of number `index` of a row of colours that differ well.
Color class_color(std::int64_t index);

/// Draws the frames of boxes, with a dark line around each, and their texts on grounds of their colours. The first lie
/// on top.
void draw_boxes(io::Image& image, const std::vector<NamedBox>& boxes);

}  // namespace vitrail::explain
