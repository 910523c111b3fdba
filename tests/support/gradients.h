// Gradients checked by finite differences.
#pragma once

#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"

namespace vitrail::test {

// Compares the gradients of function(inputs) (all f32) with central differences along random directions: for the scalar
// L = Σ w · function(inputs) with random weights w, (L(x + εu) - L(x - εu)) / 2ε against ⟨dL/dx, u⟩ for every input x
// and some directions u. They must agree to `tolerance` of |dL/dx| |u| (f32 arithmetic bounds what can be asked).
inline void check_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                            std::vector<Tensor> inputs, double tolerance = 2e-3, double epsilon = 1e-2) {
  const auto dot = [](const Tensor& a, const Tensor& b) {
    const std::vector<float> x = a.values();
    const std::vector<float> y = b.values();
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    }
    return sum;
  };
  for (Tensor& input : inputs) {
    input = input.clone();
    autograd::require_grad(input);
  }
  Tensor weights;
  {
    autograd::Tape tape;
    const Tensor output = function(inputs);
    weights = random_tensor(output.shape(), 77);
    tape.backward(output, weights);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor gradient = autograd::grad(inputs[i]);
    ASSERT_TRUE(gradient.defined()) << "input " << i << " has no gradient";
    for (std::uint64_t direction = 0; direction < 3; ++direction) {
      const Tensor u = random_tensor(inputs[i].shape(), 100 + 10 * i + direction);
      const auto moved = [&](double step) {
        std::vector<Tensor> there = inputs;
        there[i] = inputs[i].clone();
        for (std::int64_t j = 0; j < u.numel(); ++j) {
          there[i].data<float>()[j] += static_cast<float>(step) * u.data<float>()[j];
        }
        return dot(function(there), weights);
      };
      const double numeric = (moved(epsilon) - moved(-epsilon)) / (2 * epsilon);
      const double analytic = dot(gradient, u);
      const double scale = std::sqrt(dot(gradient, gradient) * dot(u, u)) + 1e-6;
      EXPECT_NEAR(numeric / scale, analytic / scale, tolerance) << "input " << i << ", direction " << direction;
    }
  }
}

}  // namespace vitrail::test
