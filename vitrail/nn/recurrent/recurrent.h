/// \file
/// Recurrent networks: layers of cells, in one or both directions, and single cells.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/nn/pass.h"
#include "vitrail/nn/recurrent/cells.h"

namespace vitrail::nn {

/// What a recurrent network is: a cell, and the further arguments of torch.nn.LSTM.
struct RecurrentConfig : CellConfig {
  std::int64_t num_layers = 1;
  bool batch_first = true;  ///< x is [B, T, I] and not [T, B, I]
  bool bidirectional = false;
  float dropout = 0;  ///< of the output of each layer but the last

  std::int64_t directions() const { return bidirectional ? 2 : 1; }
};

/// The state of all layers, f32: index layer · D + direction for D directions.
struct RecurrentState {
  Tensor h;  ///< [layers · D, B, P], P = proj_size or H; undefined: 0
  Tensor c;  ///< [layers · D, B, H], likewise; of cells without a memory always undefined

  /// The state without its history: truncated backpropagation through time carries it to the next chunk of a sequence.
  RecurrentState detached() const;
};

/// What a recurrent network gives.
struct RecurrentOutput {
  Tensor output;         ///< [B, T, D · P] or [T, B, D · P] in the pass's dtype; 0 behind the end of a sequence
  RecurrentState state;  ///< after the last step of each sequence; backwards, after its first
};

/// torch.nn.RNN, LSTM and GRU, and the same of other cells. Parameters have torch's names: `weight_ih_l0`,
/// `weight_ih_l0_reverse`, `weight_ih_l1` …
struct Recurrent {
  Recurrent(const Scope& scope, const RecurrentConfig& config);

  /// x [B, T, I] (or [T, B, I]), f32 or bf16; `lengths` [B] i64 in 1 … T, or undefined: all T. Sequences of unequal
  /// length give what torch's pack_padded_sequence gives them, and their padding is not computed.
  RecurrentOutput operator()(const Tensor& x, const RecurrentState& initial, const Tensor& lengths, Pass& pass) const;
  /// From a state of zeros, all sequences equally long.
  RecurrentOutput operator()(const Tensor& x, Pass& pass) const { return (*this)(x, {}, {}, pass); }

  /// Multiply-accumulates of the products for this many steps of all sequences together.
  std::int64_t flops(std::int64_t steps) const;

  RecurrentConfig config;
  std::vector<AnyCell> cells;  ///< [layers · D]
};

/// torch.nn.RNNCell, LSTMCell and GRUCell, and the same of other cells: one step. Parameters `weight_ih`, `weight_hh`
/// …
struct RecurrentCell {
  RecurrentCell(const Scope& scope, const CellConfig& of) : config(of), cell(make_cell(scope, of, "")) {}

  /// x [B, I], the state [B, P] and [B, H] (undefined: 0) → the next state, f32.
  ops::CellState operator()(const Tensor& x, const ops::CellState& state, Pass& pass) const;

  CellConfig config;
  AnyCell cell;
};

}  // namespace vitrail::nn
