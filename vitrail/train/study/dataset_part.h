/// \file
/// Parts of data sets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/dataset.h"

namespace vitrail::train {

/// A part of a data set, which must outlive it, by the numbers of its images.
class DatasetPart final : public data::Dataset {
 public:
  DatasetPart(const data::Dataset& whole, std::vector<std::int64_t> images)
      : whole_(whole), images_(std::move(images)) {}
  std::int64_t size() const override { return std::ssize(images_); }
  io::Image image(std::int64_t index) const override { return whole_.image(at(index)); }
  std::int64_t label(std::int64_t index) const override { return whole_.label(at(index)); }
  std::string name(std::int64_t index) const override { return whole_.name(at(index)); }
  std::filesystem::path file(std::int64_t index) const override { return whole_.file(at(index)); }
  const std::vector<std::string>& classes() const override { return whole_.classes(); }

 private:
  std::int64_t at(std::int64_t index) const { return images_[static_cast<std::size_t>(index)]; }
  const data::Dataset& whole_;
  std::vector<std::int64_t> images_;
};

}  // namespace vitrail::train
