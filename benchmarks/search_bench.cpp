// Exact search in an index of image features: bytes/s of the features, which are read once.
#include <benchmark/benchmark.h>

#include "benchmarks/op_bench.h"
#include "benchmarks/roofline.h"
#include "vitrail/train/study/image_index.h"

namespace vitrail {
namespace {

// range(0) queries of 384 numbers in an index of a million images.
void search_images(benchmark::State& state) {
  train::ImageIndex index;
  index.features = normal({1'000'000, 384}, DType::bf16);
  const Tensor queries = normal({state.range(0), 384}, DType::f32);
  for (auto _ : state) {
    benchmark::DoNotOptimize(train::search(index, queries, 20));
  }
  report_bytes(state, static_cast<double>(index.features.bytes()));
}
BENCHMARK(search_images)->ArgName("queries")->Arg(1)->Arg(8)->Arg(100)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace vitrail
