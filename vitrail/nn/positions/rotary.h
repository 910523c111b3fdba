/// \file
/// Angles for rotary position embedding (RoFormer: Su et al. 2024), which ops::rotation() takes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vitrail/nn/parameters.h"
#include "vitrail/nn/positions/token_grid.h"
#include "vitrail/ops/attention/rotary.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// The angles of the positions n = 0 … length - 1 of a sequence: n / temperature^(2 i / head_dim),
/// [length, head_dim / 2] f32 (RoFormer, section 3.2). Throws Error unless head_dim is even.
Tensor sequence_angles(std::int64_t length, std::int64_t head_dim, double temperature = 10000);

/// The options of axial_angles().
struct AxialAngles {
  double temperature = 10000;
  double offset = 0;           ///< added to rows and columns
  bool columns_first = false;  ///< the first half belongs to the columns ('xy') instead of the rows ('ij')
  std::optional<Size2> reference = std::nullopt;  ///< if given, the grid is stretched to cover one of this size
  /// The positions are the patches' centers, on a grid of any size from -1 to 1, and a frequency counts whole turns in
  /// place of radians (DINOv3: Siméoni et al. 2025; timm's RotaryEmbeddingDinoV3).
  bool centered = false;
};

/// The angles of the positions on a grid, half of them by the row and half by the column (axial RoPE: Heo et al. 2024;
/// timm's RotaryEmbeddingCat): position / temperature^(4 i / head_dim), i < head_dim / 4, in either half,
/// [rows · columns, head_dim / 2] f32. Throws Error unless head_dim is divisible by 4.
Tensor axial_angles(const Size2& grid, std::int64_t head_dim, const AxialAngles& options = {});

/// The angles of the positions on a grid, with frequencies that are learned for each block and head and mix both axes
/// (RoPE-Mixed: Heo et al. 2024; timm's RotaryEmbeddingMixed): θ = x f_x + y f_y for a patch at (x, y) = (column, row),
/// or (row, column) unless `columns_first`. Parameter `freqs` [2, depth, H, head_dim / 2], at first directions that are
/// rotated by a random angle for each block and head, with lengths temperature^(-4 i / head_dim).
struct MixedAngles {
  MixedAngles(const Scope& scope, std::int64_t depth, std::int64_t num_heads, std::int64_t head_dim,
              double temperature = 10, bool columns_first = true);
  Tensor operator()(const Size2& grid) const;  ///< [depth, H, rows · columns, head_dim / 2] f32

  bool columns_first;
  Tensor freqs;
};

/// The rotary positions of a model's patches: in one dimension, row by row, or on their grid. The prefix tokens are not
/// rotated.
class RotaryPositions {
 public:
  enum class Kind { sequence, axial, mixed };
  struct Config {
    Kind kind = Kind::axial;
    std::int64_t depth = 0;  ///< number of blocks of the model
    std::int64_t num_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t prefix = 0;  ///< tokens in front of the patches
    AxialAngles axial = {};   ///< sequence takes the temperature of it, mixed the temperature and `columns_first`
    ops::RotaryPairs pairs = ops::RotaryPairs::adjacent;
  };
  /// Positions of the kind mixed have a parameter `freqs`, the others none.
  RotaryPositions(const Scope& scope, const Config& config);
  /// The rotations of queries and keys for patches on `grid`: one for each block if the kind is mixed, otherwise a
  /// single one for all blocks.
  std::vector<ops::Rotation> operator()(const Size2& grid) const;

 private:
  Config config_;
  std::optional<MixedAngles> mixed_;
};

}  // namespace vitrail::nn
