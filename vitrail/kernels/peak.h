// What this machine can do at best, to measure everything else by.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

// The matrix-multiply peak in GF/s (a multiply-accumulate counts as two): oneDNN's product [m, k] · [k, n] with packed
// weights in `dtype` (f32, bf16, or i8 into i32) by all threads, the fastest of `runs`. The default size takes some
// tenths of a second.
double measure_peak_gflops(DType dtype, std::int64_t m = 2048, std::int64_t k = 1024, std::int64_t n = 2048,
                           int runs = 12);

// The memory bandwidth in GB/s: c = a + b over tensors of `elements` f32 numbers each, larger than the caches, by all
// threads; bytes read and written as the program sees them, the fastest of `runs`.
double measure_bandwidth(std::int64_t elements = 1 << 24, int runs = 5);

}  // namespace vitrail::kernels
