#include <utility>
#include <vector>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/dense.h"
#include "vitrail/ops/products/linear_operands.h"
#include "vitrail/ops/recurrent/recurrence.h"
#include "vitrail/ops/recurrent/walk.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

// What backward needs: rows are packed, [rows, H] in the dtype of x.
struct TakenReset {
  Walk walk;
  ResetOptions options;
  std::int64_t hidden;
  Tensor h0;           // [B, H]
  ResetParts weights;  // f32
  ResetParts parts;    // r, z and n after each step
  Tensor s;            // r h
  Tensor output;
};

struct ResetGradients {
  ResetParts x;
  Tensor h0;
};

void check_reset_operands(const ResetParts& x, const Steps& steps, const Tensor& h0, const ResetParts& weights) {
  check(x.r.rank() == 2 && x.r.size(0) == steps.rows() && is_floating(x.r.dtype()),
        "recurrence: x must be [{}, hidden] f32 or bf16, not {} {}", steps.rows(), x.r.shape(), name_of(x.r.dtype()));
  for (const Tensor* part : {&x.z, &x.n}) {
    check(part->shape() == x.r.shape() && part->dtype() == x.r.dtype(),
          "recurrence: the parts of x must all be {} {}, not {} {}", x.r.shape(), name_of(x.r.dtype()), part->shape(),
          name_of(part->dtype()));
  }
  const std::int64_t hidden = x.r.size(1);
  for (const Tensor* weight : {&weights.r, &weights.z, &weights.n}) {
    check_f32("the weight of the state", *weight, {hidden, hidden});
  }
  check_f32("h before the first step", h0, {steps.batch, hidden});
}

// The input of the product u_z: h, or tanh(h).
Tensor input_of_z(const Tensor& h, const ResetOptions& options) { return options.z_of_tanh ? tanh(h) : h; }

// The steps, one after the other; returns the f32 state.
Tensor take_steps(const TakenReset& taken, const ResetParts& x, const Tensor& h0) {
  const Shape shape{taken.walk.steps().batch, taken.hidden};
  const Tensor state = state_or_zeros(h0, shape, DType::f32).clone();
  const Tensor u_r = Tensor::empty(shape);
  const Tensor u_z = Tensor::empty(shape);
  const Tensor u_n = Tensor::empty(shape);
  const bool with_z = taken.weights.z.defined();
  for (std::int64_t i = 0; i < taken.walk.count(); ++i) {
    const Place place = taken.walk[i];
    const auto product = [&](const Tensor& rows, const Tensor& weight, const Tensor& to) {
      kernels::matmul_packed(rows, weight.transpose(0, 1), {}, to.narrow(0, 0, place.count));
    };
    const kernels::ResetStep step{.dtype = taken.output.dtype(),
                                  .rows = place.count,
                                  .hidden = taken.hidden,
                                  .z_takes_new = taken.options.z_takes_new,
                                  .x_r = place.of(x.r).raw(),
                                  .x_z = place.of(x.z).raw(),
                                  .x_n = place.of(x.n).raw(),
                                  .u_r = u_r.data<float>(),
                                  .u_z = with_z ? u_z.data<float>() : nullptr,
                                  .u_n = u_n.data<float>(),
                                  .state = state.data<float>(),
                                  .r = place.of(taken.parts.r).raw(),
                                  .z = place.of(taken.parts.z).raw(),
                                  .s = place.of(taken.s).raw(),
                                  .n = place.of(taken.parts.n).raw(),
                                  .h = place.of(taken.output).raw()};
    const Tensor before = place.states_before(taken.output, taken.h0);
    product(before, taken.weights.r, u_r);
    if (with_z) {
      product(input_of_z(before, taken.options), taken.weights.z, u_z);
    }
    kernels::reset_forward_gates(step);
    product(place.of(taken.s), taken.weights.n, u_n);
    kernels::reset_forward_state(step);
  }
  return state;
}

