// The affine map with its parameters.
#pragma once

#include <cstdint>

#include "vitrail/nn/parameters.h"
#include "vitrail/ops/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// y = x Wᵀ + b: x [..., in] → [..., out] (torch.nn.Linear). Parameters `weight` [out, in] and, with `bias`, `bias`
// [out], both drawn from uniform(±1/√in).
struct Linear {
  Linear(const Scope& scope, std::int64_t in, std::int64_t out, bool bias = true);
  Tensor operator()(const Tensor& x) const;
  // act(x Wᵀ + b) + residual in one pass over memory; `residual` [..., out] may be undefined.
  Tensor operator()(const Tensor& x, ops::Activation activation, const Tensor& residual = {}) const;

  // fvcore's count for `rows` rows: one multiply-accumulate = one flop, the bias not counted.
  std::int64_t flops(std::int64_t rows) const { return rows * weight.numel(); }
  std::int64_t in_features() const { return weight.size(1); }
  std::int64_t out_features() const { return weight.size(0); }

  Tensor weight;
  Tensor bias;  // undefined without
};

}  // namespace vitrail::nn
