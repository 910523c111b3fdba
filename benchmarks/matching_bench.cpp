// The matching of predictions and objects: benchmarks/compare/detection.py has the same by transformers.
#include <benchmark/benchmark.h>

#include "vitrail/tensor/random.h"
#include "vitrail/train/detection/criterion.h"

namespace vitrail {
namespace {

// 64 images of 30 objects, 100 queries of 92 classes, six layers of a decoder; costs included.
void match_six_layers(benchmark::State& state) {
  constexpr std::int64_t images = 64;
  constexpr std::int64_t sets = 6 * images;
  Draws draws(Philox(0, hash("matching")));
  models::SetPredictions predictions{Tensor::empty({sets, 100, 92}), Tensor::empty({sets, 100, 4})};
  for (float& logit : predictions.logits.span<float>()) {
    logit = static_cast<float>(draws.normal());
  }
  for (float& number : predictions.boxes.span<float>()) {
    number = static_cast<float>(draws.uniform(0.2, 0.8));
  }
  std::vector<train::ObjectSet> targets(images);
  for (train::ObjectSet& target : targets) {
    for (int i = 0; i < 30; ++i) {
      target.labels.push_back(draws.integer(0, 91));
      target.boxes.push_back(data::centred_box(draws.uniform(0.3, 0.7), draws.uniform(0.3, 0.7),
                                               draws.uniform(0.1, 0.5), draws.uniform(0.1, 0.5)));
    }
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(train::match(predictions, targets));
  }
}
BENCHMARK(match_six_layers)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vitrail
