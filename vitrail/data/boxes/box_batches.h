/// \file
/// Batches of images with boxes, of whatever sizes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "vitrail/data/boxes/boxed_images.h"
#include "vitrail/data/loader.h"
#include "vitrail/data/prefetch.h"
#include "vitrail/io/image.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::data {

/// How an image with boxes becomes a detector's input: facebookresearch/detr's transforms.
struct BoxTransform {
  std::int64_t shortest_edge = 800;
  std::int64_t longest_edge = 1333;
  std::vector<float> mean = {0.485F, 0.456F, 0.406F};
  std::vector<float> std = {0.229F, 0.224F, 0.225F};
  // In training:

  double hflip = 0;  ///< the probability that an image is flipped
  /// The shorter side becomes one of 0.6, 0.64 … 1 of shortest_edge; half of the images are cropped at random before,
  /// to 0.48 … 0.75 of it, from a shorter side of 0.5, 0.625 or 0.75 of it.
  bool random_resize = false;
};

/// An image on its way, with boxes in its pixels.
struct BoxedImage {
  io::Image image;
  std::vector<BoxedObject> objects;
};

/// The width and height that an image gets whose shorter side becomes `shortest`, unless the longer one would then be
/// more than `longest`: transformers' get_size_with_aspect_ratio.
std::array<std::int64_t, 2> detector_size(std::int64_t width, std::int64_t height, std::int64_t shortest,
                                          std::int64_t longest);

/// The image at the size that `how` says, flipped, cropped and resized by what depends on (seed, epoch, index) alone.
/// Boxes follow it; what a crop leaves no area of is dropped. Pillow's bilinear filter.
BoxedImage transformed(const io::Image& image, const std::vector<BoxedObject>& objects, const BoxTransform& how,
                       std::uint64_t seed = 0, std::int64_t epoch = 0, std::int64_t index = 0);

/// Images of a batch, padded with zeros at the right and below to the size of the largest.
struct BoxBatch {
  Tensor x;           ///< [B, C, H, W] f32, normalized
  Tensor pixel_mask;  ///< bool [B, H, W], true where a pixel is the image's; undefined: everywhere
  std::vector<std::vector<BoxedObject>> objects;   ///< of each image, their boxes relative to its size without padding
  std::vector<std::array<std::int64_t, 2>> sizes;  ///< width and height of the images as they were
  std::vector<std::int64_t> indices;               ///< in the data set; fewer than planned if some were broken
  std::int64_t epoch = 0;
  std::int64_t number = 0;

  std::vector<BoxedImage> samples;  ///< on their way; empty in a batch that is done
};

/// Puts images into a batch: normalizes and pads `batch.samples`.
void stack_samples(BoxBatch& batch, const BoxTransform& how);
/// A batch of one image without boxes, as detection takes it.
BoxBatch batch_of_one(const io::Image& image, const BoxTransform& how);

/// Makes batches of the images of a data set, which must outlive it, in the order and memory that `options` ask for.
using BoxLoader = Prefetch<BoxBatch>;
std::unique_ptr<BoxLoader> box_loader(const BoxedImages& data, const BoxTransform& how, const LoaderOptions& options);

}  // namespace vitrail::data
