#include "vitrail/train/bench/scaling.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <unordered_map>

#include "vitrail/dist/link.h"
#include "vitrail/tensor/clock.h"
#include "vitrail/tensor/median.h"
#include "vitrail/train/run/buckets.h"

namespace vitrail::train {
namespace {

using Clock = std::chrono::steady_clock;

// The expected largest of so many independent draws from the values, which are sorted.
double expected_largest(const std::vector<double>& sorted, std::int64_t draws) {
  const auto n = static_cast<double>(sorted.size());
  const auto p = static_cast<double>(draws);
  double sum = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto at = static_cast<double>(i);
    sum += sorted[i] * (std::pow((at + 1) / n, p) - std::pow(at / n, p));
  }
  return sum;
}

}  // namespace

MeasuredStep measure_step(BenchmarkOptions options, std::int64_t bucket_bytes) {
  check(options.training, "only training has gradients to send");
  MeasuredStep result;
  Clock::time_point began;
  const auto seconds = [&began] { return seconds_since(began); };
  std::unordered_map<const autograd::Slot*, double> complete;
  Buckets layout;
  std::vector<double> updates;
  std::vector<std::vector<double>> ready;  // by bucket
  std::int64_t steps = 0;
  options.watch = StepWatch{.begins =
                                [&](const nn::ParameterStore& parameters) {
                                  if (layout.places.empty()) {
                                    layout = make_buckets(parameters, bucket_bytes);
                                    ready.resize(layout.sizes.size());
                                  }
                                  complete.clear();
                                  began = Clock::now();
                                },
                            .complete = [&](const autograd::Slot& leaf) { complete[&leaf] = seconds(); },
                            .computed =
                                [&] {
                                  const double all = seconds();
                                  if (++steps > options.warmup) {
                                    std::vector<double> last(layout.sizes.size(), 0);
                                    for (const Buckets::Place& place : layout.places) {
                                      const auto found = complete.find(place.parameter->value.slot().get());
                                      // A gradient that is not there, or is completed by no call, is taken at the end.
                                      last[place.bucket] =
                                          std::max(last[place.bucket], found == complete.end() ? all : found->second);
                                    }
                                    for (std::size_t i = 0; i < last.size(); ++i) {
                                      ready[i].push_back(last[i] / all);
                                    }
                                    result.compute.push_back(all);
                                  }
                                  began = Clock::now();
                                },
                            .updated =
                                [&] {
                                  if (steps > options.warmup) {
                                    updates.push_back(seconds());
                                  }
                                }};
  const BenchmarkResult measured = benchmark(options);
  std::ranges::sort(result.compute);
  result.unit = measured.unit;
  result.units = measured.units_per_second * measured.step_ms_median / 1e3;
  result.update = median(updates);
  for (std::size_t i = 0; i < ready.size(); ++i) {
    result.buckets.push_back({static_cast<double>(layout.sizes[i]) * sizeof(float), median(ready[i])});
  }
  result.addition = dist::measure_addition();
  result.threads = measured.threads;
  result.cpu = measured.cpu;
  result.dtype = measured.dtype;
  result.note = measured.note;
  return result;
}

double sum_seconds(const Fabric& fabric, double bytes, double addition, const ScalingOptions& how) {
  const auto p = static_cast<double>(how.ranks);
  const double share = (p - 1) / p;
  return how.ranks == 1 ? 0
                        : 2 * (fabric.latency + (p - 2) * fabric.per_message) +
                              2 * share * bytes * how.wire / fabric.bytes_per_second + share * bytes / addition;
}

Prediction predict(const MeasuredStep& step, const Fabric& fabric, const ScalingOptions& how) {
  const auto p = static_cast<double>(how.ranks);
  const double slowest = expected_largest(step.compute, how.ranks);
  double bytes = 0;
  for (const MeasuredStep::Bucket& bucket : step.buckets) {
    bytes += bucket.bytes;
  }
  // The processor's work for what travels, and for its addition.
  const double work =
      how.ranks == 1 ? 0
                     : (p - 1) / p * bytes * (2 * how.wire * fabric.cpu_per_byte / step.threads + 1 / step.addition);
  const double last = slowest + work;
  double link = 0;  // when it is free again, from the beginning of the last batch
  for (const MeasuredStep::Bucket& bucket : step.buckets) {
    link = std::max(link, bucket.ready * last) + sum_seconds(fabric, bucket.bytes, step.addition, how);
  }
  Prediction result;
  result.exposed = how.ranks == 1 ? 0 : std::max(0.0, link - last) + 4 * fabric.latency;  // and the report of an update
  result.seconds = static_cast<double>(how.accumulated - 1) * slowest + last + result.exposed + step.update;
  const double units = step.units * static_cast<double>(how.accumulated);
  result.units_per_second = p * units / result.seconds;
  const double alone = static_cast<double>(how.accumulated) * expected_largest(step.compute, 1) + step.update;
  result.efficiency = alone / result.seconds;
  return result;
}

}  // namespace vitrail::train
