// Layers checked against a case of golden values: output, and the gradients of inputs and parameters.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::test {

// As expect_close, but an expected gradient that vanishes up to rounding, as that of keys' biases must, may be a little
// above 0.
inline void expect_gradient(const Tensor& actual, const Tensor& expected, double tolerance, const std::string& what) {
  const std::vector<float> values = expected.values();
  const bool vanishes = std::ranges::all_of(values, [](float value) { return std::abs(value) < 1e-10F; });
  if (!vanishes) {
    expect_close(actual, expected, tolerance, what);
    return;
  }
  for (const float value : actual.values()) {
    EXPECT_LE(std::abs(value), 10 * tolerance) << what;
  }
}

// The cases of tools/golden/nn.py.
inline const io::Safetensors& layer_cases() {
  static const io::Safetensors file = golden("nn/layers.safetensors");
  return file;
}

// A case NAME of a file as tools/golden/nn.py writes it: inputs NAME.x …, parameters NAME.p.*, output NAME.y and its
// gradient NAME.dy, gradients NAME.dx … and NAME.g.*.
class LayerCase {
 public:
  LayerCase(const io::Safetensors& file, std::string name) : file_(&file), name_(std::move(name)) {}

  // The store to build the layer in, at its root.
  nn::Scope scope() { return nn::Scope(store_); }
  Tensor get(const std::string& label) const { return file_->get(name_ + "." + label); }

  // Gives the parameters their golden values. The layer must have exactly those that the reference has.
  void load() {
    std::set<std::string> expected;
    for (const std::string& name : file_->names()) {
      if (name.starts_with(name_ + ".p.")) {
        expected.insert(name.substr(name_.size() + 3));
      }
    }
    std::set<std::string> actual;
    for (const nn::Parameter& parameter : store_.all()) {
      actual.insert(parameter.name);
    }
    ASSERT_EQ(actual, expected) << name_;
    for (const nn::Parameter& parameter : store_.all()) {
      parameter.value.copy_from(get("p." + parameter.name));
      parameter.value.touch();
    }
  }

  // Compares forward and backward of `layer` on the inputs of these labels.
  void check(const std::function<Tensor(const std::vector<Tensor>&)>& layer, const std::vector<std::string>& labels,
             DType dtype = DType::f32) {
    // Without bf16 instructions each product is rounded once more.
    const double tolerance = dtype == DType::f32 ? 1e-5 : (kernels::has_bf16() ? 2e-2 : 2.5e-2);
    load();
    store_.zero_grad();
    std::vector<Tensor> inputs;
    for (const std::string& label : labels) {
      inputs.push_back(ops::cast(get(label), dtype).clone());
      autograd::require_grad(inputs.back());
    }
    autograd::Tape tape;
    const Tensor y = layer(inputs);
    expect_close(y, get("y"), tolerance, name_ + ": output");
    tape.backward(y, ops::cast(get("dy"), y.dtype()));
    for (std::size_t i = 0; i < labels.size(); ++i) {
      expect_close(autograd::grad(inputs[i]), get("d" + labels[i]), 2 * tolerance, name_ + ": d" + labels[i]);
    }
    for (const nn::Parameter& parameter : store_.all()) {
      if (!parameter.buffer) {
        expect_gradient(autograd::grad(parameter.value), get("g." + parameter.name), 3 * tolerance,
                        name_ + ": gradient of " + parameter.name);
      }
    }
  }
  nn::ParameterStore& store() { return store_; }

 private:
  const io::Safetensors* file_;
  std::string name_;
  nn::ParameterStore store_;
};

}  // namespace vitrail::test
