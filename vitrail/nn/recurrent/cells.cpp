#include "vitrail/nn/recurrent/cells.h"

#include <array>
#include <cmath>
#include <utility>

#include "vitrail/io/suggest.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

using ops::Cell;

constexpr std::array<std::pair<std::string_view, RecurrentKind>, 7> recurrent_kinds = {{
    {"rnn", RecurrentKind::rnn},
    {"lstm", RecurrentKind::lstm},
    {"gru", RecurrentKind::gru},
    {"mut1", RecurrentKind::mut1},
    {"mut2", RecurrentKind::mut2},
    {"mut3", RecurrentKind::mut3},
    {"nas", RecurrentKind::nas},
}};

// Makes the parameters of a cell.
struct CellParameters {
  const Scope& scope;
  const CellConfig& config;
  const std::string& suffix;

  Init start() const { return Init::uniform(1.0F / std::sqrt(static_cast<float>(config.hidden_size))); }
  Tensor weight(std::string_view name, std::int64_t out, std::int64_t in) const {
    return scope.parameter(std::string(name) + suffix, {out, in}, start());
  }
  Tensor bias(std::string_view name, std::int64_t out, const Init& init) const {
    return config.bias ? scope.parameter(std::string(name) + suffix, {out}, init) : Tensor();
  }
  Tensor bias(std::string_view name, std::int64_t out) const { return bias(name, out, start()); }
  Tensor from_input(std::int64_t gates) const {
    return weight("weight_ih", gates * config.hidden_size, config.input_size);
  }
  Tensor from_state(std::int64_t gates) const {
    return weight("weight_hh", gates * config.hidden_size, config.output_size());
  }
  Tensor projection() const {
    return config.proj_size > 0 ? weight("weight_hr", config.proj_size, config.hidden_size) : Tensor();
  }
};

// The sum of two biases, of which both or none are defined.
Tensor sum_of(const Tensor& a, const Tensor& b) { return a.defined() ? ops::add(a, b) : Tensor(); }

// Part k of H rows of a weight or bias.
Tensor part_of(const Tensor& parts, std::int64_t k, std::int64_t hidden) {
  return parts.defined() ? ops::narrow(parts, 0, k * hidden, hidden) : Tensor();
}

// x + bias, in the dtype of x.
Tensor with_bias(const Tensor& x, const Tensor& bias) {
  return bias.defined() ? ops::add(x, ops::cast(bias, x.dtype())) : x;
}

void check_config(const CellConfig& config, const std::string& where) {
  const std::string_view name = name_of(config.kind);
  check(config.input_size >= 1 && config.hidden_size >= 1,
        "{}: the sizes of input and state must be positive, not {} and {}", where, config.input_size,
        config.hidden_size);
  check(config.proj_size == 0 || config.has_memory(), "{}: only lstm and nas have a projection, not {}", where, name);
  check(config.proj_size >= 0 && (config.kind != RecurrentKind::lstm || config.proj_size < config.hidden_size),
        "{}: proj_size must lie in 0 … {}, not be {}", where, config.hidden_size - 1, config.proj_size);
  const bool adds_input = config.kind == RecurrentKind::mut1 || config.kind == RecurrentKind::mut2;
  check(!adds_input || config.input_projection || config.input_size == config.hidden_size,
        "{}: {} adds its input to its state, so their sizes must be equal, not {} and {}; input_projection maps the "
        "input first",
        where, name, config.input_size, config.hidden_size);
}

}  // namespace

std::string_view name_of(RecurrentKind kind) {
  for (const auto& [name, known] : recurrent_kinds) {
    if (known == kind) {
      return name;
    }
  }
  fail("no such recurrent network: {}", static_cast<int>(kind));
}

RecurrentKind recurrent_kind_named(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [known, kind] : recurrent_kinds) {
    if (known == name) {
      return kind;
    }
    names.emplace_back(known);
  }
  fail("unknown recurrent network '{}': expected rnn, lstm, gru, mut1, mut2, mut3 or nas{}", name,
       io::did_you_mean(name, names));
}

ElmanCell::ElmanCell(const Scope& scope, const CellConfig& config, const std::string& suffix)
    : cell(config.relu ? Cell::rnn_relu : Cell::rnn_tanh) {
  const CellParameters make{scope, config, suffix};
  weight_ih = make.from_input(1);
  weight_hh = make.from_state(1);
  bias_ih = make.bias("bias_ih", config.hidden_size);
  bias_hh = make.bias("bias_hh", config.hidden_size);
}

ops::Recurrence ElmanCell::operator()(const CellInput& in) const {
  const Tensor x = ops::linear(in.x, weight_ih, sum_of(bias_ih, bias_hh));
  return ops::recurrence(cell, x, in.steps, in.initial, {weight_hh, {}, {}}, in.reverse);
}

LstmCell::LstmCell(const Scope& scope, const CellConfig& config, const std::string& suffix) {
  const CellParameters make{scope, config, suffix};
  const auto bias_init = [&](float forget) {  // of the parts i, f, g and o
    return config.forget_bias ? Init::in_parts({make.start(), Init::constant(forget), make.start(), make.start()})
                              : make.start();
  };
  weight_ih = make.from_input(4);
  weight_hh = make.from_state(4);
  bias_ih = make.bias("bias_ih", 4 * config.hidden_size, bias_init(1));
  bias_hh = make.bias("bias_hh", 4 * config.hidden_size, bias_init(0));
  weight_hr = make.projection();
}

ops::Recurrence LstmCell::operator()(const CellInput& in) const {
  const Tensor x = ops::linear(in.x, weight_ih, sum_of(bias_ih, bias_hh));
  return ops::recurrence(Cell::lstm, x, in.steps, in.initial, {weight_hh, {}, weight_hr}, in.reverse);
}

