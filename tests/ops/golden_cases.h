// The golden cases of the ops: numbered groups of operands, results and gradients (tools/golden/ops_*.py).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"

namespace vitrail::test {

// All tensors with one prefix.
class Case {
 public:
  Case(const io::Safetensors& file, const std::string& prefix) : prefix_(prefix) {
    for (const std::string& name : file.names()) {
      if (name.starts_with(prefix + ".")) {
        tensors_.emplace(name.substr(prefix.size() + 1), file.get(name));
      }
    }
  }
  bool exists() const { return !tensors_.empty(); }
  const std::string& name() const { return prefix_; }
  // The tensor of this name, or an undefined one.
  Tensor operator[](const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? Tensor() : found->second;
  }
  std::vector<std::int64_t> numbers(const std::string& name) const {
    const auto values = (*this)[name].span<std::int64_t>();
    return {values.begin(), values.end()};
  }

 private:
  std::string prefix_;
  std::map<std::string, Tensor> tensors_;
};

// Calls run(case) for "prefix.0", "prefix.1", …
inline void for_each_case(const std::string& prefix, const std::function<void(const Case&)>& run,
                          const std::string& path = "ops/gemm.safetensors") {
  const io::Safetensors file = golden(path);
  int i = 0;
  for (;; ++i) {
    const Case one(file, prefix + "." + std::to_string(i));
    if (!one.exists()) {
      break;
    }
    SCOPED_TRACE(one.name());
    run(one);
  }
  ASSERT_GT(i, 0) << "no cases of " << prefix;
}

using Operands = std::map<std::string, Tensor>;

// Runs function(operands) on the case's operands named in `data` (in `dtype`) and in `parameters` (f32), and compares
// the result and all gradients with the golden ones.
inline void expect_golden(const Case& one, const std::vector<std::string>& data,
                          const std::vector<std::string>& parameters, DType dtype, double tolerance,
                          const std::function<Tensor(const Operands&)>& function) {
  Operands operands;
  const auto take = [&](const std::string& name, DType as_dtype) {
    const Tensor value = one[name];
    Tensor leaf = value.defined() ? as(value, as_dtype) : Tensor();
    if (leaf.defined()) {
      autograd::require_grad(leaf);
    }
    operands[name] = leaf;
  };
  for (const std::string& name : data) {
    take(name, dtype);
  }
  for (const std::string& name : parameters) {
    take(name, DType::f32);
  }
  autograd::Tape tape;
  const Tensor y = function(operands);
  EXPECT_EQ(name_of(y.dtype()), name_of(dtype));
  expect_close(y, one["y"], tolerance, one.name() + ".y");
  tape.backward(y, as(one["dy"], dtype));
  for (const auto& [name, leaf] : operands) {
    if (leaf.defined()) {
      expect_close(autograd::grad(leaf), one["d" + name], tolerance, one.name() + ".d" + name);
      EXPECT_EQ(name_of(autograd::grad(leaf).dtype()), name_of(leaf.dtype())) << name;
    }
  }
}

}  // namespace vitrail::test
