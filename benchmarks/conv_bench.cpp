// Convolutions of images and clips at the sizes of vision models, and their gradients, in FLOP/s; depthwise ones, which
// memory bounds, in bytes a second.
#include <benchmark/benchmark.h>

#include "benchmarks/op_bench.h"
#include "benchmarks/roofline.h"
#include "vitrail/kernels/conv.h"
#include "vitrail/kernels/layout.h"
#include "vitrail/ops/images/conv3d.h"
#include "vitrail/ops/images/depthwise.h"

namespace vitrail {
namespace {

// Arguments: B, C, H = W, O, kernel, stride, bf16.
struct ConvCase {
  explicit ConvCase(const benchmark::State& state)
      : dtype(state.range(6) != 0 ? DType::bf16 : DType::f32),
        x(kernels::channels_last(normal({state.range(0), state.range(1), state.range(2), state.range(2)}, dtype))),
        weight(normal({state.range(3), state.range(1), state.range(4), state.range(4)}, DType::f32)) {
    const std::int64_t kernel = state.range(4);
    const std::int64_t stride = state.range(5);
    const std::int64_t padding = stride == kernel ? 0 : kernel / 2;  // patches, or an image of the same size
    geometry.stride = {stride, stride};
    geometry.padding = {padding, padding};
    const std::int64_t out = (state.range(2) + 2 * padding - kernel) / stride + 1;
    y = kernels::channels_last(normal({state.range(0), state.range(3), out, out}, dtype, 1));
  }
  void report(benchmark::State& state) const {
    report_flops(state, 2.0 * static_cast<double>(y.numel()) * static_cast<double>(weight.numel() / weight.size(0)),
                 dtype);
    state.SetLabel(std::string(name_of(dtype)));
  }

  DType dtype;
  Tensor x, weight, y;
  kernels::ConvGeometry geometry;
};

void convolution(benchmark::State& state) {
  const ConvCase c(state);
  for (auto _ : state) {
    kernels::convolution(c.x, c.weight, {}, c.geometry, c.y);
  }
  c.report(state);
}

void convolution_input_gradient(benchmark::State& state) {
  const ConvCase c(state);
  for (auto _ : state) {
    kernels::convolution_input_gradient(c.y, c.weight, c.geometry, c.x);
  }
  c.report(state);
}

void convolution_weight_gradient(benchmark::State& state) {
  const ConvCase c(state);
  const Tensor dweight = Tensor::empty(c.weight.shape());
  for (auto _ : state) {
    kernels::convolution_weight_gradient(c.x, c.y, c.geometry, dweight, {});
  }
  c.report(state);
}

void images(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"B", "C", "H", "O", "kernel", "stride", "bf16"})
      ->ArgsProduct({{8}, {3}, {224}, {768}, {16}, {16}, {0, 1}})  // patches of a ViT-B/16
      ->ArgsProduct({{64}, {3}, {32}, {192}, {4}, {4}, {0, 1}})    // of a small ViT on CIFAR
      ->ArgsProduct({{8}, {3}, {224}, {64}, {7}, {2}, {0, 1}})     // a residual network's stem,
      ->ArgsProduct({{8}, {64}, {56}, {64}, {3}, {1}, {0, 1}})     // its stages,
      ->ArgsProduct({{8}, {128}, {56}, {128}, {3}, {2}, {0, 1}})
      ->ArgsProduct({{8}, {512}, {7}, {512}, {3}, {1}, {0, 1}})
      ->ArgsProduct({{8}, {256}, {14}, {1024}, {1}, {1}, {0, 1}})
      ->ArgsProduct({{8}, {256}, {56}, {512}, {1}, {2}, {0, 1}})  // and its shortcuts
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}
BENCHMARK(convolution)->Apply(images);
BENCHMARK(convolution_input_gradient)->Apply(images);
BENCHMARK(convolution_weight_gradient)->Apply(images);

// The stem of MViT on a clip of eight frames.
void convolution_of_a_clip(benchmark::State& state) {
  const DType dtype = state.range(0) != 0 ? DType::bf16 : DType::f32;
  const bool backward = state.range(1) != 0;
  const Tensor x = normal({1, 3, 8, 224, 224}, dtype);
  const Tensor weight = normal({96, 3, 3, 7, 7}, DType::f32);
  run_op(state, backward, {x, weight}, [](const std::vector<Tensor>& in) {
    return ops::conv3d(in[0], in[1], {}, {.stride = {2, 4, 4}, .padding = {1, 3, 3}});
  });
  const double forward = 2.0 * 96 * 4 * 56 * 56 * 3 * 3 * 7 * 7;
  report_flops(state, (backward ? 3 : 1) * forward, dtype);
}
BENCHMARK(convolution_of_a_clip)
    ->ArgNames({"bf16", "backward"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// The pooling of queries, keys and values in MViT: a 3 x 3 window over 56 x 56 tokens, and a clip's.
void depthwise(benchmark::State& state) {
  const DType dtype = state.range(2) != 0 ? DType::bf16 : DType::f32;
  const bool backward = state.range(3) != 0;
  const std::int64_t frames = state.range(0);
  const std::int64_t stride = state.range(1);
  const Tensor x = normal({8, frames * 56 * 56, 96}, dtype);
  const std::int64_t depth = frames > 1 ? 3 : 1;
  const Tensor weight = normal({96, 1, depth, 3, 3}, DType::f32);
  run_op(state, backward, {x, weight}, [&](const std::vector<Tensor>& in) {
    return ops::depthwise_conv(in[0], in[1],
                               {.grid = {frames, 56, 56}, .stride = {1, stride, stride}, .padding = {depth / 2, 1, 1}});
  });
  const double y = static_cast<double>(x.bytes()) / static_cast<double>(stride * stride);
  // Backward: the input's gradient reads dy and writes dx, the weight's reads both x and dy.
  report_bytes(state, (backward ? 3 : 1) * (static_cast<double>(x.bytes()) + y));
}
BENCHMARK(depthwise)
    ->ArgNames({"frames", "stride", "bf16", "backward"})
    ->ArgsProduct({{1}, {1, 2}, {0, 1}, {0, 1}})
    ->ArgsProduct({{4}, {1}, {0, 1}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vitrail
