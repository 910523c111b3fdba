// The matching of predictions and objects: benchmarks/compare/detection.py has the same by transformers.
#include <benchmark/benchmark.h>

#include "vitrail/tensor/random.h"
#include "vitrail/train/detection/criterion.h"

namespace vitrail {
namespace {

// Some queries for the objects of some images, from each layer of a decoder; costs included.
void match_layers(benchmark::State& state, std::int64_t layers, std::int64_t images, std::int64_t queries,
                  std::int64_t classes, int objects) {
  const std::int64_t sets = layers * images;
  Draws draws(Philox(0, hash("matching")));
  models::SetPredictions predictions{Tensor::empty({sets, queries, classes + 1}), Tensor::empty({sets, queries, 4})};
  for (float& logit : predictions.logits.span<float>()) {
    logit = static_cast<float>(draws.normal());
  }
  for (float& number : predictions.boxes.span<float>()) {
    number = static_cast<float>(draws.uniform(0.2, 0.8));
  }
  std::vector<train::ObjectSet> targets(static_cast<std::size_t>(images));
  for (train::ObjectSet& target : targets) {
    for (int i = 0; i < objects; ++i) {
      target.labels.push_back(draws.integer(0, classes));
      target.boxes.push_back(data::centred_box(draws.uniform(0.3, 0.7), draws.uniform(0.3, 0.7),
                                               draws.uniform(0.1, 0.5), draws.uniform(0.1, 0.5)));
    }
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(train::match(predictions, targets));
  }
}
BENCHMARK_CAPTURE(match_layers, six, 6, 64, 100, 91, 30)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(match_layers, scenes, 3, 32, 16, 32, 4)->Unit(benchmark::kMillisecond);  // a step of script/detection

}  // namespace
}  // namespace vitrail
