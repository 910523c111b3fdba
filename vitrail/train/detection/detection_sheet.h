/// \file
/// Pictures of what a detector finds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/data/boxes/boxed_images.h"
#include "vitrail/io/image.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/train/detection/coco_metric.h"

namespace vitrail::train {

/// The score from which on a detection is shown.
inline constexpr double shown_score = 0.7;

/// The image, enlarged if it is small, with the boxes of what was found with at least `threshold`, their names and
/// scores.
io::Image with_detections(const io::Image& image, const std::vector<FoundObject>& found,
                          const std::vector<std::string>& labels, double threshold = shown_score);

/// A sheet of at most `most` images of the data set, evenly spread over it (data::for_spread_images()), with what the
/// detector finds in them. Empty if all are broken.
io::Image detection_sheet(const models::Detector& detector, const data::BoxedImages& data, bool skip_broken,
                          std::int64_t most = 12, DType dtype = DType::f32);

}  // namespace vitrail::train
