/// \file
/// Boxes in images.
#pragma once

#include <algorithm>

namespace vitrail::data {

/// A rectangle by two corners, x to the right and y down, in pixels or relative to the image's size.
struct Box {
  double x0 = 0;
  double y0 = 0;
  double x1 = 0;
  double y1 = 0;

  double width() const { return x1 - x0; }
  double height() const { return y1 - y0; }
  double area() const { return width() * height(); }
  bool empty() const { return !(x1 > x0 && y1 > y0); }
  Box scaled(double x, double y) const { return {x0 * x, y0 * y, x1 * x, y1 * y}; }
};

/// The box around a centre.
inline Box centred_box(double cx, double cy, double width, double height) {
  return {cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2};
}

inline double intersection(const Box& a, const Box& b) {
  const double width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  const double height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  return width > 0 && height > 0 ? width * height : 0;
}

/// Intersection over union.
inline double iou(const Box& a, const Box& b) {
  const double both = intersection(a, b);
  return both / (a.area() + b.area() - both);
}

/// The intersection over union, less the share of the smallest box around both that neither covers (Rezatofighi et al.
/// 2019): -1 … 1.
inline double generalized_iou(const Box& a, const Box& b) {
  const double both = intersection(a, b);
  const double covered = a.area() + b.area() - both;
  const double hull = std::max(0.0, std::max(a.x1, b.x1) - std::min(a.x0, b.x0)) *
                      std::max(0.0, std::max(a.y1, b.y1) - std::min(a.y0, b.y0));
  return both / covered - (hull - covered) / hull;
}

}  // namespace vitrail::data
