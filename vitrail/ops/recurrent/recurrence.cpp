#include "vitrail/ops/recurrent/recurrence.h"

#include <utility>
#include <vector>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/dense.h"
#include "vitrail/ops/products/linear_operands.h"
#include "vitrail/ops/recurrent/walk.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;
using kernels::CellTraits;

std::byte* raw_or_null(const Tensor& x) { return x.defined() ? x.raw() : nullptr; }
float* floats_or_null(const Tensor& x) { return x.defined() ? x.data<float>() : nullptr; }

// The rows of a step; undefined if `rows` is.
Tensor rows_at(const Tensor& rows, const Place& place) { return rows.defined() ? place.of(rows) : Tensor(); }

// What backward needs of a recurrence. All rows are packed, and all but the weights in the dtype of x.
struct Taken {
  Cell cell;
  CellTraits traits;
  Walk walk;
  std::int64_t hidden;
  Tensor h0, c0;  // [B, …]; c0 undefined without a memory
  CellWeights weights;
  Tensor kept, memory;  // what cell_forward() leaves for backward
  Tensor h;             // what it computes, [rows, H]
  Tensor output;        // h or, if it is projected, its projection
};

void check_operands(const CellTraits& traits, const Tensor& x, const Steps& steps, const CellState& initial,
                    const CellWeights& weights) {
  check(is_floating(x.dtype()), "recurrence: x must be f32 or bf16, not {}", name_of(x.dtype()));
  check(x.rank() == 2 && x.size(0) == steps.rows() && x.size(1) > 0 && x.size(1) % traits.gates == 0,
        "recurrence: x must be [{}, {} · hidden], not {}", steps.rows(), traits.gates, x.shape());
  const std::int64_t hidden = x.size(1) / traits.gates;
  if (weights.projection.defined()) {
    check(weights.projection.rank() == 2, "recurrence: the projection must be [P, {}], not {}", hidden,
          weights.projection.shape());
    check_f32("the projection", weights.projection, {weights.projection.size(0), hidden});
  }
  const std::int64_t width = weights.projection.defined() ? weights.projection.size(0) : hidden;
  check_f32("the weight of the state", weights.state, {x.size(1), width});
  check_f32("the bias", weights.bias, {x.size(1)});
  check_f32("h before the first step", initial.h, {steps.batch, width});
  check(traits.memory || !initial.c.defined(), "recurrence: this cell has no memory c");
  check_f32("c before the first step", initial.c, {steps.batch, hidden});
}

// The steps, one after the other; returns the f32 state that they carry (c, or h of a gru), if there is one.
Tensor take_steps(Taken& taken, const Tensor& x, const CellState& initial) {
  const Steps& steps = taken.walk.steps();
  Tensor state;
  if (taken.traits.memory || taken.cell == Cell::gru) {
    const Tensor& first = taken.traits.memory ? initial.c : initial.h;
    state = state_or_zeros(first, {steps.batch, taken.hidden}, DType::f32).clone();
  }
  const Tensor u = Tensor::empty({steps.batch, x.size(1)});
  for (std::int64_t i = 0; i < taken.walk.count(); ++i) {
    const Place place = taken.walk[i];
    const Tensor product = u.narrow(0, 0, place.count);
    kernels::matmul_packed(place.states_before(taken.output, taken.h0), taken.weights.state.transpose(0, 1),
                           {taken.weights.bias, kernels::Activation::identity, {}}, product);
    kernels::cell_forward({.cell = taken.cell,
                           .dtype = x.dtype(),
                           .rows = place.count,
                           .hidden = taken.hidden,
                           .x = place.of(x).raw(),
                           .u = product.data<float>(),
                           .state = floats_or_null(state),
                           .kept = raw_or_null(rows_at(taken.kept, place)),
                           .memory = raw_or_null(rows_at(taken.memory, place)),
                           .h = place.of(taken.h).raw()});
    if (taken.weights.projection.defined()) {
      kernels::matmul_packed(place.of(taken.h), taken.weights.projection.transpose(0, 1), {}, place.of(taken.output));
    }
  }
  return state;
}

// The gradients of the products of the state, of the part of x where they differ from those of x, of what is projected
// to the output, and of the initial state.
struct Gradients {
  Tensor product, x_apart, output;
  Tensor h0, c0;

  // Those of x, in the memory of `product`.
  Tensor of_x(const CellTraits& traits) const {
    if (traits.apart >= 0) {
      const std::int64_t hidden = x_apart.size(1);
      product.narrow(1, traits.apart * hidden, hidden).copy_from(x_apart);
    }
    return product;
  }
};

