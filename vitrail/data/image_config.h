/// \file
/// How a model's images are prepared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/data/image_processor.h"

namespace vitrail::data {

/// How a model's images are prepared: the fields of timm's pretrained_cfg.
struct ImageConfig {
  std::int64_t channels = 3;  ///< 3: RGB; 1: grayscale, as Pillow's `convert("L")`
  std::int64_t height = 224;
  std::int64_t width = 224;
  std::string interpolation = "bicubic";  ///< `--interpolation`: nearest, bilinear, bicubic, lanczos, box, hamming
  double crop_pct = 0.875;                ///< `--crop-pct`: the target's share of the resized image
  std::string crop_mode = "center";       ///< `--crop-mode`: center, squash, border
  // One number per channel. A single number is used for all channels; for a grayscale model, three are averaged.

  std::vector<double> mean = {0.5, 0.5, 0.5};
  std::vector<double> std = {0.5, 0.5, 0.5};
  /// How an image is brought to size in place of crop_pct and crop_mode, for a model in transformers' layout. Its
  /// result is scaled to height × width.
  std::optional<ImageProcessor> processor = std::nullopt;
};

/// Changes to an ImageConfig by timm's flags; what is not set stays.
struct ImageOverrides {
  std::optional<double> crop_pct;  ///< `--crop-pct`
  std::string crop_mode;           ///< `--crop-mode`
  std::string interpolation;       ///< `--interpolation`
  std::vector<double> mean;        ///< `--mean`: one number for all channels, or one each
  std::vector<double> std;         ///< `--std`
};
/// Applies `overrides` to `config`; a crop_pct or crop_mode replaces its processor. Throws Error, naming the flag, if
/// the number of means or deviations does not fit the channels.
void apply(const ImageOverrides& overrides, ImageConfig& config);

}  // namespace vitrail::data
