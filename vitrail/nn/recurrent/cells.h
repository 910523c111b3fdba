/// \file
/// Recurrent cells with their parameters: one direction of one layer.
///
/// The equations are those of the papers with two biases where torch has two. Parameters start uniform in ±1/√H, as
/// torch's do.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "vitrail/nn/parameters.h"
#include "vitrail/ops/recurrent/recurrence.h"

namespace vitrail::nn {

enum class RecurrentKind { rnn, lstm, gru, mut1, mut2, mut3, nas };
/// "rnn", "lstm" …
std::string_view name_of(RecurrentKind kind);
/// The kind of that name; Error if there is none.
RecurrentKind recurrent_kind_named(std::string_view name);

/// What a cell is; the names are those of torch.nn.LSTM's arguments where it has them.
struct CellConfig {
  RecurrentKind kind = RecurrentKind::lstm;
  std::int64_t input_size = 0;
  std::int64_t hidden_size = 0;  ///< H
  bool bias = true;
  std::int64_t proj_size = 0;     ///< of lstm and nas: h is projected to this many numbers; 0: it is not
  bool relu = false;              ///< of rnn: relu instead of tanh
  bool reset_after = true;        ///< of gru: the state is reset behind its product (torch) or before (Cho et al. 2014)
  bool input_projection = false;  ///< of mut1 and mut2: an input of another size than H is first mapped to H
  bool forget_bias = false;       ///< of lstm: its forget gates start with a bias of 1 (Jozefowicz et al. 2015)

  std::int64_t output_size() const { return proj_size > 0 ? proj_size : hidden_size; }
  bool has_memory() const { return kind == RecurrentKind::lstm || kind == RecurrentKind::nas; }  ///< a c besides h
};

/// The inputs of a direction: rows [rows, I] in f32 or bf16, packed as `steps` say, the state before the first step
/// (f32), and whether the sequences are read from their ends.
struct CellInput {
  const Tensor& x;
  const std::shared_ptr<const ops::Steps>& steps;
  const ops::CellState& initial;
  bool reverse = false;
};

/// torch.nn.RNN (Elman 1990): h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu instead of tanh. Parameters
/// `weight_ih`, `weight_hh`, `bias_ih`, `bias_hh`, each with the suffix of its place.
struct ElmanCell {
  ElmanCell(const Scope& scope, const CellConfig& config, const std::string& suffix);
  ops::Recurrence operator()(const CellInput& in) const;
  ops::Cell cell;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};

/// torch.nn.LSTM (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000):
///
/// ```text
/// i, f, g, o = W_ih x + b_ih + W_hh h + b_hh          four parts of H rows, in this order
/// c' = σ(f) c + σ(i) tanh(g)
/// h' = σ(o) tanh(c'), or W_hr of that if proj_size > 0
/// ```
struct LstmCell {
  LstmCell(const Scope& scope, const CellConfig& config, const std::string& suffix);
  ops::Recurrence operator()(const CellInput& in) const;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh, weight_hr;
};

/// The gated recurrent unit, in parts r, z, n:
///
/// ```text
/// r = σ(W_ir x + b_ir + W_hr h + b_hr)
/// z = σ(W_iz x + b_iz + W_hz h + b_hz)
/// n = tanh(W_in x + b_in + r (W_hn h + b_hn))         reset_after: torch.nn.GRU
/// n = tanh(W_in x + b_in + W_hn (r h) + b_hn)         otherwise: Cho et al. 2014
/// h' = (1 - z) n + z h
/// ```
struct GruCell {
  GruCell(const Scope& scope, const CellConfig& config, const std::string& suffix);
  ops::Recurrence operator()(const CellInput& in) const;
  bool reset_after;
  std::int64_t hidden;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};

/// MUT1, MUT2 and MUT3 of Jozefowicz et al. 2015, "An empirical exploration of recurrent network architectures":
///
/// ```text
/// z = σ(W_xz x + b_z)                     MUT1
/// z = σ(W_xz x + W_hz h + b_z)            MUT2
/// z = σ(W_xz x + W_hz tanh(h) + b_z)      MUT3
/// r = σ(W_xr x + W_hr h + b_r)            MUT1, MUT3
/// r = σ(x + W_hr h + b_r)                 MUT2
/// n = tanh(W_hh (r h) + tanh(x) + b_h)    MUT1
/// n = tanh(W_hh (r h) + W_xh x + b_h)     MUT2, MUT3
/// h' = z n + (1 - z) h
/// ```
///
/// MUT1 and MUT2 add x itself, whose size must be H; with `input_projection` W_in x takes its place where it is not.
/// Parameters by the paper's subscripts: `weight_xz`, `weight_hr` … `bias_h`, and `weight_in`.
struct MutCell {
  MutCell(const Scope& scope, const CellConfig& config, const std::string& suffix);
  ops::Recurrence operator()(const CellInput& in) const;
  RecurrentKind kind;
  Tensor weight_in, weight_xz, weight_xr, weight_xh, weight_hz, weight_hr, weight_hh, bias_z, bias_r, bias_h;
};

/// The cell that neural architecture search found (Zoph & Le 2017), with the equations of TensorFlow Addons' NASCell:
/// see kernels::Cell for them. x₀ … x₇ = W_ih x and u₀ … u₇ = W_hh h + b_hh have H rows each; with proj_size > 0 h is
/// W_hr h'.
struct NasCell {
  NasCell(const Scope& scope, const CellConfig& config, const std::string& suffix);
  ops::Recurrence operator()(const CellInput& in) const;
  Tensor weight_ih, weight_hh, bias_hh, weight_hr;
};

/// The elements of the weights by which a step multiplies, of a cell as `config` says.
std::int64_t multiplications(const CellConfig& config);

using AnyCell = std::variant<ElmanCell, LstmCell, GruCell, MutCell, NasCell>;
/// The cell that `config` names, whose parameters have `suffix` behind their names: "_l0", "_l1_reverse", or nothing.
/// Error if the sizes do not fit each other.
AnyCell make_cell(const Scope& scope, const CellConfig& config, const std::string& suffix);

}  // namespace vitrail::nn
