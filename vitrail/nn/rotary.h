// Angles for rotary position embedding (RoFormer: Su et al. 2024): what ops::rotation() takes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vitrail/nn/parameters.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/rotary.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// Positions n = 0 … length - 1 of a sequence: angles [length, head_dim / 2] f32, n / temperature^(2 i / head_dim)
// (RoFormer, section 3.2). Error unless head_dim is even.
Tensor sequence_angles(std::int64_t length, std::int64_t head_dim, double temperature = 10000);

struct AxialAngles {
  double temperature = 10000;
  double offset = 0;           // added to rows and columns
  bool columns_first = false;  // the first half belongs to the columns ('xy') instead of the rows ('ij')
  std::optional<Size2> reference = std::nullopt;  // positions are stretched so that the grid covers one of this size
};

// Positions on a grid: half of the pairs turn with the row, half with the column (axial RoPE: Heo et al. 2024,
// as timm's RotaryEmbeddingCat): angles [rows · columns, head_dim / 2] f32, position / temperature^(4 i / head_dim), i
// < head_dim / 4, in either half. Error unless head_dim is divisible by 4.
Tensor axial_angles(const Size2& grid, std::int64_t head_dim, const AxialAngles& options = {});

// The same with frequencies that are learned for each block and head, and mix both axes (RoPE-Mixed: Heo et al. 2024,
// as timm's RotaryEmbeddingMixed): θ = x f_x + y f_y for a patch at (x, y) = (column, row), or (row, column)
// unless `columns_first`. Parameter `freqs` [2, depth, H, head_dim / 2], at first directions of a random turn for each
// block and head with lengths temperature^(-4 i / head_dim).
struct MixedAngles {
  MixedAngles(const Scope& scope, std::int64_t depth, std::int64_t num_heads, std::int64_t head_dim,
              double temperature = 10, bool columns_first = true);
  Tensor operator()(const Size2& grid) const;  // [depth, H, rows · columns, head_dim / 2] f32

  bool columns_first;
  Tensor freqs;
};

// Rotary positions of a model's patches: in one dimension, row by row, or on their grid. The tokens in front of them
// are not turned.
class RotaryPositions {
 public:
  enum class Kind { sequence, axial, mixed };
  struct Config {
    Kind kind = Kind::axial;
    std::int64_t depth = 0;  // of the model
    std::int64_t num_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t prefix = 0;  // tokens in front
    AxialAngles axial = {};   // of which a sequence takes the temperature, and mixed ones that and `columns_first`
    ops::RotaryPairs pairs = ops::RotaryPairs::adjacent;
  };
  // Mixed ones have a parameter `freqs`, the others none.
  RotaryPositions(const Scope& scope, const Config& config);
  // How block i turns the queries and keys of patches on `grid`: the only rotation, or the i-th.
  std::vector<ops::Rotation> operator()(const Size2& grid) const;

 private:
  Config config_;
  std::optional<MixedAngles> mixed_;
};

}  // namespace vitrail::nn
