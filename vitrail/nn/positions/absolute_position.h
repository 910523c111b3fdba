/// \file
/// Absolute positions: for each place a vector, which is added to the token that lies there.
#pragma once

#include <cstdint>
#include <optional>

#include "vitrail/nn/mlp.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/nn/positions/position.h"
#include "vitrail/nn/positions/token_grid.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// The kinds of absolute positions:
/// - learned: a parameter for each place (ViT: Dosovitskiy et al. 2021)
/// - sincos1d: sine_positions() of the patches' indices, row by row (Vaswani et al. 2017)
/// - sincos: sincos_positions() of row and column (MAE: He et al. 2022)
/// - sincos_gsd: sincos_positions() of row and column in metres on the ground (Scale-MAE: Reed et al. 2023)
/// - fourier: fourier_positions() (Tancik et al. 2020)
/// - fourier_learned: LearnedFourier (Li et al. 2021)
enum class AbsoluteKind { none, learned, sincos1d, sincos, sincos_gsd, fourier, fourier_learned };

/// Whether the vectors follow from the place alone, so that their table is not trained.
bool is_fixed(AbsoluteKind kind);

/// Sine-cosine positions in one dimension (Vaswani et al. 2017, section 3.5): [length, D] f32. Row n has sin(n ω_i) in
/// column 2i and cos(n ω_i) in column 2i + 1, with ω_i = 10000^(-2 i / D). Throws Error unless D is even.
Tensor sine_positions(std::int64_t length, std::int64_t dim);

/// Fourier features of the places on a grid (Tancik et al. 2020): [rows · columns, D] f32 with a row
/// [cos 2πBv, sin 2πBv] for each v = (row / rows, column / columns) in [0, 1)². B [D/2, 2] is drawn from N(0, sigma²),
/// the same in every model. The inner product of two places is then about D/2 e^(-2 (π sigma distance)²). Throws Error
/// unless D is even.
Tensor fourier_positions(const Size2& grid, std::int64_t dim, double sigma);

/// Learnable Fourier features (Li et al. 2021). For the place v = (row / rows, column / columns) of a patch,
///
/// ```text
/// r = [cos vWᵀ, sin vWᵀ] / √D,   position = fc2(gelu(fc1(r))).
/// ```
///
/// Parameters `frequencies` (W) [D/2, 2], at first N(0, (2π sigma)²), and `mlp.fc1` and `mlp.fc2` [D, D]. Throws Error
/// unless D is even.
struct LearnedFourier {
  LearnedFourier(const Scope& scope, std::int64_t dim, double sigma);
  Tensor operator()(const Size2& grid, Pass& pass) const;  ///< [rows · columns, D] f32

  Tensor frequencies;
  Mlp mlp;
};

/// Which absolute positions a model has.
struct AbsoluteConfig {
  AbsoluteKind kind = AbsoluteKind::none;
  Size2 grid = {0, 0};                           ///< the grid that a table is held for
  std::int64_t dim = 0;                          ///< D
  std::int64_t prefix = 0;                       ///< tokens in front that have a vector too: learned or else zeros
  double gsd = 1;                                ///< ground sample distance: metres on the ground between two patches
  double sigma = 1;                              ///< of Fourier features: how fine they are, in periods over the image
  PositionResize resize = PositionResize::timm;  ///< how learned ones are resampled for another grid
};

/// The table of a fixed kind for `grid`, which need not be the config's: [1, prefix + rows · columns, D] f32. Throws
/// Error if the kind is not fixed.
Tensor fixed_positions(const AbsoluteConfig& config, const Size2& grid);

/// Absolute positions of any kind. `pos_embed` [1, prefix + rows · columns, D] is the table: a parameter if it is
/// learned, a buffer if it is fixed. fourier_learned has its parameters below `pos_embed`.
class AbsolutePositions {
 public:
  AbsolutePositions(const Scope& root, const AbsoluteConfig& config);
  /// The vectors [1, prefix + rows · columns, D] f32 for patches on `grid`. For another grid than the config's, a
  /// learned table is resampled (resample_positions()) and a fixed one is computed again. Undefined if there are no
  /// positions.
  Tensor operator()(const Size2& grid, Pass& pass) const;
  /// Converts a checkpoint's `pos_embed` for the grid `from` to the config's grid.
  Tensor adapt(const Tensor& value, const Size2& from) const;
  std::int64_t prefix() const { return config_.prefix; }

 private:
  AbsoluteConfig config_;
  Tensor table_;
  std::optional<LearnedFourier> fourier_;
};

}  // namespace vitrail::nn
