#include "vitrail/kernels/peak.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "vitrail/kernels/elementwise.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/kernels/int8.h"
#include "vitrail/tensor/clock.h"

namespace vitrail::kernels {
namespace {

// The time in seconds of the fastest of `runs` calls, after a first one that touches all memory.
template <class Function>
double fastest(int runs, Function&& function) {
  function();
  double result = 1e30;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    function();
    result = std::min(result, seconds_since(start));
  }
  return result;
}

}  // namespace

double measure_peak_gflops(DType dtype, std::int64_t m, std::int64_t k, std::int64_t n, int runs) {
  check(dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::i8,
        "the peak is measured in f32, bf16 or i8, not in {}", name_of(dtype));
  check(m > 0 && k > 0 && n > 0 && runs > 0, "the peak cannot be measured by {} products of [{}, {}] and [{}, {}]",
        runs, m, k, k, n);
  double seconds = 0;
  if (dtype == DType::i8) {
    const Tensor a = Tensor::full({m, k}, 3, dtype);
    const Tensor weight = Tensor::full({n, k}, 2, dtype);
    const Tensor c = Tensor::empty({m, n}, DType::i32);
    seconds = fastest(runs, [&] { int8_sums(a, weight, c); });
  } else {
    // The operands have ordinary values: zeros might be faster, subnormal numbers slower.
    const Tensor a = Tensor::full({m, k}, 0.5, dtype);
    const Tensor weight = Tensor::full({k, n}, 0.25);
    const Tensor c = Tensor::empty({m, n}, dtype);
    seconds = fastest(runs, [&] { matmul_packed(a, weight, {}, c); });
  }
  return 2e-9 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n) / seconds;
}

double measure_bandwidth(std::int64_t elements, int runs) {
  check(elements > 0 && runs > 0, "bandwidth cannot be measured by {} sums of {} elements", runs, elements);
  const Tensor a = Tensor::full({elements}, 0.5);
  const Tensor b = Tensor::full({elements}, 0.25);
  const Tensor c = Tensor::empty({elements});
  const std::array operands = {Operand{a.raw(), a.strides()}, Operand{b.raw(), b.strides()}};
  const double seconds =
      fastest(runs, [&] { elementwise(Elementwise::add, operands, c.raw(), c.shape(), DType::f32); });
  return 1e-9 * 3 * static_cast<double>(a.bytes()) / seconds;
}

}  // namespace vitrail::kernels
