/// \file
/// Ways through the latent space of an autoencoder, and images of what lies on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/io/image.h"
#include "vitrail/train/pretrain/autoencoder_network.h"

namespace vitrail::train {

/// The latent vectors [N, latent_dim] f32 of images x [1, C, H, W] each, as the model takes them.
Tensor latent_vectors(const Autoencoder& model, const std::vector<Tensor>& inputs, DType dtype = DType::f32);

/// A direction in the latent space that has a meaning: there is more of it one way, and less the other.
struct LatentDirection {
  Tensor vector;      ///< [latent_dim] f32, from the mean of b to the mean of a
  double length = 0;  ///< of the vector
  double told_apart =
      0;  ///< share of all vectors that lie, along it, on their own side of the middle between the means
};
/// The direction from b [M, D] to a [N, D]: the difference of their means.
LatentDirection latent_direction(const Tensor& a, const Tensor& b);

/// An image with a row for each of `inputs`: itself, and what is decoded of z + t · direction for its latent vector z
/// and each t of `amounts`. `names` stand in front of the rows.
io::Image direction_sheet(const Autoencoder& model, const std::vector<Tensor>& inputs,
                          const std::vector<std::string>& names, const Tensor& direction,
                          const std::vector<double>& amounts, DType dtype = DType::f32);

/// An image of `steps` points on the straight line from the latent vector of one image to that of another, decoded,
/// between the two images themselves; below it the same of their pixels, which only fade into each other.
io::Image between_sheet(const Autoencoder& model, const Tensor& from, const Tensor& to, std::int64_t steps,
                        DType dtype = DType::f32);

}  // namespace vitrail::train
