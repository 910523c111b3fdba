/// \file
/// Which classes are taken for which.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::train {

/// Numbers of items by true class (row) and predicted class (column).
struct Confusion {
  explicit Confusion(std::vector<std::string> names = {});

  /// Counts items of these predicted classes [N] i64 and true classes. One whose true class is negative does not count.
  void add(const Tensor& predicted, std::span<const std::int64_t> truth);
  std::int64_t total() const;
  std::int64_t right() const;

  std::vector<std::string> classes;
  std::vector<std::int64_t> counts;  ///< [C, C]
};

/// The matrix as an SVG heat map, each row shaded by itself, with the accuracy as its title. `items` says what is
/// counted: "images".
std::string confusion_svg(const Confusion& confusion, std::string_view items);
/// The same as Task::pictures() gives it: as "confusion.svg", unless there are so many classes that nobody could read
/// it.
std::vector<std::pair<std::string, std::string>> confusion_picture(const Confusion& confusion, std::string_view items);

}  // namespace vitrail::train
