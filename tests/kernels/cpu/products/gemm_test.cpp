#include "vitrail/kernels/gemm.h"

#include <array>
#include <thread>

#include "tests/support/golden.h"
#include "vitrail/kernels/cpu.h"
#include "vitrail/kernels/peak.h"

namespace vitrail::test {
namespace {

// c = a · b, plainly, in double.
Tensor naive_product(const Tensor& a, const Tensor& b) {
  const std::vector<float> x = a.values();
  const std::vector<float> y = b.values();
  const auto m = static_cast<std::size_t>(a.size(0));
  const auto k = static_cast<std::size_t>(a.size(1));
  const auto n = static_cast<std::size_t>(b.size(1));
  std::vector<float> c(m * n);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t l = 0; l < k; ++l) {
        sum += static_cast<double>(x[i * k + l]) * static_cast<double>(y[l * n + j]);
      }
      c[i * n + j] = static_cast<float>(sum);
    }
  }
  return Tensor::from(c, {a.size(0), b.size(1)});
}

constexpr std::array<std::array<std::int64_t, 3>, 9> sizes = {{{1, 1, 1},
                                                               {3, 7, 5},
                                                               {17, 65, 1},
                                                               {1, 64, 33},
                                                               {65, 192, 64},
                                                               {130, 96, 257},
                                                               {256, 64, 64},
                                                               {5, 1, 9},
                                                               {513, 64, 97}}};  // in bf16 by pairs

TEST(Gemm, AgreesWithTheNaiveProduct) {
  for (const auto& [m, k, n] : sizes) {
    SCOPED_TRACE((Shape{m, k, n}.str()));
    const Tensor a = random_tensor({m, k}, 1);
    const Tensor b = random_tensor({k, n}, 2);
    const Tensor expected = naive_product(a, b);
    const Tensor c = Tensor::empty({m, n});
    kernels::matmul(a, b, c);
    expect_close(c, expected, 1e-5, "plain");
    kernels::matmul_packed(a, b, {}, c);
    expect_close(c, expected, 1e-5, "packed");
    const Tensor transposed = b.transpose(0, 1).clone();
    kernels::matmul_packed(a, transposed.transpose(0, 1), {}, c);
    expect_close(c, expected, 1e-5, "packed from a transposed view");
    const Tensor half = as(a, DType::bf16);
    const Tensor rounded = as(b, DType::bf16);
    kernels::matmul(half, rounded, c);
    expect_close(c, naive_product(half, rounded), 1e-5, "bf16 operands, f32 product");
    const Tensor d = Tensor::empty({m, n}, DType::bf16);
    kernels::matmul_packed(half, b, {}, d);
    expect_close(d, expected, 2e-2, "bf16, packed");
  }
}

TEST(Gemm, AddsUpTheWeightGradient) {
  for (const auto& [m, k, n] : sizes) {
    SCOPED_TRACE((Shape{m, k, n}.str()));
    const Tensor x = random_tensor({m, k}, 1);
    const Tensor dy = random_tensor({m, n}, 2);
    const Tensor dw = Tensor::empty({n, k});
    const Tensor db = Tensor::empty({n});
    kernels::weight_gradient(x, dy, dw, db);
    expect_close(dw, naive_product(dy.transpose(0, 1), x), 1e-5);
    expect_close(db, naive_product(dy.transpose(0, 1), Tensor::full({m, 1}, 1)).reshape({n}), 1e-5);
    for (const Tensor& sums : {Tensor(), Tensor::empty({n})}) {
      kernels::weight_gradient(as(x, DType::bf16), as(dy, DType::bf16), dw, sums);
      expect_close(dw, naive_product(dy.transpose(0, 1), x), 2e-2);
      if (sums.defined()) {
        expect_close(sums, db, 2e-2);
      }
    }
  }
}

TEST(Gemm, HonoursTheNumberOfThreads) {
  const int before = kernels::threads();
  const Tensor a = random_tensor({300, 128}, 1);
  const Tensor b = random_tensor({128, 200}, 2);
  const Tensor expected = naive_product(a, b);
  for (const int count : {1, 2, 3}) {
    kernels::set_threads(count);
    EXPECT_EQ(kernels::threads(), count);
    const Tensor c = Tensor::empty({300, 200});
    kernels::matmul_packed(a, b, {}, c);
    expect_close(c, expected, 1e-5);
  }
  kernels::set_threads(before);
  EXPECT_THROW(kernels::set_threads(0), Error);
}

TEST(Gemm, MayBeCalledFromSeveralThreads) {
  const Tensor weight = random_tensor({64, 48}, 1);
  std::vector<std::thread> callers;
  std::array<double, 4> errors{};
  for (std::size_t t = 0; t < errors.size(); ++t) {
    callers.emplace_back([&, t] {
      for (std::int64_t m = 1; m < 12; ++m) {
        const Tensor a = random_tensor({m, 64}, t);
        const Tensor c = Tensor::empty({m, 48});
        kernels::matmul_packed(a, weight, {}, c);
        errors[t] = std::max(errors[t], relative_error(c, naive_product(a, weight)));
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  for (const double error : errors) {
    EXPECT_LE(error, 1e-5);
  }
}

TEST(Peak, IsMeasured) {
  EXPECT_GT(kernels::measure_peak_gflops(DType::f32, 64, 64, 64, 2), 0);
  EXPECT_GT(kernels::measure_peak_gflops(DType::bf16, 64, 64, 64, 2), 0);
  EXPECT_GT(kernels::measure_peak_gflops(DType::i8, 64, 64, 64, 2), 0);
  EXPECT_THROW(kernels::measure_peak_gflops(DType::i64), Error);
  EXPECT_GT(kernels::measure_bandwidth(1 << 12, 2), 0);
  EXPECT_FALSE(kernels::cpu_name().empty());
}

}  // namespace
}  // namespace vitrail::test
