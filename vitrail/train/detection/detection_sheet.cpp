#include "vitrail/train/detection/detection_sheet.h"

#include <algorithm>

#include <fmt/format.h>

#include "vitrail/explain/box_overlay.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/explain/overlay.h"
#include "vitrail/train/detection/detections.h"

namespace vitrail::train {
namespace {

constexpr std::int64_t images_a_row = 4;

}  // namespace

io::Image with_detections(const io::Image& image, const std::vector<FoundObject>& found,
                          const std::vector<std::string>& labels, double threshold) {
  io::Image shown = explain::large_enough(image);
  const double zoom = static_cast<double>(shown.width) / static_cast<double>(image.width);
  std::vector<explain::NamedBox> boxes;
  for (const FoundObject& object : found) {
    if (object.score >= threshold) {
      boxes.push_back({object.box.scaled(zoom, zoom),
                       fmt::format("{} {:.2f}", labels[static_cast<std::size_t>(object.label)], object.score),
                       explain::class_color(object.label)});
    }
  }
  explain::draw_boxes(shown, boxes);
  return shown;
}

io::Image detection_sheet(const models::Detector& detector, const data::BoxedImages& data, bool skip_broken,
                          std::int64_t most, DType dtype) {
  std::vector<io::Image> images;
  data::for_spread_images(*data.images, most, skip_broken,
                          [&](std::int64_t /*index*/, io::Image image) { images.push_back(std::move(image)); });
  if (images.empty()) {
    return {};
  }
  const std::vector<std::vector<FoundObject>> found = detect(detector, images, dtype);
  std::int64_t width = 0;
  std::int64_t height = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    images[i] = with_detections(images[i], found[i], detector.labels);
    width = std::max(width, images[i].width);
    height = std::max(height, images[i].height);
  }
  std::vector<std::vector<io::Image>> rows;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (static_cast<std::int64_t>(i) % images_a_row == 0) {
      rows.emplace_back();
    }
    io::Image even = explain::white_image(width, height);
    explain::paste(even, images[i], 0, 0);
    rows.back().push_back(std::move(even));
  }
  return explain::sheet(rows);
}

}  // namespace vitrail::train