// The gradients dy of the output (undefined: 0), dh and dc of the last state, taken back through all steps.
Gradients take_back(const Taken& taken, const Tensor& dy, const Tensor& dh, const Tensor& dc) {
  const Steps& steps = taken.walk.steps();
  const Tensor& projection = taken.weights.projection;
  const DType dtype = taken.output.dtype();
  const bool in_place = taken.traits.kept == taken.traits.gates;
  const Shape wide{steps.rows(), taken.traits.gates * taken.hidden};
  Gradients result;
  result.product = in_place ? taken.kept : Tensor::empty(wide, dtype);
  result.x_apart = taken.traits.apart >= 0 ? Tensor::empty_like(taken.h) : Tensor();
  result.output = projection.defined() ? Tensor::empty_like(taken.output) : Tensor();
  result.h0 = state_or_zeros(dh, {steps.batch, taken.output.size(1)}, DType::f32).clone();
  result.c0 = state_or_zeros(dc, {steps.batch, taken.hidden}, DType::f32).clone();
  const Tensor unprojected = projection.defined() ? Tensor::empty({steps.batch, taken.hidden}) : Tensor();
  for (std::int64_t i = taken.walk.count() - 1; i >= 0; --i) {
    const Place place = taken.walk[i];
    Tensor dstep = dy.defined() ? place.of(dy) : Tensor();
    Tensor dh_after = result.h0.narrow(0, 0, place.count);
    if (projection.defined()) {
      const Tensor later = cast(dh_after, dtype);
      place.of(result.output).copy_from(dstep.defined() ? add(dstep, later) : later);
      dstep = Tensor();
      dh_after = unprojected.narrow(0, 0, place.count);
      kernels::matmul_packed(place.of(result.output), projection, {}, dh_after);
    }
    const Tensor memory_before = taken.traits.memory ? place.states_before(taken.memory, taken.c0) : Tensor();
    const Tensor h_before = taken.cell == Cell::gru ? place.states_before(taken.output, taken.h0) : Tensor();
    kernels::cell_backward({.cell = taken.cell,
                            .dtype = dtype,
                            .rows = place.count,
                            .hidden = taken.hidden,
                            .kept = taken.traits.kept > 0 ? place.of(taken.kept).raw() : nullptr,
                            .memory = taken.traits.memory ? place.of(taken.memory).raw() : nullptr,
                            .memory_before = raw_or_null(memory_before),
                            .h = place.of(taken.h).raw(),
                            .h_before = raw_or_null(h_before),
                            .dy = raw_or_null(dstep),
                            .dh = dh_after.data<float>(),
                            .dstate = result.c0.data<float>(),
                            .dproduct = place.of(result.product).raw(),
                            .dx_apart = raw_or_null(rows_at(result.x_apart, place))});
    kernels::matmul_packed(place.of(result.product), taken.weights.state, {}, result.h0.narrow(0, 0, place.count));
  }
  if (taken.cell == Cell::gru) {  // whose carried state is h
    result.h0 = add(result.h0, result.c0);
  }
  return result;
}

}  // namespace

Tensor state_or_zeros(const Tensor& state, const Shape& shape, DType dtype) {
  return state.defined() ? cast(state.detach(), dtype).contiguous() : Tensor::zeros(shape, dtype);
}

void check_f32(const char* what, const Tensor& tensor, const Shape& shape) {
  check(!tensor.defined() || (tensor.shape() == shape && tensor.dtype() == DType::f32),
        "recurrence: {} must be {} f32, not {} {}", what, shape, tensor.defined() ? tensor.shape() : Shape(),
        tensor.defined() ? name_of(tensor.dtype()) : "undefined");
}

Recurrence recurrence(Cell cell, const Tensor& x, const std::shared_ptr<const Steps>& steps, const CellState& initial,
                      const CellWeights& weights, bool reverse) {
  const CellTraits traits = kernels::traits_of(cell);
  check_operands(traits, x, *steps, initial, weights);
  const std::int64_t hidden = x.size(1) / traits.gates;
  const Shape rows{steps->rows(), hidden};
  const bool recorded =
      autograd::recording({&x, &initial.h, &initial.c, &weights.state, &weights.bias, &weights.projection});
  const Tensor h = Tensor::empty(rows, x.dtype());
  Taken taken{
      .cell = cell,
      .traits = traits,
      .walk = Walk(steps, reverse),
      .hidden = hidden,
      .h0 = state_or_zeros(initial.h, {steps->batch, weights.state.size(1)}, x.dtype()),
      .c0 = traits.memory ? state_or_zeros(initial.c, {steps->batch, hidden}, x.dtype()) : Tensor(),
      .weights = {weights.state.detach(), dense_or_undefined(weights.bias), dense_or_undefined(weights.projection)},
      .kept = recorded ? Tensor::empty(rows.with(1, traits.kept * hidden), x.dtype()) : Tensor(),
      .memory = recorded && traits.memory ? Tensor::empty(rows, x.dtype()) : Tensor(),
      .h = h,
      .output = weights.projection.defined() ? Tensor::empty(rows.with(1, weights.projection.size(0)), x.dtype()) : h};
  const Tensor state = take_steps(taken, x.detach().contiguous(), initial);

  std::vector<Tensor> outputs = {taken.output,
                                 cell == Cell::gru ? state : cast(taken.walk.last(taken.output), DType::f32)};
  if (traits.memory) {
    outputs.push_back(state);
  }
  const Gradient dx(x);
  const Gradient dh0(initial.h);
  const Gradient dc0(initial.c);
  const Gradient dweight(weights.state);
  const Gradient dbias(weights.bias);
  const Gradient dprojection(weights.projection);
  outputs = autograd::record(
      "recurrence", std::move(outputs),
      {&x, &initial.h, &initial.c, &weights.state, &weights.bias, &weights.projection},
      [taken = std::move(taken), dx, dh0, dc0, dweight, dbias, dprojection](const std::vector<Tensor>& grads) {
        const Tensor dy = grads[0].defined() ? grads[0].contiguous() : Tensor();
        Gradients gradients = take_back(taken, dy, grads[1], grads.size() > 2 ? grads[2] : Tensor());
        if (dweight.wanted() || dbias.wanted()) {
          add_parameter_gradients(taken.walk.states_before(taken.output, taken.h0), gradients.product, dweight, dbias);
        }
        if (dprojection.wanted()) {
          add_parameter_gradients(taken.h, gradients.output, dprojection, {});
        }
        dx.add(gradients.of_x(taken.traits));
        dh0.add(std::move(gradients.h0));
        dc0.add(std::move(gradients.c0));
      });
  return {outputs[0], {outputs[1], traits.memory ? outputs[2] : Tensor()}};
}

}  // namespace vitrail::ops
