/// \file
/// `vitrail attention --method dino`: the class token's attention as a segmentation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vitrail/cli/flags.h"

namespace vitrail::cli {

/// What draw_class_attention() is told.
struct ClassAttentionFlags {
  ModelFlags model;  ///< whose img_size is the shorter side to which the image is brought
  std::string image;
  std::string output;      ///< folder for the drawings
  std::string raw;         ///< file for maps and masks; empty: none
  double threshold = 0.6;  ///< share of the mass that a mask keeps
  std::optional<std::int64_t> layer;
  DType dtype = DType::f32;
};

/// What measure_class_attention() is told: as ClassAttentionFlags.
struct AttentionScoreFlags {
  ModelFlags model;
  std::string images;  ///< a folder of images
  std::string masks;   ///< a folder of images of the same names: what is not black is foreground
  double threshold = 0.6;
  std::optional<std::int64_t> layer;
  DType dtype = DType::f32;
};

/// Prints how well the masks of the heads fit the foreground of images.
void measure_class_attention(const AttentionScoreFlags& flags);

/// Draws, for each head of the last layer or another, where the class token looks in a whole image, at the image's own
/// size, and the places that hold most of its attention.
void draw_class_attention(const ClassAttentionFlags& flags);

}  // namespace vitrail::cli
