/// \file
/// Where the queries of a detector put their boxes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "vitrail/io/image.h"
#include "vitrail/train/detection/coco_metric.h"

namespace vitrail::train {

/// Figure 7 of Carion et al. 2020: for each query a square, which stands for all images, with a dot at the centre of
/// each box that it predicts, also of those that are likelier "no object". Dots of small boxes are green, of wide ones
/// red, of high ones blue, of those that are both purple. `found` are the predictions for each image, whose widths and
/// heights are `sizes`.
io::Image query_boxes(std::span<const std::vector<FoundObject>> found,
                      std::span<const std::array<std::int64_t, 2>> sizes, std::int64_t num_queries);

}  // namespace vitrail::train
