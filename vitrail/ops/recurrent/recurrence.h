/// \file
/// Recurrent cells over all steps of a batch of sequences: one op a layer and direction, so that a tape does not grow
/// with the number of steps.
#pragma once

#include <memory>

#include "vitrail/kernels/recurrent.h"
#include "vitrail/ops/recurrent/sequences.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

using kernels::Cell;  // rnn_tanh, rnn_relu, lstm, gru, nas

/// The state between two steps, one row a sequence in the order of Steps, f32.
struct CellState {
  Tensor h;  ///< [B, P]; undefined before the first step: 0
  Tensor c;  ///< [B, H], likewise; of cells without a memory always undefined
};

/// What a recurrence gives.
struct Recurrence {
  Tensor output;   ///< [rows, P]: h after each step, in the dtype of x
  CellState last;  ///< after the last step of each sequence
};

/// The weights of the state in a Cell with G parts.
struct CellWeights {
  Tensor state;       ///< [G · H, P] f32: u = h stateᵀ + bias
  Tensor bias;        ///< [G · H] f32, or undefined
  Tensor projection;  ///< [P, H] f32: h is projected to P numbers, h' projectionᵀ; undefined: P = H
};

/// The cell over all steps, as kernels::Cell defines it.
///
/// ```text
/// x [rows, G · H], f32 or bf16: the products of the inputs, packed as `steps` say
/// initial: the state before the first step of each sequence or, if `reverse`, before its last one
/// ```
///
/// With `reverse` each sequence is read from its own end. Products run in the dtype of x, c and the h of a gru are
/// carried in f32. Gradients of x in its dtype, of all else in f32. Backward keeps, in the dtype of x, what
/// CellTraits::kept says and c.
Recurrence recurrence(Cell cell, const Tensor& x, const std::shared_ptr<const Steps>& steps, const CellState& initial,
                      const CellWeights& weights, bool reverse = false);

/// What differs among the cells that reset the state before a product.
struct ResetOptions {
  bool z_takes_new = false;  ///< h' = z n + (1 - z) h as in Jozefowicz et al. 2015, not (1 - z) n + z h
  bool z_of_tanh = false;    ///< u_z is a product of tanh(h), as in MUT3
};

/// A number for each of the parts r, z and n of such a cell.
struct ResetParts {
  Tensor r, z, n;
};

/// The cells of kernels::ResetStep over all steps: u_r = h weights.rᵀ, u_z = h weights.zᵀ (or of tanh(h)), u_n = (r h)
/// weights.nᵀ. x: each [rows, H] f32 or bf16; weights: each [H, H] f32, z may be undefined; h0 [B, H] f32 or undefined.
/// All else as in recurrence().
Recurrence reset_recurrence(const ResetParts& x, const std::shared_ptr<const Steps>& steps, const Tensor& h0,
                            const ResetParts& weights, const ResetOptions& options = {}, bool reverse = false);

}  // namespace vitrail::ops
