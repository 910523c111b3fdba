// Ops as models use them: forward, or forward and backward on a tape.
#pragma once

#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/tensor/random.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail {

// Normally distributed elements.
inline Tensor normal(const Shape& shape, DType dtype, std::uint64_t stream = 0) {
  const Philox philox(1, stream);
  Tensor x = Tensor::empty(shape, dtype);
  visit(dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      x.data<T>()[i] = static_cast<T>(philox.normal(static_cast<std::uint64_t>(i)));
    }
  });
  return x;
}

// Repeats forward(inputs), and if `backward` also the gradients of all inputs, from a gradient of the result's size.
template <class Forward>
void run_op(benchmark::State& state, bool backward, std::vector<Tensor> inputs, const Forward& forward) {
  const Tensor dy = forward(inputs);  // any gradient in the result's layout
  if (backward) {
    for (Tensor& input : inputs) {
      autograd::require_grad(input);
    }
  }
  for (auto _ : state) {
    if (!backward) {
      benchmark::DoNotOptimize(forward(inputs));
      continue;
    }
    for (const Tensor& input : inputs) {
      autograd::zero_grad(input);
    }
    autograd::Tape tape;
    tape.backward(forward(inputs), dy);
  }
  state.SetLabel(std::string(name_of(inputs.front().dtype())) + (backward ? ", forward and backward" : ", forward"));
}

}  // namespace vitrail