GruCell::GruCell(const Scope& scope, const CellConfig& config, const std::string& suffix)
    : reset_after(config.reset_after), hidden(config.hidden_size) {
  const CellParameters make{scope, config, suffix};
  weight_ih = make.from_input(3);
  weight_hh = make.from_state(3);
  bias_ih = make.bias("bias_ih", 3 * config.hidden_size);
  bias_hh = make.bias("bias_hh", 3 * config.hidden_size);
}

ops::Recurrence GruCell::operator()(const CellInput& in) const {
  if (reset_after) {
    return ops::recurrence(Cell::gru, ops::linear(in.x, weight_ih, bias_ih), in.steps, in.initial,
                           {weight_hh, bias_hh, {}}, in.reverse);
  }
  const Tensor bias = sum_of(bias_ih, bias_hh);
  const auto of_input = [&](std::int64_t k) {
    return ops::linear(in.x, part_of(weight_ih, k, hidden), part_of(bias, k, hidden));
  };
  const auto of_state = [&](std::int64_t k) { return part_of(weight_hh, k, hidden); };
  return ops::reset_recurrence({of_input(0), of_input(1), of_input(2)}, in.steps, in.initial.h,
                               {of_state(0), of_state(1), of_state(2)}, {}, in.reverse);
}

MutCell::MutCell(const Scope& scope, const CellConfig& config, const std::string& suffix) : kind(config.kind) {
  const CellParameters make{scope, config, suffix};
  const std::int64_t hidden = config.hidden_size;
  const bool adds_input = kind != RecurrentKind::mut3;
  const bool projects = adds_input && config.input_size != hidden;
  const std::int64_t in = projects ? hidden : config.input_size;
  weight_in = projects ? make.weight("weight_in", hidden, config.input_size) : Tensor();
  weight_xz = make.weight("weight_xz", hidden, in);
  weight_xr = kind == RecurrentKind::mut2 ? Tensor() : make.weight("weight_xr", hidden, in);
  weight_xh = kind == RecurrentKind::mut1 ? Tensor() : make.weight("weight_xh", hidden, in);
  weight_hz = kind == RecurrentKind::mut1 ? Tensor() : make.weight("weight_hz", hidden, hidden);
  weight_hr = make.weight("weight_hr", hidden, hidden);
  weight_hh = make.weight("weight_hh", hidden, hidden);
  bias_z = make.bias("bias_z", hidden);
  bias_r = make.bias("bias_r", hidden);
  bias_h = make.bias("bias_h", hidden);
}

ops::Recurrence MutCell::operator()(const CellInput& in) const {
  const Tensor x = weight_in.defined() ? ops::linear(in.x, weight_in) : in.x;
  const ops::ResetParts parts{
      .r = kind == RecurrentKind::mut2 ? with_bias(x, bias_r) : ops::linear(x, weight_xr, bias_r),
      .z = ops::linear(x, weight_xz, bias_z),
      .n = kind == RecurrentKind::mut1 ? with_bias(ops::tanh(x), bias_h) : ops::linear(x, weight_xh, bias_h)};
  return ops::reset_recurrence(parts, in.steps, in.initial.h, {weight_hr, weight_hz, weight_hh},
                               {.z_takes_new = true, .z_of_tanh = kind == RecurrentKind::mut3}, in.reverse);
}

NasCell::NasCell(const Scope& scope, const CellConfig& config, const std::string& suffix) {
  const CellParameters make{scope, config, suffix};
  weight_ih = make.from_input(8);
  weight_hh = make.from_state(8);
  bias_hh = make.bias("bias_hh", 8 * config.hidden_size);
  weight_hr = make.projection();
}

ops::Recurrence NasCell::operator()(const CellInput& in) const {
  return ops::recurrence(Cell::nas, ops::linear(in.x, weight_ih), in.steps, in.initial, {weight_hh, bias_hh, weight_hr},
                         in.reverse);
}

std::int64_t multiplications(const CellConfig& config) {
  std::int64_t of_input = 1;  // matrices of H rows that the input has, and the state
  std::int64_t of_state = 1;
  std::int64_t input = config.input_size;
  std::int64_t first = 0;  // the elements of the map in front of them
  switch (config.kind) {
    case RecurrentKind::rnn:
      break;
    case RecurrentKind::lstm:
      of_input = of_state = 4;
      break;
    case RecurrentKind::gru:
    case RecurrentKind::mut3:
      of_input = of_state = 3;
      break;
    case RecurrentKind::mut1:
    case RecurrentKind::mut2:
      of_input = 2;
      of_state = config.kind == RecurrentKind::mut1 ? 2 : 3;
      first = input == config.hidden_size ? 0 : input * config.hidden_size;
      input = config.hidden_size;
      break;
    case RecurrentKind::nas:
      of_input = of_state = 8;
      break;
  }
  return first + config.hidden_size * (of_input * input + of_state * config.output_size() + config.proj_size);
}

AnyCell make_cell(const Scope& scope, const CellConfig& config, const std::string& suffix) {
  check_config(config, scope.path().empty() ? "a recurrent network" : scope.path());
  switch (config.kind) {
    case RecurrentKind::rnn:
      return ElmanCell(scope, config, suffix);
    case RecurrentKind::lstm:
      return LstmCell(scope, config, suffix);
    case RecurrentKind::gru:
      return GruCell(scope, config, suffix);
    case RecurrentKind::mut1:
    case RecurrentKind::mut2:
    case RecurrentKind::mut3:
      return MutCell(scope, config, suffix);
    case RecurrentKind::nas:
      return NasCell(scope, config, suffix);
  }
  fail("no such recurrent network: {}", static_cast<int>(config.kind));
}

}  // namespace vitrail::nn
