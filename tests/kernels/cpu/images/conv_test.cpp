#include "vitrail/kernels/conv.h"

#include "tests/support/golden.h"
#include "vitrail/kernels/layout.h"

namespace vitrail {
namespace {

// Images of one pixel are made as any tensor is: their memory is that of channels-last, their strides are not.
Tensor images_of(const Shape& shape, DType dtype, std::uint64_t seed) {
  const Tensor result = shape[2] == 1 ? Tensor::empty(shape, dtype) : kernels::empty_channels_last(shape, dtype);
  result.copy_from(test::as(test::random_tensor(shape, seed), dtype));
  return result;
}

// How many of a convolution with a kernel of 3 x 3 and its gradients are computed by reference code.
std::uint64_t slow_ones(std::int64_t side, std::int64_t stride, DType dtype) {
  const std::uint64_t before = kernels::slow_convolutions();
  const kernels::ConvGeometry geometry{{stride, stride}, {1, 1}, {1, 1}, 1};
  const std::int64_t out = (side - 1) / stride + 1;
  const Tensor x = images_of({4, 48, side, side}, dtype, 1);
  const Tensor weight = test::random_tensor({64, 48, 3, 3}, 2);
  const Tensor y = images_of({4, 64, out, out}, dtype, 3);
  kernels::convolution(x, weight, {}, geometry, y);
  kernels::convolution_input_gradient(y, weight, geometry, x);
  kernels::convolution_weight_gradient(x, y, geometry, weight, {});
  return kernels::slow_convolutions() - before;
}

TEST(Convolution, NeedsNoReferenceCodeForImagesOfOnePixel) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    EXPECT_EQ(slow_ones(1, 1, dtype), 0U) << name_of(dtype);
    EXPECT_EQ(slow_ones(2, 2, dtype), 0U) << name_of(dtype);
    EXPECT_EQ(slow_ones(8, 2, dtype), 0U) << name_of(dtype);
  }
}

}  // namespace
}  // namespace vitrail
