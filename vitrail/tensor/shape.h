// Sizes of a tensor's dimensions, held in place.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "vitrail/tensor/error.h"

namespace vitrail {

// Up to 8 sizes, outermost first. Also used for strides (in elements). A value type without heap memory.
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
  // The size of dimension `dim`; negative counts from the end (-1 is the last). Error if there is no such dimension.
  std::int64_t operator[](int dim) const { return sizes_[static_cast<std::size_t>(wrap(dim))]; }
  std::int64_t& operator[](int dim) { return sizes_[static_cast<std::size_t>(wrap(dim))]; }
  const std::int64_t* begin() const { return sizes_.data(); }
  const std::int64_t* end() const { return sizes_.data() + rank_; }
  std::int64_t back() const { return (*this)[-1]; }

  std::int64_t numel() const;                             // product of all sizes; 1 for a scalar
  int wrap(int dim) const;                                // a dimension counted from the front
  Shape with(int dim, std::int64_t size) const;           // the same with one size changed
  Shape inserted(int position, std::int64_t size) const;  // the same with a dimension put before `position`
  Shape removed(int dim) const;                           // the same without one dimension
  Shape contiguous_strides() const;                       // row-major strides, in elements

  bool operator==(const Shape& other) const;
  std::string str() const;  // "[2, 3, 4]"

 private:
  std::array<std::int64_t, max_rank> sizes_{};
  int rank_ = 0;
};

// The shape that two operands take together under NumPy's rule; Error if they do not fit.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace vitrail

template <>
struct fmt::formatter<vitrail::Shape> {  // not by inheritance, which would need the heavy fmt/format.h
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  auto format(const vitrail::Shape& shape, fmt::format_context& context) const {
    return std::ranges::copy(shape.str(), context.out()).out;
  }
};
