#include "vitrail/ops/images/conv.h"

#include <utility>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/conv.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/kernels/layout.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/products/linear_operands.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;
using Size2 = std::array<std::int64_t, 2>;

void check_operands(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  check(is_floating(x.dtype()), "conv2d: x must be f32 or bf16, not {}", name_of(x.dtype()));
  check(x.rank() == 4, "conv2d: x must be [B, C, H, W], not {}", x.shape());
  check(weight.rank() == 4 && weight.numel() > 0, "conv2d: the weight must be [O, C / groups, kH, kW], not {}",
        weight.shape());
  check(weight.dtype() == DType::f32, "conv2d: the weight must be f32, not {}", name_of(weight.dtype()));
  check(options.groups > 0 && weight.size(0) % options.groups == 0,
        "conv2d: the {} output channels of the weight {} do not divide into {} groups", weight.size(0), weight.shape(),
        options.groups);
  check(x.size(1) == weight.size(1) * options.groups,
        "conv2d: x {} has {} channels, but the weight {} in {} groups takes {}", x.shape(), x.size(1), weight.shape(),
        options.groups, weight.size(1) * options.groups);
  if (bias.defined()) {
    check(bias.shape() == Shape{weight.size(0)} && bias.dtype() == DType::f32,
          "conv2d: the bias must be [{}] f32, not {} {}", weight.size(0), bias.shape(), name_of(bias.dtype()));
  }
}

Shape output_shape(const Tensor& x, const Tensor& weight, const ConvOptions& options) {
  Shape shape{x.size(0), weight.size(0), 0, 0};
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t stride = options.stride[at];
    const std::int64_t padding = options.padding[at];
    const std::int64_t dilation = options.dilation[at];
    check(stride > 0 && dilation > 0 && padding >= 0,
          "conv2d: stride and dilation must be positive and padding not negative, not {}, {} and {}", stride, dilation,
          padding);
    const std::int64_t reach = dilation * (weight.size(2 + i) - 1) + 1;
    const std::int64_t padded = x.size(2 + i) + 2 * padding;
    check(reach <= padded, "conv2d: the kernel reaches over {} pixels, but x {} with padding {} has only {}", reach,
          x.shape(), padding, padded);
    shape[2 + i] = (padded - reach) / stride + 1;
  }
  return shape;
}

// Whether the kernel moves by its own size, so that each pixel is read once: then the convolution is a linear map of
// patches.
bool cuts_patches(const Tensor& weight, const ConvOptions& options) {
  return options.groups == 1 && options.padding == Size2{0, 0} && options.dilation == Size2{1, 1} &&
         options.stride == Size2{weight.size(2), weight.size(3)};
}

// Whether the kernel is 1 x 1 and reads every pixel: then the convolution is a linear map of the pixels.
bool maps_pixels(const Tensor& weight, const ConvOptions& options) {
  return weight.size(2) == 1 && weight.size(3) == 1 && cuts_patches(weight, options);
}

// The pixels of x [B, C, H, W] as rows [B H W, C], detached.
Tensor pixel_rows(const Tensor& x) { return rows_of(kernels::pixels(kernels::channels_last(x))); }

// act(x W + bias + residual) for each pixel, without gradients. The result takes the memory of `residual` if that is
// not shared and the kernel can add in place.
Tensor pixels_mapped(const Tensor& x, const Tensor& matrix, const Tensor& bias,
                     Activation activation = Activation::identity, Tensor residual = {}) {
  kernels::Epilogue epilogue{.bias = bias, .residual = {}, .last = activation};
  const bool free = residual.defined() && !residual.is_shared() && kernels::adds_in_place(epilogue, x.dtype());
  if (residual.defined()) {
    residual = kernels::channels_last(residual);
    epilogue.residual = pixel_rows(residual);
  }
  Tensor y = free ? residual : kernels::empty_channels_last(x.shape().with(1, matrix.size(0)), x.dtype());
  kernels::matmul_packed(pixel_rows(x), matrix.transpose(0, 1), epilogue, pixel_rows(y));
  return y;
}

// The 1 x 1 convolution of all pixels, recorded as a linear map.
Tensor map_pixels(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor matrix = weight.detach().reshape({weight.size(0), weight.size(1)});
  return autograd::record(
      "linear", pixels_mapped(x, matrix, bias), {&x, &weight, &bias},
      [saved = autograd::requires_grad(weight) || autograd::requires_grad(bias) ? autograd::SavedTensor(x)
                                                                                : autograd::SavedTensor(),
       matrix, dx = Gradient(x), dweight = Gradient(weight), dbias = Gradient(bias)](const Tensor& dy) {
        const Tensor dy_rows = pixel_rows(dy);
        if (dweight.wanted() || dbias.wanted()) {
          add_parameter_gradients(pixel_rows(saved.get()), dy_rows, dweight, dbias);
        }
        const auto write = [&](const Tensor& to, const Tensor& more) {
          kernels::matmul_packed(
              dy_rows, matrix, {.bias = {}, .residual = more.defined() ? pixel_rows(more) : Tensor()}, pixel_rows(to));
        };
        if (kernels::adds_in_place({}, dy.dtype())) {
          dx.accumulate(dy.dtype(), {0, 2, 3, 1}, write);
        } else if (dx.wanted()) {
          const Tensor contribution = kernels::empty_channels_last(dx.shape(), dy.dtype());
          write(contribution, {});
          dx.add(contribution);
        }
      });
}

