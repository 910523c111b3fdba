/// \file
/// Which query stands for which object, through a training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "vitrail/data/boxes/boxed_images.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/train/detection/criterion.h"

namespace vitrail::train {

/// The matching of the objects of a few images, at each evaluation of a training.
class MatchingHistory {
 public:
  MatchingHistory() = default;
  /// Follows at most `most` images of the data set with objects other than crowds, the first that there are.
  explicit MatchingHistory(const data::BoxedImages& data, std::int64_t most = 4);

  /// Matches what the detector says now of each of these images, taken by itself, with its objects.
  void record(const models::Detector& detector, const MatchCosts& costs, DType dtype = DType::f32);
  std::int64_t records() const { return records_; }
  /// By how many per cent of the objects change their query from one record to the next; empty before the second.
  std::vector<double> changes() const;

  /// What a resumed run needs. A state of other images, or none, begins anew.
  io::NamedTensors state() const;
  void load_state(const io::NamedTensors& state);

  /// Writes index.html and the images into `folder`: a page with a slider over the records, which plays. Each object
  /// has a dashed frame, and the box of the query that stands for it a solid one with the query's number, in its
  /// colour. It takes nothing from elsewhere. Throws Error if nothing was recorded.
  void write_page(const std::filesystem::path& folder) const;

 private:
  struct Followed {
    std::int64_t index = 0;  // of the image in the data set
    ObjectSet objects;       // relative to its size
  };
  // The query that stands for an object (-1: none), the probability of its class there, and the query's box.
  struct Stand {
    float query = -1;
    float probability = 0;
    float cx = 0, cy = 0, width = 0, height = 0;
  };

  const data::BoxedImages* data_ = nullptr;
  std::vector<Followed> images_;
  std::int64_t objects_ = 0;  // of all images
  std::int64_t records_ = 0;
  std::vector<Stand> stands_;  // [records, objects]
};

}  // namespace vitrail::train
