/// \file
/// How the image processors of Hugging Face's transformers bring an image to a model's size.
#pragma once

#include <cstdint>
#include <utility>

namespace vitrail::data {

/// The geometry of an image processor with transformers' Pillow backend: the image is resized as `resize` says, and of
/// the result the centre is taken, which begins at ⌊(resized - crop) / 2⌋; what lies outside of the image is black.
struct ImageProcessor {
  enum class Resize {
    none,         ///< the image keeps its size
    both,         ///< to height × width (`size` with "height" and "width")
    shorter_side  ///< the shorter side to `height`, which equals `width`, keeping the ratio ("shortest_edge")
  };
  Resize resize = Resize::both;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t crop_height = 0;  ///< the size of the result
  std::int64_t crop_width = 0;

  bool operator==(const ImageProcessor&) const = default;

  /// The processor for a result of another size, whose resized image grows in proportion. Throws Error unless all
  /// sizes are positive.
  ImageProcessor scaled_to(std::int64_t new_height, std::int64_t new_width) const;
  /// The width and height to which an image of width × height pixels is resized.
  std::pair<std::int64_t, std::int64_t> resized(std::int64_t image_width, std::int64_t image_height) const;
  /// Where the centre of `size` pixels begins in a row of `resized` ones; negative if there are fewer.
  static std::int64_t center_offset(std::int64_t resized, std::int64_t size);
};

}  // namespace vitrail::data
