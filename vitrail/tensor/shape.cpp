#include "vitrail/tensor/shape.h"

#include <algorithm>

namespace vitrail {

std::int64_t Shape::numel() const {
  std::int64_t product = 1;
  for (const std::int64_t size : *this) {
    product *= size;
  }
  return product;
}

int Shape::wrap(int dim) const {
  const int wrapped = dim < 0 ? dim + rank_ : dim;
  if (wrapped < 0 || wrapped >= rank_) [[unlikely]] {  // not check(), which would make the text at every call
    fail("dimension {} of the shape {} does not exist", dim, str());
  }
  return wrapped;
}

Shape Shape::with(int dim, std::int64_t size) const {
  Shape result = *this;
  result[dim] = size;
  return result;
}

Shape Shape::inserted(int position, std::int64_t size) const {
  check(rank_ < max_rank, "a tensor has at most {} dimensions", max_rank);
  const int at = position < 0 ? position + rank_ + 1 : position;
  check(at >= 0 && at <= rank_, "a dimension cannot be put at {} of the shape {}", position, *this);
  Shape result = *this;
  ++result.rank_;
  for (int i = rank_; i > at; --i) {
    result[i] = result[i - 1];
  }
  result[at] = size;
  return result;
}

Shape Shape::removed(int dim) const {
  Shape result;
  for (int i = 0, gone = wrap(dim); i < rank_; ++i) {
    if (i != gone) {
      result.sizes_[static_cast<std::size_t>(result.rank_++)] = (*this)[i];
    }
  }
  return result;
}

Shape Shape::contiguous_strides() const {
  Shape strides = *this;
  std::int64_t step = 1;
  for (int i = rank_ - 1; i >= 0; --i) {
    strides[i] = step;
    step *= (*this)[i];
  }
  return strides;
}

bool Shape::operator==(const Shape& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

std::string Shape::str() const {
  std::string text = "[";
  for (const std::int64_t size : *this) {
    text += fmt::format("{}{}", text.size() > 1 ? ", " : "", size);
  }
  return text + "]";
}

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  for (int i = 1; i <= shorter.rank(); ++i) {
    const std::int64_t x = longer[-i];
    const std::int64_t y = shorter[-i];
    check(x == y || x == 1 || y == 1, "the shapes {} and {} cannot be broadcast together", a, b);
    result[-i] = x == 1 ? y : x;
  }
  return result;
}

}  // namespace vitrail