// x in channels-last memory that may be overwritten: that of x if it is not shared, else a copy.
Tensor owned_channels_last(Tensor x) {
  if (!x.is_shared()) {
    return kernels::channels_last(x);
  }
  const Tensor copy = kernels::empty_channels_last(x.shape(), x.dtype());
  kernels::copy_layout(x, copy);
  return copy;
}

// The patches of x [B, C, H, W] as a view [B, H', W', C, kH, kW]; pixels beyond the last whole patch are left out.
Tensor tiles_of(const Tensor& x, const Size2& kernel) {
  const std::int64_t rows = x.size(2) / kernel[0];
  const std::int64_t columns = x.size(3) / kernel[1];
  const Tensor whole = x.narrow(2, 0, rows * kernel[0]).narrow(3, 0, columns * kernel[1]);
  return whole.reshape({x.size(0), x.size(1), rows, kernel[0], columns, kernel[1]}).permute({0, 2, 4, 1, 3, 5});
}

// The patches of x [B, C, H, W] as rows of features, [B, H', W', C kH kW].
Tensor patches_of(const Tensor& x, const Size2& kernel) {
  const Tensor tiles = tiles_of(kernels::row_major(x.detach()), kernel);
  const Tensor patches = Tensor::empty_like(tiles);
  kernels::copy_layout(tiles, patches);
  const Shape shape{tiles.size(0), tiles.size(1), tiles.size(2), tiles.size(3) * kernel[0] * kernel[1]};
  return autograd::record("patches", patches.reshape(shape), {&x},
                          [kernel, patch_shape = patches.shape(), dx = Gradient(x)](const Tensor& dy) {
                            Tensor contribution = Tensor::zeros(dx.shape(), dy.dtype());
                            kernels::copy_layout(dy.reshape(patch_shape), tiles_of(contribution, kernel));
                            dx.add(std::move(contribution));
                          });
}

Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias, const kernels::ConvGeometry& geometry,
                const Shape& shape) {
  const Tensor input = kernels::channels_last(x);
  const Tensor dense = weight.detach().contiguous();
  const Tensor y = kernels::empty_channels_last(shape, x.dtype());
  if (y.numel() > 0) {
    kernels::convolution(input, dense, bias.defined() ? bias.contiguous() : Tensor(), geometry, y);
  }
  return autograd::record(
      "conv2d", y, {&x, &weight, &bias},
      [input, dense, geometry, dx = Gradient(x), dweight = Gradient(weight), dbias = Gradient(bias)](const Tensor& dy) {
        const Tensor gradient = kernels::channels_last(dy);
        const bool empty = gradient.numel() == 0;
        if (dx.wanted()) {
          const Tensor contribution = kernels::empty_channels_last(dx.shape(), dy.dtype());
          if (!empty) {
            kernels::convolution_input_gradient(gradient, dense, geometry, contribution);
          }
          dx.add(contribution);
        }
        if (dweight.wanted() || dbias.wanted()) {
          Tensor dw = empty ? Tensor::zeros(dense.shape()) : Tensor::empty(dense.shape());
          Tensor db = dbias.wanted() ? Tensor::zeros(dbias.shape()) : Tensor();
          if (!empty) {
            kernels::convolution_weight_gradient(input, gradient, geometry, dw, db);
          }
          dweight.add(std::move(dw));
          dbias.add(std::move(db));
        }
      });
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  check_operands(x, weight, bias, options);
  const Shape shape = output_shape(x, weight, options);
  if (maps_pixels(weight, options)) {
    return map_pixels(x, weight, bias);
  }
  if (cuts_patches(weight, options)) {
    const Tensor matrix = reshape(weight, {weight.size(0), weight.numel() / weight.size(0)});
    return permute(linear(patches_of(x, {weight.size(2), weight.size(3)}), matrix, bias), {0, 3, 1, 2});
  }
  return convolve(x, weight, bias, {options.stride, options.padding, options.dilation, options.groups}, shape);
}

Tensor conv2d_activated(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options,
                        Activation activation, Tensor residual) {
  check(!autograd::recording({&x, &weight, &bias, &residual}), "conv2d_activated: this form has no gradient");
  check_operands(x, weight, bias, options);
  const Shape shape = output_shape(x, weight, options);
  check(!residual.defined() || (residual.shape() == shape && residual.dtype() == x.dtype()),
        "conv2d_activated: the residual must be {} {}", shape, name_of(x.dtype()));
  if (maps_pixels(weight, options)) {
    const Tensor matrix = weight.detach().reshape({weight.size(0), weight.size(1)});
    return autograd::record("linear", pixels_mapped(x, matrix, bias, activation, std::move(residual)), {},
                            [](const Tensor&) {});
  }
  const bool relu = activation == Activation::relu;
  if (relu || (activation == Activation::identity && residual.defined())) {
    const bool add = residual.defined();
    const Tensor y = add ? owned_channels_last(std::move(residual)) : kernels::empty_channels_last(shape, x.dtype());
    if (y.numel() > 0) {
      kernels::convolution(
          kernels::channels_last(x), weight.detach().contiguous(), bias.defined() ? bias.contiguous() : Tensor(),
          {options.stride, options.padding, options.dilation, options.groups}, y, {.add = add, .relu = relu});
    }
    return autograd::record("conv2d", y, {}, [](const Tensor&) {});
  }
  const Tensor y = kernels::pixels(conv2d(x, weight, bias, options));  // [B, H', W', O]
  const Tensor sum = residual.defined() ? y + kernels::pixels(kernels::channels_last(residual)) : y;
  return activate(sum, activation).permute({0, 3, 1, 2});
}

}  // namespace vitrail::ops