// The gradients dy of the output (undefined: 0) and dh of the last state, taken back through all steps.
ResetGradients take_back(const TakenReset& taken, const Tensor& dy, const Tensor& dh) {
  const Shape shape{taken.walk.steps().batch, taken.hidden};
  const auto rows = [&] { return Tensor::empty_like(taken.output); };
  const ResetGradients result{{rows(), rows(), rows()}, state_or_zeros(dh, shape, DType::f32).clone()};
  const Tensor ds = Tensor::empty(shape);
  const Tensor dh_r = Tensor::empty(shape);
  const Tensor dh_z = Tensor::empty(shape);
  const bool with_z = taken.weights.z.defined();
  for (std::int64_t i = taken.walk.count() - 1; i >= 0; --i) {
    const Place place = taken.walk[i];
    const auto product = [&](const Tensor& gradient, const Tensor& weight, const Tensor& to) {
      kernels::matmul_packed(place.of(gradient), weight, {}, to.narrow(0, 0, place.count));
    };
    const Tensor before = place.states_before(taken.output, taken.h0);
    const kernels::ResetGradient step{.dtype = taken.output.dtype(),
                                      .rows = place.count,
                                      .hidden = taken.hidden,
                                      .z_takes_new = taken.options.z_takes_new,
                                      .z_of_tanh = taken.options.z_of_tanh,
                                      .r = place.of(taken.parts.r).raw(),
                                      .z = place.of(taken.parts.z).raw(),
                                      .n = place.of(taken.parts.n).raw(),
                                      .h_before = before.raw(),
                                      .dy = dy.defined() ? place.of(dy).raw() : nullptr,
                                      .ds = ds.data<float>(),
                                      .dh_r = dh_r.data<float>(),
                                      .dh_z = with_z ? dh_z.data<float>() : nullptr,
                                      .dstate = result.h0.data<float>(),
                                      .dr = place.of(result.x.r).raw(),
                                      .dz = place.of(result.x.z).raw(),
                                      .dn = place.of(result.x.n).raw()};
    kernels::reset_backward_state(step);
    product(result.x.n, taken.weights.n, ds);
    kernels::reset_backward_gates(step);
    product(result.x.r, taken.weights.r, dh_r);
    if (with_z) {
      product(result.x.z, taken.weights.z, dh_z);
    }
    kernels::reset_backward_products(step);
  }
  return result;
}

}  // namespace

Recurrence reset_recurrence(const ResetParts& x, const std::shared_ptr<const Steps>& steps, const Tensor& h0,
                            const ResetParts& weights, const ResetOptions& options, bool reverse) {
  check_reset_operands(x, *steps, h0, weights);
  const auto rows = [&] { return Tensor::empty(x.r.shape(), x.r.dtype()); };
  TakenReset taken{.walk = Walk(steps, reverse),
                   .options = options,
                   .hidden = x.r.size(1),
                   .h0 = state_or_zeros(h0, {steps->batch, x.r.size(1)}, x.r.dtype()),
                   .weights = {weights.r.detach(), weights.z.detach(), weights.n.detach()},
                   .parts = {rows(), rows(), rows()},
                   .s = rows(),
                   .output = rows()};
  const Tensor last =
      take_steps(taken, {dense_or_undefined(x.r), dense_or_undefined(x.z), dense_or_undefined(x.n)}, h0);
  const Tensor output = taken.output;
  const std::vector<Tensor> outputs =
      autograd::record("reset_recurrence", std::vector<Tensor>{output, last},
                       {&x.r, &x.z, &x.n, &h0, &weights.r, &weights.z, &weights.n},
                       [taken = std::move(taken), dx_r = Gradient(x.r), dx_z = Gradient(x.z), dx_n = Gradient(x.n),
                        dh0 = Gradient(h0), dweight_r = Gradient(weights.r), dweight_z = Gradient(weights.z),
                        dweight_n = Gradient(weights.n)](const std::vector<Tensor>& grads) {
                         const Tensor dy = grads[0].defined() ? grads[0].contiguous() : Tensor();
                         const ResetGradients gradients = take_back(taken, dy, grads[1]);
                         const Tensor before = taken.walk.states_before(taken.output, taken.h0);
                         const auto add_weight_gradient = [](const Tensor& in, const Tensor& out, const Gradient& to) {
                           if (to.wanted()) {
                             add_parameter_gradients(in, out, to, {});
                           }
                         };
                         add_weight_gradient(before, gradients.x.r, dweight_r);
                         add_weight_gradient(taken.s, gradients.x.n, dweight_n);
                         if (dweight_z.wanted()) {
                           add_weight_gradient(input_of_z(before, taken.options), gradients.x.z, dweight_z);
                         }
                         dx_r.add(gradients.x.r);
                         dx_z.add(gradients.x.z);
                         dx_n.add(gradients.x.n);
                         dh0.add(gradients.h0);
                       });
  return {outputs[0], {outputs[1], {}}};
}

}  // namespace vitrail::ops
