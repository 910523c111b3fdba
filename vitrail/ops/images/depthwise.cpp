#include "vitrail/ops/images/depthwise.h"

#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/depthwise.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

Tensor dense_channels(const Tensor& x) { return x.size(-1) <= 1 || x.stride(-1) == 1 ? x : x.contiguous(); }

// The weight [D, 1, k…] as [kernel positions, C], repeated for each group of channels.
Tensor rows_of_places(const Tensor& weight, std::int64_t channels) {
  const std::int64_t width = weight.size(0);
  const std::int64_t places = weight.numel() / width;
  const Tensor rows = weight.detach().reshape({width, places}).transpose(0, 1).reshape({places, 1, width});
  return rows.expand({places, channels / width, width}).contiguous().reshape({places, channels});
}

// The adjoint of rows_of_places(): the gradients of the groups of channels are added to that of the weight, of `shape`.
Tensor gradient_of_weight(const Tensor& rows, const Shape& shape) {
  const std::int64_t places = rows.size(0);
  const std::int64_t width = shape[0];
  const std::int64_t groups = rows.size(1) / width;
  Tensor result = Tensor::zeros({width, places});
  const float* from = rows.data<float>();
  auto* to = result.data<float>();
  for (std::int64_t place = 0; place < places; ++place) {
    for (std::int64_t c = 0; c < groups * width; ++c) {
      to[c % width * places + place] += from[place * groups * width + c];
    }
  }
  return result.reshape(shape);
}

}  // namespace

Size3 pooled_grid(const Size3& grid, const Size3& kernel, const Size3& stride, const Size3& padding) {
  Size3 result{};
  for (std::size_t i = 0; i < 3; ++i) {
    check(kernel[i] > 0 && stride[i] > 0 && padding[i] >= 0,
          "kernel and stride must be positive and padding not negative, not {}, {} and {}", kernel[i], stride[i],
          padding[i]);
    const std::int64_t padded = grid[i] + 2 * padding[i];
    check(kernel[i] <= padded, "a kernel of {} x {} x {} does not fit on a grid of {} x {} x {}", kernel[0], kernel[1],
          kernel[2], grid[0], grid[1], grid[2]);
    result[i] = (padded - kernel[i]) / stride[i] + 1;
  }
  return result;
}

Tensor depthwise_conv(const Tensor& x, const Tensor& weight, const DepthwiseOptions& options) {
  check(is_floating(x.dtype()) && x.rank() == 3, "depthwise_conv: x must be [B, N, C] f32 or bf16, not {} {}",
        x.shape(), name_of(x.dtype()));
  check(weight.dtype() == DType::f32 && (weight.rank() == 4 || weight.rank() == 5) && weight.size(1) == 1 &&
            weight.numel() > 0,
        "depthwise_conv: the weight must be [D, 1, kT, kH, kW] or [D, 1, kH, kW] f32, not {} {}", weight.shape(),
        name_of(weight.dtype()));
  check(x.size(2) % weight.size(0) == 0, "depthwise_conv: the {} channels of x are no multiple of the weight's {}",
        x.size(2), weight.size(0));
  kernels::DepthwiseGeometry g;
  g.input = options.grid;
  g.kernel = {weight.rank() == 5 ? weight.size(2) : 1, weight.size(-2), weight.size(-1)};
  g.stride = options.stride;
  g.padding = options.padding;
  g.prefix = options.prefix;
  g.output = pooled_grid(g.input, g.kernel, g.stride, g.padding);
  check(x.size(1) == g.prefix + g.input[0] * g.input[1] * g.input[2],
        "depthwise_conv: x {} does not hold {} tokens and a grid of {} x {} x {}", x.shape(), g.prefix, g.input[0],
        g.input[1], g.input[2]);
  const Tensor input = dense_channels(x.detach());
  const Tensor rows = rows_of_places(weight, x.size(2));
  const Tensor y = Tensor::empty({x.size(0), g.prefix + g.output[0] * g.output[1] * g.output[2], x.size(2)}, x.dtype());
  kernels::depthwise(input, rows, g, y);
  return autograd::record("depthwise_conv", y, {&x, &weight},
                          [input, rows, g, dx = Gradient(x), dweight = Gradient(weight)](const Tensor& given) {
                            const Tensor dy = dense_channels(given);
                            dx.write(dy.dtype(),
                                     [&](const Tensor& to) { kernels::depthwise_input_gradient(dy, rows, g, to); });
                            if (dweight.wanted()) {
                              const Tensor sums = Tensor::empty(rows.shape());
                              kernels::depthwise_weight_gradient(input, dy, g, sums);
                              dweight.add(gradient_of_weight(sums, dweight.shape()));
                            }
                          });
}

}  // namespace vitrail::ops
