// The views of an image that DINO learns from: benchmarks/compare/views.py has the same by torchvision.
#include <benchmark/benchmark.h>
#include <omp.h>

#include "vitrail/io/image.h"
#include "vitrail/train/pretrain/dino.h"

namespace vitrail {
namespace {

// An image of smooth colours with some noise, as photographs are.
io::Image photograph(std::int64_t width, std::int64_t height) {
  io::Image image(width, height);
  std::size_t i = 0;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t c = 0; c < 3; ++c, ++i) {
        image.pixels[i] = static_cast<std::uint8_t>((x * (c + 1) / 3 + y * (3 - c) / 3 + (x * 7 + y * 13) % 16) % 256);
      }
    }
  }
  return image;
}

// Two views of 224 × 224 pixels and eight of 96 × 96 of an image of 500 × 375, on one thread.
void dino_views(benchmark::State& state) {
  const io::Image image = photograph(500, 375);
  data::ImageConfig images;
  images.height = images.width = 224;
  const std::vector<data::Transform> views = train::PretrainDinoOptions().view_transforms(images, 96);
  omp_set_num_threads(1);
  std::uint64_t seed = 0;
  for (auto _ : state) {
    for (const data::Transform& view : views) {
      benchmark::DoNotOptimize(view(image, ++seed, 0, 0));
    }
  }
  state.SetItemsProcessed(state.iterations());
  omp_set_num_threads(omp_get_num_procs());
}
BENCHMARK(dino_views)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vitrail
