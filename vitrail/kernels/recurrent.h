/// \file
/// Recurrent cells: what a step computes besides its matrix products. A step works on some rows, one a sequence; each
/// row has `hidden` units.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

/// The cells whose state enters a step by one product. With x₀, x₁ … the parts of the product of the input, u₀, u₁ …
/// those of the product of the state h (biases included), and aₖ = xₖ + uₖ:
///
/// ```text
/// rnn_tanh  h' = tanh(a₀)                                                               (Elman 1990)
/// rnn_relu  h' = max(0, a₀)
/// lstm      i = σ(a₀), f = σ(a₁), g = tanh(a₂), o = σ(a₃)     (Hochreiter & Schmidhuber 1997, Gers et al. 2000;
///           c' = f c + i g,  h' = o tanh(c')                                             torch's order of the parts)
/// gru       r = σ(a₀), z = σ(a₁), n = tanh(x₂ + r u₂)           (torch's, which resets after the product: Cho et al.
///           h' = (1 - z) n + z h                                           2014 reset before it, see ResetStep)
/// nas       l = σ(a₀), relu(a₁), σ(a₂), relu(x₃ u₃), tanh(a₄), σ(a₅), tanh(a₆), σ(a₇)  (Zoph & Le 2017, as the
///           m = tanh(l₀ l₁), tanh(l₂ + l₃), tanh(l₄ l₅), σ(l₆ + l₇)                      NASCell of TensorFlow Addons)
///           c' = tanh(m₀ + c) m₁,  h' = tanh(c' tanh(m₂ + m₃))
/// ```
enum class Cell : std::uint8_t { rnn_tanh, rnn_relu, lstm, gru, nas };

/// What the kernels must know about a cell.
struct CellTraits {
  std::int64_t gates;  ///< the parts of its products
  std::int64_t kept;   ///< numbers a unit that backward needs besides the states
  bool memory;         ///< whether it has a memory c besides its state h
  std::int64_t apart;  ///< the only k for which the gradients of xₖ and uₖ differ; -1: there is none
};
/// The traits of `cell`.
CellTraits traits_of(Cell cell);

/// One step of a cell; row r of each operand lies behind row r - 1. `dtype` is f32 or bf16, what it computes in is f32.
struct CellStep {
  Cell cell;
  DType dtype;
  std::int64_t rows, hidden;
  const void* x;   ///< [rows, gates · hidden] of `dtype`
  const float* u;  ///< [rows, gates · hidden]
  float* state;    ///< [rows, hidden]: the memory c or, of a gru, h, before and after the step; else null
  void* kept;      ///< [rows, kept · hidden] of `dtype`, for backward; or null
  void* memory;    ///< [rows, hidden] of `dtype`: c' for backward; or null
  void* h;         ///< [rows, hidden] of `dtype`: h'
};
void cell_forward(const CellStep& step);

/// The gradients of a step. That of h' is dy + dh.
struct CellGradient {
  Cell cell;
  DType dtype;
  std::int64_t rows, hidden;
  const void* kept;           ///< as cell_forward() has left it
  const void* memory;         ///< c', of a cell with a memory
  const void* memory_before;  ///< c, likewise
  const void* h;              ///< h', of an rnn
  const void* h_before;       ///< h, of a gru
  const void* dy;             ///< [rows, hidden] of `dtype`, or null
  const float* dh;            ///< [rows, hidden]
  float* dstate;              ///< [rows, hidden]: dc' and then dc; of a gru, a further part of that of h' and then of h
  void* dproduct;  ///< [rows, gates · hidden] of `dtype`: the gradients of u; may be `kept` if it is as wide
  void* dx_apart;  ///< [rows, hidden] of `dtype`: that of xₖ for the traits' `apart`, if there is one; the
                   ///< other gradients of x are those of u
};
void cell_backward(const CellGradient& gradient);

/// A step of the cells that reset the state before a product, in two parts, with one product of the state before each:
///
/// ```text
/// r = σ(x_r + u_r),  z = σ(x_z + u_z),  s = r h       (z = σ(x_z) if u_z is null)
/// n = tanh(x_n + u_n)                                 u_n is a product of s
/// h' = (1 - z) n + z h                                the GRU of Cho et al. 2014
/// h' = z n + (1 - z) h                                if `z_takes_new`: MUT1 to MUT3 of Jozefowicz et al. 2015
/// ```
///
/// All are [rows, hidden]; void pointers are of `dtype`.
struct ResetStep {
  DType dtype;
  std::int64_t rows, hidden;
  bool z_takes_new;
  const void *x_r, *x_z, *x_n;
  const float *u_r, *u_z, *u_n;
  float* state;         ///< h, and h' after the second part
  void *r, *z, *s, *n;  ///< results of the two parts, for backward too
  void* h;              ///< h'
};
void reset_forward_gates(const ResetStep& step);  ///< r, z and s
void reset_forward_state(const ResetStep& step);  ///< n and h'

/// The gradients of such a step, in three parts with the products between them: ds = dn U_n before the second, dh_r =
/// dr U_r and dh_z = dz U_z before the third.
struct ResetGradient {
  DType dtype;
  std::int64_t rows, hidden;
  bool z_takes_new;
  bool z_of_tanh;  ///< whether u_z is a product of tanh(h) rather than of h
  const void *r, *z, *n;
  const void* h_before;
  const void* dy;                 ///< or null
  const float *ds, *dh_r, *dh_z;  ///< dh_z is null if u_z is
  float* dstate;                  ///< the gradient of h' without dy, and that of h after the third part
  void *dr, *dz, *dn;             ///< the gradients of x_r, x_z and x_n
};
void reset_backward_state(const ResetGradient& gradient);     ///< dn, dz, and the direct part of the gradient of h
void reset_backward_gates(const ResetGradient& gradient);     ///< dr, and the part by way of s
void reset_backward_products(const ResetGradient& gradient);  ///< the rest of the gradient of h

}  // namespace vitrail::kernels
