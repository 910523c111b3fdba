/// \file
/// The sizes of a tensor's dimensions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "vitrail/tensor/error.h"

namespace vitrail {

/// The shape of a tensor: up to 8 sizes, outermost first. Strides (in elements) are held in a Shape too. It is a value
/// type without heap memory.
class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const std::int64_t> sizes) {
    check(sizes.size() <= max_rank, "a tensor has at most {} dimensions, not {}", max_rank, sizes.size());
    for (const std::int64_t size : sizes) {
      sizes_[static_cast<std::size_t>(rank_++)] = size;
    }
  }

  int rank() const { return rank_; }
  /// The size of dimension `dim`; a negative `dim` counts from the end (-1 is the last). Error if there is no such
  /// dimension.
  std::int64_t operator[](int dim) const { return sizes_[static_cast<std::size_t>(wrap(dim))]; }
  std::int64_t& operator[](int dim) { return sizes_[static_cast<std::size_t>(wrap(dim))]; }
  const std::int64_t* begin() const { return sizes_.data(); }
  const std::int64_t* end() const { return sizes_.data() + rank_; }
  std::int64_t back() const { return (*this)[-1]; }

  std::int64_t numel() const;                             ///< product of all sizes; 1 for a scalar
  int wrap(int dim) const;                                ///< `dim` counted from the front; Error if it does not exist
  Shape with(int dim, std::int64_t size) const;           ///< this shape with another size of dimension `dim`
  Shape inserted(int position, std::int64_t size) const;  ///< this shape with a dimension inserted before `position`
  Shape removed(int dim) const;                           ///< this shape without dimension `dim`
  Shape contiguous_strides() const;                       ///< row-major strides, in elements

  bool operator==(const Shape& other) const;
  std::string str() const;  ///< "[2, 3, 4]"

 private:
  std::array<std::int64_t, max_rank> sizes_{};
  int rank_ = 0;
};

/// The shape to which two operands broadcast by NumPy's rule; Error if they do not.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace vitrail

template <>
struct fmt::formatter<vitrail::Shape> {  // not derived from another formatter, which would need the heavy fmt/format.h
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  auto format(const vitrail::Shape& shape, fmt::format_context& context) const {
    return std::ranges::copy(shape.str(), context.out()).out;
  }
};
