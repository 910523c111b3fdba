#include "vitrail/nn/recurrent/recurrent.h"

#include <utility>

#include <fmt/format.h>

#include "vitrail/nn/drop.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

std::vector<AnyCell> make_cells(const Scope& scope, const RecurrentConfig& config) {
  check(config.num_layers >= 1, "a recurrent network has at least one layer, not {}", config.num_layers);
  check(config.dropout >= 0 && config.dropout <= 1, "dropout must lie in [0, 1], not {}", config.dropout);
  std::vector<AnyCell> cells;
  CellConfig cell = config;
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (std::int64_t direction = 0; direction < config.directions(); ++direction) {
      cells.push_back(make_cell(scope, cell, fmt::format("_l{}{}", layer, direction == 1 ? "_reverse" : "")));
    }
    cell.input_size = config.directions() * config.output_size();
  }
  return cells;
}

ops::Recurrence apply(const AnyCell& cell, const CellInput& in) {
  return std::visit([&](const auto& known) { return known(in); }, cell);
}

// The states of all layers, sorted as the steps have their sequences, or back; undefined stays undefined.
Tensor sorted(const Tensor& states, const ops::Steps& steps, bool back) {
  if (!states.defined() || steps.equal()) {
    return states;
  }
  return ops::index_select(states, 1, back ? steps.unsorting() : steps.sorting());
}

void check_state(const char* name, const Tensor& state, const Shape& shape) {
  check(!state.defined() || (state.shape() == shape && state.dtype() == DType::f32), "{} must be {} f32, not {} {}",
        name, shape, state.defined() ? state.shape() : shape, state.defined() ? name_of(state.dtype()) : "undefined");
}

}  // namespace

RecurrentState RecurrentState::detached() const { return {h.detach(), c.detach()}; }

Recurrent::Recurrent(const Scope& scope, const RecurrentConfig& network)
    : config(network), cells(make_cells(scope, network)) {}

RecurrentOutput Recurrent::operator()(const Tensor& x, const RecurrentState& initial, const Tensor& lengths,
                                      Pass& pass) const {
  check(x.rank() == 3 && x.size(2) == config.input_size && is_floating(x.dtype()),
        "the input of a recurrent network must be [{}, {}] f32 or bf16, not {} {}",
        config.batch_first ? "batch, time" : "time, batch", config.input_size, x.shape(), name_of(x.dtype()));
  const auto layout = config.batch_first ? ops::Layout::batch_first : ops::Layout::time_first;
  const std::int64_t batch = x.size(config.batch_first ? 0 : 1);
  const auto count = static_cast<std::int64_t>(cells.size());
  check_state("h_0", initial.h, {count, batch, config.output_size()});
  check(config.has_memory() || !initial.c.defined(), "{} has no c_0", name_of(config.kind));
  check_state("c_0", initial.c, {count, batch, config.hidden_size});

  const auto steps = ops::steps_of(batch, x.size(config.batch_first ? 1 : 0), lengths);
  const Tensor h = sorted(initial.h, *steps, false);
  const Tensor c = sorted(initial.c, *steps, false);
  const Dropout drop{config.dropout};
  Tensor rows = ops::pack(ops::cast(x, pass.dtype), steps, layout);
  std::vector<Tensor> last_h;
  std::vector<Tensor> last_c;
  for (std::size_t first = 0; first < cells.size(); first += static_cast<std::size_t>(config.directions())) {
    if (first > 0) {
      rows = drop(rows, pass);
    }
    std::vector<Tensor> outputs;
    for (std::int64_t direction = 0; direction < config.directions(); ++direction) {
      const std::size_t i = first + static_cast<std::size_t>(direction);
      const auto at = [&](const Tensor& states) {
        return states.defined() ? ops::select(states, 0, static_cast<std::int64_t>(i)) : Tensor();
      };
      ops::Recurrence result = apply(cells[i], {rows, steps, {at(h), at(c)}, direction == 1});
      outputs.push_back(std::move(result.output));
      last_h.push_back(std::move(result.last.h));
      last_c.push_back(std::move(result.last.c));
    }
    rows = outputs.size() == 1 ? outputs.front() : ops::concat(outputs, 1);
  }
  return {ops::unpack(rows, steps, layout),
          {sorted(ops::stack(last_h, 0), *steps, true),
           config.has_memory() ? sorted(ops::stack(last_c, 0), *steps, true) : Tensor()}};
}

std::int64_t Recurrent::flops(std::int64_t steps) const {
  CellConfig cell = config;
  std::int64_t elements = 0;
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    elements += config.directions() * multiplications(cell);
    cell.input_size = config.directions() * config.output_size();
  }
  return steps * elements;
}

ops::CellState RecurrentCell::operator()(const Tensor& x, const ops::CellState& state, Pass& pass) const {
  check(x.rank() == 2 && x.size(1) == config.input_size && is_floating(x.dtype()),
        "the input of a recurrent cell must be [batch, {}] f32 or bf16, not {} {}", config.input_size, x.shape(),
        name_of(x.dtype()));
  check_state("h", state.h, {x.size(0), config.output_size()});
  check(config.has_memory() || !state.c.defined(), "{} has no c", name_of(config.kind));
  check_state("c", state.c, {x.size(0), config.hidden_size});
  const auto steps = ops::steps_of(x.size(0), 1);
  return apply(cell, {ops::cast(x, pass.dtype), steps, state}).last;
}

}  // namespace vitrail::nn
