// What this machine can do at best, to measure everything else by.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

// The matrix-multiply peak in GF/s (a multiply-accumulate counts as two): oneDNN's product [m, k] · [k, n] with packed
// weights in `dtype` (f32 or bf16) by all threads, the fastest of `runs`. The default size takes some tenths of a
// second.
double measure_peak_gflops(DType dtype, std::int64_t m = 2048, std::int64_t k = 1024, std::int64_t n = 2048,
                           int runs = 12);

}  // namespace vitrail::kernels
