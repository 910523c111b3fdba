/// \file
/// A transformer over the map of a convolutional network.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/nn/attention/block.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/pass.h"

namespace vitrail::models {

/// A map of features becomes tokens of width `dim`, which are told their places and see each other, as DETR's encoder
/// does (Carion et al. 2020), with pre-norm blocks:
///
/// ```text
/// t = W f + b + sincos(row, column),   t = block(t) for each layer,   t = norm(t)
/// ```
///
/// Parameters: `projection.{weight,bias}`, `blocks.{i}` with timm's names, `norm.{weight,bias}`. Matrices start from
/// Glorot's uniform distribution.
class MapEncoder {
 public:
  /// `features` is the width of the map; each layer has heads of width 64 and an Mlp of twice the width.
  MapEncoder(const nn::Scope& scope, std::int64_t features, std::int64_t dim, std::int64_t layers);

  /// The tokens [B, N, dim] of features [B, N, features] in the dtype of the pass: `prefix` ones, which have no place,
  /// and those of the grid, by rows.
  Tensor operator()(const Tensor& features, const nn::Size2& grid, std::int64_t prefix, nn::Pass& pass) const;

 private:
  nn::Linear projection_;
  std::vector<nn::Block> blocks_;
  nn::Norm norm_;
};

}  // namespace vitrail::models
