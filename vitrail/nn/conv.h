// Convolution and batch normalization over pictures, with their parameters.
#pragma once

#include <array>
#include <cstdint>

#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/ops/conv.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// x [B, in, H, W] → [B, out, H', W'], y[o] = b[o] + Σ_i W[o, i] ⋆ x[i] (torch.nn.Conv2d; ops::conv2d says H').
// Parameters `weight` [out, in / groups, kH, kW] and, with `bias`, `bias` [out], drawn from uniform(±1/√fan_in).
struct Conv2d {
  Conv2d(const Scope& scope, std::int64_t in, std::int64_t out, std::array<std::int64_t, 2> kernel,
         const ops::ConvOptions& options = {}, bool bias = true);
  Tensor operator()(const Tensor& x) const;

  // fvcore's count for one picture with an output of `rows` × `columns`.
  std::int64_t flops(std::int64_t rows, std::int64_t columns) const { return rows * columns * weight.numel(); }
  // Rows and columns that come out for pictures of `size`.
  Size2 output_size(const Size2& size) const;

  ops::ConvOptions options;
  Tensor weight;
  Tensor bias;  // undefined without
};

// (x - mean) / √(var + eps) · weight + bias for each channel of x [B, C, H, W] (torch.nn.BatchNorm2d). In training the
// statistics are the batch's, and the running ones follow them; otherwise the running ones are used. Parameters
// `weight` and `bias` [C]; buffers `running_mean`, `running_var` [C] and the count `num_batches_tracked` [].
struct BatchNorm2d {
  BatchNorm2d(const Scope& scope, std::int64_t channels, float eps = 1e-5F, float momentum = 0.1F);
  Tensor operator()(const Tensor& x, const Pass& pass) const;
  // fvcore's count for a picture of `size`: 2 an element.
  std::int64_t flops(const Size2& size) const { return 2 * size[0] * size[1] * weight.numel(); }

  float eps;
  float momentum;
  Tensor weight;
  Tensor bias;
  Tensor running_mean;
  Tensor running_var;
  Tensor num_batches_tracked;
};

}  // namespace vitrail::nn
