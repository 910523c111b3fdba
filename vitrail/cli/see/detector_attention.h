/// \file
/// `vitrail attention` of a detector: where it looked for each box, and what places of the image look at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/cli/flags.h"
#include "vitrail/io/image.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/tensor/tensor.h"
#include "vitrail/train/detection/detections.h"

namespace vitrail::cli {

/// What a detector says of an image, and how it came to say it.
struct DetectorLooks {
  std::vector<train::FoundObject> found;  ///< all queries, the likeliest first
  models::SetPredictions predictions;
  std::vector<Tensor> encoder;  ///< of each layer [H, N, N]
  std::vector<Tensor> decoder;  ///< of each layer [H, Q, N]
  nn::Size2 grid = {};          ///< of the N places
};
DetectorLooks looks_of(const models::Detector& detector, const io::Image& image, DType dtype);

/// What draw_detector_attention() is told.
struct DetectorAttentionFlags {
  ModelFlags model;
  std::string image;
  std::string output;                ///< folder for the drawings
  std::string raw;                   ///< file for the predictions and all maps; empty: none
  std::optional<std::int64_t> box;   ///< one of what was found, the likeliest is 1
  std::optional<std::string> point;  ///< X,Y in pixels of the image
  std::optional<std::int64_t> layer;
  std::optional<std::int64_t> head;
  DType dtype = DType::f32;
};

/// Draws, by layer and head, the decoder's cross-attention of one box, or the encoder's self-attention from one point;
/// with neither, what the decoder's last layer looked at for each box that was found. Throws Error if there is no such
/// box, point, layer or head.
void draw_detector_attention(const DetectorAttentionFlags& flags);

}  // namespace vitrail::cli
