// The affine map with its parameters.
#pragma once

#include <cstdint>

#include "vitrail/nn/parameters.h"
#include "vitrail/ops/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// y = x Wᵀ + b: x [..., in] → [..., out] (torch.nn.Linear). Parameters `weight` [out, in] and, with `bias`, `bias`
// [out], both drawn from uniform(±1/√in).
// Where the scope says that the weight is quantized, `weight` is a buffer of i8 beside the buffers `weight_scale` [out]
// and, if the scale of the inputs is fixed, `input_scale` [1], and the product runs in int8 (ops::QuantizedWeight).
// Along tokens it maps the second last dimension instead: x [..., in, D] → [..., out, D].
enum class Along { features, tokens };
struct Linear {
  Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool bias = true, Along along = Along::features);
  Tensor operator()(const Tensor& x) const;
  // act(x Wᵀ + b) + residual in one pass over memory; `residual`, of the result's shape, may be undefined.
  Tensor operator()(const Tensor& x, ops::Activation activation, const Tensor& residual = {}) const;

  // fvcore's count for `rows` rows (along tokens, that many features): one multiply-accumulate = one flop, the bias not
  // counted.
  std::int64_t flops(std::int64_t rows) const { return rows * weight.numel(); }
  std::int64_t in_features() const { return weight.size(1); }
  std::int64_t out_features() const { return weight.size(0); }

  Along along;
  Tensor weight;
  Tensor bias;          // undefined without
  Tensor weight_scale;  // undefined unless quantized
  Tensor input_scale;   // undefined unless quantized with a fixed scale
};

// While one is alive on a thread, it sees the inputs of all linear maps that are applied there: how large they get is
// what the fixed scales of quantized ones are chosen by.
class InputObserver {
 public:
  InputObserver();
  virtual ~InputObserver();
  InputObserver(const InputObserver&) = delete;
  InputObserver& operator=(const InputObserver&) = delete;

  virtual void input(const Tensor& weight, const Tensor& x) = 0;
};

}  // namespace vitrail::nn
