/// \file
/// How fast several ranks would train together, computed from what one of them and the network were measured to do.
#pragma once

#include <cstdint>
#include <vector>

#include "vitrail/train/bench/benchmark.h"

namespace vitrail::train {

/// A network between ranks, of which each is as far from every other.
struct Fabric {
  double latency = 0;           ///< seconds of a small message
  double per_message = 0;       ///< seconds of each of many small messages
  double bytes_per_second = 0;  ///< that a rank sends while it receives as many
  double cpu_per_byte = 0;      ///< seconds of the processor for each byte that is sent while another is received
};

/// A step of training of one rank.
struct MeasuredStep {
  std::string unit;             ///< what `units` counts: "image" …
  double units = 0;             ///< of a step
  std::vector<double> compute;  ///< seconds of forward and backward, of several steps, sorted
  double update = 0;            ///< median seconds of the optimizer
  struct Bucket {
    double bytes = 0;  ///< in f32
    double ready = 0;  ///< when it is complete, as a share of `compute`; the median
  };
  std::vector<Bucket> buckets;  ///< in the order in which they are sent
  double addition = 0;          ///< bytes of f32 a second that this process adds to a sum
  int threads = 0;
  std::string cpu;
  std::string dtype;
  std::string note;  ///< as in BenchmarkResult
};
/// Measures steps of `options`, which must be of training; `bucket_bytes` are those of GradientSum.
MeasuredStep measure_step(BenchmarkOptions options, std::int64_t bucket_bytes);

/// How the ranks train.
struct ScalingOptions {
  std::int64_t ranks = 1;
  std::int64_t accumulated = 1;  ///< batches of each rank in an update
  double wire = 1;               ///< bytes that travel for one of f32: 0.5 with `--grad-dtype bf16`
};

/// An update of several ranks.
struct Prediction {
  double seconds = 0;
  double exposed = 0;  ///< seconds of them in which nothing is computed, because gradients travel
  double units_per_second = 0;
  double efficiency = 0;  ///< units a second, of those of as many ranks that never wait
};

/// Seconds of a sum of `bytes` of f32 over so many ranks, with nothing to do meanwhile (dist::TreeSum): 2 (p - 1)
/// messages, with 2 (p - 1) / p of the bytes, and the addition of (p - 1) / p of them.
double sum_seconds(const Fabric& fabric, double bytes, double addition, const ScalingOptions& how);

/// The update: all batches but the last, and then the last, in which each bucket is summed as soon as it is complete
/// and those before it are; the work of the processor for what travels is added to the computing. As all wait for the
/// slowest, each batch takes the expected largest of so many draws from the measured steps.
Prediction predict(const MeasuredStep& step, const Fabric& fabric, const ScalingOptions& how);

}  // namespace vitrail::train
