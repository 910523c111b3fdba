/// \file
/// COCO's figures of how well a detector finds objects.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vitrail/data/boxes/boxed_images.h"

namespace vitrail::train {

/// What a detector says is in an image.
struct FoundObject {
  data::Box box;  ///< in pixels
  std::int64_t label = 0;
  double score = 0;
  std::int64_t query = 0;  ///< which of the detector's queries says so
};

/// The figures of pycocotools' COCOeval for boxes, 0 … 1, or -1 where there are no objects that they are about.
struct CocoFigures {
  /// Average precision at intersections over unions 0.50 … 0.95, at 0.50, at 0.75, and of small, medium and large
  /// objects (areas up to 32², up to 96², and above); average recall with the 1, 10 and 100 likeliest detections of
  /// each class and image, and of small, medium and large objects.
  std::array<double, 12> stats = {};
  std::vector<double> class_ap;    ///< average precision of each class at 0.50 … 0.95
  std::vector<double> class_ap50;  ///< at 0.50
};
/// The names of the twelve, as papers have them: "AP", "AP50", … "ARl".
const std::array<std::string, 12>& coco_figure_names();

/// Compares what was found in each image with the objects in it, as pycocotools 2.0 does: of each class and image the
/// 100 likeliest detections count; each, the likeliest first, takes the object that it overlaps most and that no other
/// has taken; crowds may be taken by many, and neither they nor what takes them counts. So it is with difficult objects
/// (of VOC). Precision is read off at 101 levels of recall, from the best that is reached there or further on.
CocoFigures coco_figures(std::span<const std::vector<FoundObject>> found,
                         std::span<const std::vector<data::BoxedObject>> objects, std::int64_t classes);

}  // namespace vitrail::train
