#include "vitrail/kernels/peak.h"

#include <algorithm>
#include <chrono>

#include "vitrail/kernels/gemm.h"

namespace vitrail::kernels {

double measure_peak_gflops(DType dtype, std::int64_t m, std::int64_t k, std::int64_t n, int runs) {
  check(dtype == DType::f32 || dtype == DType::bf16, "the peak is measured in f32 or bf16, not in {}", name_of(dtype));
  check(m > 0 && k > 0 && n > 0 && runs > 0, "the peak cannot be measured by {} products of [{}, {}] and [{}, {}]",
        runs, m, k, k, n);
  // Numbers of usual size: zeros might be faster, subnormal ones slower.
  const Tensor a = Tensor::full({m, k}, 0.5, dtype);
  const Tensor weight = Tensor::full({k, n}, 0.25);
  const Tensor c = Tensor::empty({m, n}, dtype);
  matmul_packed(a, weight, {}, c);  // packs the weight and touches all memory
  double fastest = 1e30;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    matmul_packed(a, weight, {}, c);
    fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return 2e-9 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n) / fastest;
}

}  // namespace vitrail::kernels
