/// \file
/// What a detector finds in images, and how well.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vitrail/data/boxes/box_batches.h"
#include "vitrail/io/image.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/train/detection/coco_metric.h"
#include "vitrail/train/detection/criterion.h"
#include "vitrail/train/study/evaluate.h"

namespace vitrail::train {

/// How the images of a detector are made.
data::BoxTransform box_transform(const models::DetectorImages& images);
/// The objects of a batch that a detector is to find: all but crowds.
std::vector<ObjectSet> object_sets(const data::BoxBatch& batch);

/// What each query says, with its likeliest class other than "no object", the likeliest first; boxes in the pixels of
/// the images, whose widths and heights are `sizes`.
std::vector<std::vector<FoundObject>> found_objects(const models::SetPredictions& predictions,
                                                    std::span<const std::array<std::int64_t, 2>> sizes);
/// What a detector finds in images, each taken by itself, so that none is padded: all its queries, the likeliest first.
std::vector<std::vector<FoundObject>> detect(const models::Detector& detector, const std::vector<io::Image>& images,
                                             DType dtype = DType::f32);

/// How well a detector finds what is in a data set.
struct DetectorEvaluation {
  std::int64_t count = 0;  ///< images
  CocoFigures figures;
  double loss = 0;                                 ///< mean over the batches, of all layers of the decoder
  std::vector<std::vector<FoundObject>> found;     ///< in each image
  std::vector<std::array<std::int64_t, 2>> sizes;  ///< widths and heights of these images
  std::vector<std::int64_t> indices;               ///< of these images in the data set
  std::vector<std::string> broken;                 ///< images left out, with the reasons
};
/// Runs the detector over all images, and takes all that its queries say.
DetectorEvaluation evaluate_detector(const models::Detector& detector, const data::BoxedImages& data,
                                     const EvaluateOptions& options, const MatchCosts& costs = {},
                                     const SetLossWeights& weights = {});

/// An image as a file of results names it.
struct ResultImage {
  std::int64_t id = 0;
  std::string name;
};
/// Detections in COCO's layout of results: a list of image_id, file_name, category_id, bbox, to a millionth of a pixel,
/// and score, to the last digit, as it is by them that detections are put in order.
std::string coco_results(const std::vector<std::vector<FoundObject>>& found, const std::vector<ResultImage>& images,
                         std::span<const std::int64_t> category_ids);

/// The figures as lines for people: the twelve, and the average precision of each class.
std::string coco_table(const CocoFigures& figures, const std::vector<std::string>& classes);

}  // namespace vitrail::train
