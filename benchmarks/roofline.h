// Rates beside what the machine can do: its matrix peak and its memory, measured once in this process with as many
// threads as the benchmarks run on. A tensor that lies in the caches can be faster than memory.
#pragma once

#include <map>

#include <benchmark/benchmark.h>

#include "vitrail/kernels/peak.h"

namespace vitrail {

namespace roofline {

inline double peak_flops(DType dtype) {
  static std::map<DType, double> peaks;
  const auto [it, missing] = peaks.try_emplace(dtype, 0);
  if (missing) {
    it->second = 1e9 * kernels::measure_peak_gflops(dtype);
  }
  return it->second;
}

inline double bandwidth() {
  static const double best = 1e9 * kernels::measure_bandwidth();
  return best;
}

inline benchmark::Counter rate(double amount) {
  return {amount, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000};
}

}  // namespace roofline

// FLOP/s of a benchmark whose iterations compute `flops` each, and their share of the peak in `dtype` in per cent.
inline void report_flops(benchmark::State& state, double flops, DType dtype) {
  state.counters["FLOP/s"] = roofline::rate(flops);
  state.counters["%peak"] = roofline::rate(100 * flops / roofline::peak_flops(dtype));
}

// Bytes a second of a benchmark whose iterations read and write `bytes`, and their share of memory's in per cent.
inline void report_bytes(benchmark::State& state, double bytes) {
  state.counters["B/s"] = roofline::rate(bytes);
  state.counters["%memory"] = roofline::rate(100 * bytes / roofline::bandwidth());
}

}  // namespace vitrail
