// Absolute positions: a vector for each place, which is added to the token that lies there.
#pragma once

#include <cstdint>
#include <optional>

#include "vitrail/nn/mlp.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// learned          a parameter for each place (ViT: Dosovitskiy et al. 2021)
// sincos1d         sine_positions() of the patches' numbers, row by row (Vaswani et al. 2017)
// sincos           sincos_positions() of row and column (MAE: He et al. 2022)
// sincos_gsd       the same in metres on the ground (Scale-MAE: Reed et al. 2023)
// fourier          fourier_positions() (Tancik et al. 2020)
// fourier_learned  LearnedFourier (Li et al. 2021)
enum class AbsoluteKind { none, learned, sincos1d, sincos, sincos_gsd, fourier, fourier_learned };

// Whether the vectors follow from the place alone: a table that is not trained.
bool is_fixed(AbsoluteKind kind);

// Sines and cosines of a number (Vaswani et al. 2017, section 3.5): [length, D] f32, at n in 2i sin(n ω_i) and in 2i +
// 1 cos(n ω_i) with ω_i = 10000^(-2 i / D). Error unless D is even.
Tensor sine_positions(std::int64_t length, std::int64_t dim);

// Fourier features of the place (Tancik et al. 2020): [rows · columns, D] f32, [cos 2πBv, sin 2πBv] for v = (row
// / rows, column / columns) in [0, 1)², B [D/2, 2] drawn from N(0, sigma²), the same in every model. The inner product
// of two places then is about D/2 e^(-2 (π sigma distance)²). Error unless D is even.
Tensor fourier_positions(const Size2& grid, std::int64_t dim, double sigma);

// Learnable Fourier features (Li et al. 2021): with v as above,
//   r = [cos vWᵀ, sin vWᵀ] / √D,   position = fc2(gelu(fc1(r))).
// Parameters `frequencies` (W) [D/2, 2], at first N(0, (2π sigma)²), `mlp.fc1` and `mlp.fc2` [D, D].
struct LearnedFourier {
  LearnedFourier(const Scope& scope, std::int64_t dim, double sigma);
  Tensor operator()(const Size2& grid, Pass& pass) const;  // [rows · columns, D] f32

  Tensor frequencies;
  Mlp mlp;
};

struct AbsoluteConfig {
  AbsoluteKind kind = AbsoluteKind::none;
  Size2 grid = {0, 0};      // for which a table is held
  std::int64_t dim = 0;     // D
  std::int64_t prefix = 0;  // tokens in front that have a vector too: learned ones, or else zeros
  double gsd = 1;           // ground sample distance: how many metres on the ground lie between two patches
  double sigma = 1;         // of Fourier features: how fine they are, in periods over the picture
};

// The table of a fixed kind for any grid: [1, prefix + rows · columns, D] f32.
Tensor fixed_positions(const AbsoluteConfig& config, const Size2& grid);

// Any of these. A table is the parameter, or, fixed, the buffer `pos_embed` [1, prefix + rows · columns, D];
// fourier_learned has its parameters in `pos_embed`.
class AbsolutePositions {
 public:
  AbsolutePositions(const Scope& root, const AbsoluteConfig& config);
  // [1, prefix + rows · columns, D] f32 for patches on `grid`: the table, resampled if it was learned for another grid
  // (resample_positions), else made anew; undefined if there are none.
  Tensor operator()(const Size2& grid, Pass& pass) const;
  // A checkpoint's `pos_embed` of the grid `from` for this one's grid.
  Tensor adapt(const Tensor& value, const Size2& from) const;
  std::int64_t prefix() const { return config_.prefix; }

 private:
  AbsoluteConfig config_;
  Tensor table_;
  std::optional<LearnedFourier> fourier_;
};

}  // namespace vitrail::nn
