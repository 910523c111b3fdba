/// \file
/// Parts of data sets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/dataset.h"

namespace vitrail::data {

/// A part of a data set, by the numbers of its images.
class DatasetPart final : public Dataset {
 public:
  DatasetPart(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> images)
      : whole_(std::move(whole)), images_(std::move(images)) {}
  /// The whole must outlive it.
  DatasetPart(const Dataset& whole, std::vector<std::int64_t> images)
      : DatasetPart(std::shared_ptr<const Dataset>(std::shared_ptr<const Dataset>(), &whole), std::move(images)) {}

  std::int64_t size() const override { return std::ssize(images_); }
  io::Image image(std::int64_t index) const override { return whole_->image(at(index)); }
  std::int64_t label(std::int64_t index) const override { return whole_->label(at(index)); }
  std::string name(std::int64_t index) const override { return whole_->name(at(index)); }
  std::filesystem::path file(std::int64_t index) const override { return whole_->file(at(index)); }
  const std::vector<std::string>& classes() const override { return whole_->classes(); }
  std::vector<std::uint8_t> encoded(std::int64_t index) const override { return whole_->encoded(at(index)); }
  void will_read(std::span<const std::int64_t> indices) const override {
    std::vector<std::int64_t> images;
    images.reserve(indices.size());
    std::ranges::transform(indices, std::back_inserter(images), [this](std::int64_t index) { return at(index); });
    whole_->will_read(images);
  }
  std::int64_t passed_over() const override { return whole_->passed_over(); }
  std::vector<std::string> notes() const override { return whole_->notes(); }

 private:
  std::int64_t at(std::int64_t index) const { return images_.at(static_cast<std::size_t>(index)); }

  std::shared_ptr<const Dataset> whole_;
  std::vector<std::int64_t> images_;
};

/// The numbers of at most `most` images, evenly spread over a data set, whose images lie in order.
inline std::vector<std::int64_t> spread_images(const Dataset& whole, std::int64_t most) {
  std::vector<std::int64_t> images(static_cast<std::size_t>(std::clamp<std::int64_t>(most, 0, whole.size())));
  for (std::size_t i = 0; i < images.size(); ++i) {
    images[i] = static_cast<std::int64_t>(i) * whole.size() / std::ssize(images);
  }
  return images;
}

}  // namespace vitrail::data
