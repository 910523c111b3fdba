/// \file
/// Self-attention over the pixels of feature maps in convolutional networks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vitrail/nn/images/conv.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/nn/positions/token_grid.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

/// Records the weights [B, H, N, N] between the N pixels of a feature map of `size` as the attention `name`. The pass
/// must have a recorder.
void record_pixels(const Pass& pass, const std::string& name, const Tensor& weights, const Size2& size);

/// A non-local block (Wang et al. 2018), x [B, C, H, W] → the same shape. For the pixels i and j of N,
///
/// ```text
/// z_i = x_i + norm(W_z y_i),   y_i = 1 / C(x) Σ_j f(x_i, x_j) g(x_j)           (eq. 1 and 6)
/// embedded Gaussian   f = e^(s θ(x_i)ᵀ φ(x_j)),         C(x) = Σ_j f           (eq. 3)
/// Gaussian            f = e^(x_iᵀ x_j),                 C(x) = Σ_j f           (eq. 2)
/// dot product         f = θ(x_i)ᵀ φ(x_j),               C(x) = N               (eq. 4)
/// concatenation       f = relu(w_fᵀ [θ(x_i), φ(x_j)]),  C(x) = N               (eq. 5)
/// ```
///
/// Both Gaussian kinds are a softmax; the embedded one has s = 1 / √C for C channels, as timm's NonLocalAttn, where the
/// paper has 1. The parameters are those of timm's NonLocalAttn: the 1x1 convolutions `t` (θ), `p` (φ), `g`
/// [inner, C, 1, 1] and `z` [C, inner, 1, 1] with biases, and the batch norm `norm`. A Gaussian block has no `t` and
/// `p`; a concatenation block has `f.weight` [1, 2 inner].
struct NonLocal {
  enum class Kind { embedded_gaussian, gaussian, dot_product, concatenation };
  static Kind kind_named(std::string_view name);  ///< "embedded_gaussian" …; Error lists the names

  NonLocal(const Scope& scope, std::int64_t channels, std::int64_t inner, Kind kind);
  Tensor operator()(const Tensor& x, const Pass& pass) const;
  /// Counts the convolutions, the norm and the products with N x N weights.
  std::int64_t flops(const Size2& size) const;

  Kind kind;
  std::string name;  ///< its path, under which a recorder gets the map
  std::optional<Conv2d> t;
  std::optional<Conv2d> p;
  Conv2d g;
  Conv2d z;
  BatchNorm2d norm;
  Tensor f;
};

/// Self-attention of SAGAN (Zhang et al. 2019, eq. 2 to 4), x [B, C, H, W] → the same shape:
///
/// ```text
/// y_j = x_j + γ v(Σ_i β_ji h(x_i)),   β_j = softmax_i(f(x_i)ᵀ g(x_j))
/// ```
///
/// Parameters: the 1x1 convolutions `f`, `g`, `h` [C / 8, C, 1, 1] and `v` [C, C / 8, 1, 1] without biases; `gamma`
/// [1], at first 0.
struct SaganAttention {
  SaganAttention(const Scope& scope, std::int64_t channels);
  Tensor operator()(const Tensor& x, const Pass& pass) const;
  std::int64_t flops(const Size2& size) const;

  std::string name;
  Conv2d f;
  Conv2d g;
  Conv2d h;
  Conv2d v;
  Tensor gamma;
};

}  // namespace vitrail::nn
