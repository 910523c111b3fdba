#include "vitrail/ops/math/activation.h"

#include <array>
#include <utility>

#include "vitrail/autograd/tape.h"

namespace vitrail::ops {
namespace {

const char* name_of(Activation activation) {
  switch (activation) {
    case Activation::identity:
      return "identity";
    case Activation::relu:
      return "relu";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::quick_gelu:
      return "quick_gelu";
    case Activation::silu:
      return "silu";
    case Activation::tanh:
      return "tanh";
    case Activation::sigmoid:
      return "sigmoid";
  }
  fail("no such activation: {}", static_cast<int>(activation));
}

}  // namespace

Tensor activate(const Tensor& x, Activation activation) {
  if (activation == Activation::identity) {
    return x;
  }
  const char* name = name_of(activation);
  check(is_floating(x.dtype()), "{}: x must be f32 or bf16, not {}", name, vitrail::name_of(x.dtype()));
  const Tensor dense = x.detach().contiguous();
  const Tensor y = Tensor::empty_like(dense);
  kernels::activation_forward(activation, dense.raw(), y.raw(), y.numel(), y.dtype());
  // Backward keeps x or y, whichever gives the derivative at less cost.
  const Tensor result = autograd::record(
      name, y, {&x},
      [activation, saved = kernels::backward_from_output(activation) ? y : dense,
       dx = autograd::Gradient(x)](const Tensor& dy) {
        // dx takes the memory of dy if that is not shared: each element depends on the same element of dy alone.
        const bool in_place = !dy.is_shared() && dy.is_contiguous();
        const Tensor contribution = in_place ? dy.detach() : Tensor::empty_like(saved);
        kernels::activation_backward(activation, saved.raw(), dy.raw(), contribution.raw(), dy.numel(), dy.dtype());
        dx.add(contribution);
      });
  if (!kernels::backward_from_output(activation)) {
    autograd::set_rebuild(result, [activation, dense] {
      const Tensor again = Tensor::empty_like(dense);
      kernels::activation_forward(activation, dense.raw(), again.raw(), again.numel(), again.dtype());
      return again;
    });
  }
  return result;
}

Tensor relu(const Tensor& x) { return activate(x, Activation::relu); }
Tensor gelu(const Tensor& x) { return activate(x, Activation::gelu); }
Tensor gelu_tanh(const Tensor& x) { return activate(x, Activation::gelu_tanh); }
Tensor quick_gelu(const Tensor& x) { return activate(x, Activation::quick_gelu); }
Tensor silu(const Tensor& x) { return activate(x, Activation::silu); }
Tensor tanh(const Tensor& x) { return activate(x, Activation::tanh); }
Tensor sigmoid(const Tensor& x) { return activate(x, Activation::sigmoid); }

Activation activation_named(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Activation>, 11> names = {{
      {"identity", Activation::identity},
      {"relu", Activation::relu},
      {"gelu", Activation::gelu},
      {"gelu_erf", Activation::gelu},
      {"gelu_tanh", Activation::gelu_tanh},
      {"quick_gelu", Activation::quick_gelu},
      {"quickgelu", Activation::quick_gelu},
      {"silu", Activation::silu},
      {"swish", Activation::silu},
      {"tanh", Activation::tanh},
      {"sigmoid", Activation::sigmoid},
  }};
  for (const auto& [key, activation] : names) {
    if (key == name) {
      return activation;
    }
  }
  fail("unknown activation '{}': expected identity, relu, gelu, gelu_tanh, quick_gelu, silu, tanh or sigmoid", name);
}

}  // namespace vitrail::ops
