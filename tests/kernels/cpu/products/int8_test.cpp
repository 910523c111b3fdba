#include "vitrail/kernels/int8.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/targets.h"

namespace vitrail::kernels {
namespace {

using test::expect_close;
using test::random_tensor;

// What the documentation says, one number at a time.
struct Quantized {
  Tensor q;
  Tensor scales;
};

Quantized expected(const Tensor& x, float fixed) {
  Quantized result = {Tensor::empty(x.shape(), DType::i8), Tensor::empty({x.size(0)})};
  const std::vector<float> values = x.values();
  const std::int64_t width = x.size(1);
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    float largest = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      largest = std::max(largest, std::abs(values[static_cast<std::size_t>(row * width + i)]));
    }
    const float scale = fixed > 0 ? fixed : largest > 0 ? largest / 127 : 1;
    result.scales.data<float>()[row] = scale;
    for (std::int64_t i = 0; i < width; ++i) {
      const float v = std::nearbyint(values[static_cast<std::size_t>(row * width + i)] * (1 / scale));
      result.q.data<std::int8_t>()[row * width + i] = static_cast<std::int8_t>(std::clamp(v, -127.0F, 127.0F));
    }
  }
  return result;
}

TEST(QuantizeRows, RoundsByAScaleForEachRowOrAFixedOne) {
  test::for_each_target([](const std::string& target) {
    for (const std::int64_t width : {1, 7, 16, 65, 200}) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const float fixed : {0.0F, 0.01F}) {
          const Tensor x = test::as(random_tensor({5, width}, static_cast<std::uint64_t>(width)), dtype);
          x.narrow(0, 3, 1).fill(0);
          const Tensor q = Tensor::empty(x.shape(), DType::i8);
          const Tensor scales = Tensor::empty({5});
          quantize_rows(x, fixed > 0 ? Tensor::full({1}, fixed) : Tensor(), q, scales);
          const Quantized wanted = expected(x, fixed);
          expect_close(scales, wanted.scales, 1e-6, target);
          EXPECT_EQ(q.values(), wanted.q.values()) << target << " " << width << " " << name_of(dtype) << " " << fixed;
        }
      }
    }
  });
}

TEST(MatmulInt8, IsTheScaledProductOfWholeNumbers) {
  for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{1, 1, 1}, {3, 33, 17}, {65, 192, 576}, {197, 64, 100}}) {
    const Tensor x = random_tensor({m, k}, 1);
    const Tensor w = random_tensor({n, k}, 2);
    const Quantized a = expected(x, 0);
    const Quantized b = expected(w, 0);
    const Tensor bias = random_tensor({n}, 3);
    const Tensor residual = random_tensor({m, n}, 4);
    Tensor sums = Tensor::empty({m, n}, DType::i32);
    int8_sums(a.q, b.q, sums);
    Tensor wanted = Tensor::empty({m, n});
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        std::int32_t sum = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum += a.q.data<std::int8_t>()[i * k + p] * b.q.data<std::int8_t>()[j * k + p];
        }
        ASSERT_EQ(sums.data<std::int32_t>()[i * n + j], sum) << i << " " << j;
        wanted.data<float>()[i * n + j] =
            static_cast<float>(sum) * a.scales.data<float>()[i] * b.scales.data<float>()[j] + bias.data<float>()[j];
      }
    }
    const Tensor y = Tensor::empty({m, n});
    matmul_int8(a.q, a.scales, b.q, b.scales, {bias, Activation::identity, {}}, y);
    expect_close(y, wanted, 1e-6, "with bias");
    const Tensor z = Tensor::empty({m, n});
    matmul_int8(a.q, a.scales, b.q, b.scales, {bias, Activation::relu, residual}, z);
    for (std::int64_t i = 0; i < m * n; ++i) {
      wanted.data<float>()[i] = std::max(wanted.data<float>()[i], 0.0F) + residual.data<float>()[i];
    }
    expect_close(z, wanted, 1e-6, "with ReLU and residual");
    const Tensor low = Tensor::empty({m, n}, DType::bf16);
    matmul_int8(a.q, a.scales, b.q, b.scales, {bias, Activation::relu, test::as(residual, DType::bf16)}, low);
    expect_close(low, wanted, 2e-2, "in bf16");
    // What is done last is done behind the residual, with an activation before it or without.
    for (const Activation first : {Activation::identity, Activation::relu}) {
      const Epilogue sum = {bias, first, residual};
      const Epilogue with_last = {bias, first, residual, Activation::relu};
      matmul_int8(a.q, a.scales, b.q, b.scales, sum, y);
      matmul_int8(a.q, a.scales, b.q, b.scales, with_last, z);
      for (std::int64_t i = 0; i < m * n; ++i) {
        EXPECT_EQ(z.data<float>()[i], std::max(y.data<float>()[i], 0.0F)) << i;
      }
    }
  }
}

}  // namespace
}  // namespace vitrail::kernels
