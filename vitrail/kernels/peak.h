/// \file
/// The peak throughput and memory bandwidth of this machine, against which everything else is measured.
#pragma once

#include <cstdint>

#include "vitrail/tensor/dtype.h"

namespace vitrail::kernels {

/// The peak of matrix products in GF/s (a multiply-accumulate counts as two operations): oneDNN's product [m, k] ·
/// [k, n] with packed weights in `dtype` (f32, bf16, or i8 into i32; else Error) by all threads, the fastest of `runs`.
/// The default size takes some tenths of a second.
double measure_peak_gflops(DType dtype, std::int64_t m = 2048, std::int64_t k = 1024, std::int64_t n = 2048,
                           int runs = 12);

/// The memory bandwidth in GB/s: of c = a + b over tensors of `elements` f32 numbers each, larger than the caches, by
/// all threads, the fastest of `runs`. It counts the bytes that the program reads and writes.
double measure_bandwidth(std::int64_t elements = 1 << 24, int runs = 5);

}  // namespace vitrail::kernels
