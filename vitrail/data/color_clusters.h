/// \file
/// Images as sequences of colours (Image GPT: Chen et al. 2020, section 3.1).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "vitrail/data/dataset.h"
#include "vitrail/io/image.h"

namespace vitrail::data {

/// The colours that stand for all others, as transformers' ImageGPTImageProcessor has them: a pixel becomes the number
/// of the one that is nearest. An image is brought to `size` × `size` pixels by Pillow's bilinear filter before.
struct ColorClusters {
  std::vector<std::array<float, 3>> centers;  ///< red, green and blue, each byte / 127.5 - 1
  std::int64_t size = 32;

  std::int64_t count() const { return std::ssize(centers); }
  /// The numbers of an image's pixels, row by row: size² of them.
  std::vector<std::int64_t> encode(const io::Image& image) const;
  /// The image of such numbers. Throws Error unless there are size² of them, each of a cluster.
  io::Image decode(std::span<const std::int64_t> ids) const;
};

/// Chooses `count` clusters for images of `size` × `size` pixels by k-means of pixels (Lloyd's algorithm, 20 rounds
/// from random pixels; at most 65,536 pixels are drawn from the images, by `seed`). Images
/// that cannot be read are passed over.
ColorClusters learn_clusters(const Dataset& images, std::int64_t count, std::int64_t size, std::uint64_t seed);

/// Reads `preprocessor_config.json` of a folder. Throws Error if it has no clusters, or prepares images in another way.
ColorClusters read_clusters(const std::filesystem::path& folder);
/// Writes the `preprocessor_config.json` that transformers' ImageGPTImageProcessor reads.
void write_clusters(const ColorClusters& clusters, const std::filesystem::path& folder);

}  // namespace vitrail::data
