// What vision models do to images and grids of tokens between their products: norms, pools, windows, shifts, rotations,
// resizing, gathering and changes of layout. The rate counts the bytes that must be read and written once.
#include <benchmark/benchmark.h>

#include "benchmarks/op_bench.h"
#include "benchmarks/roofline.h"
#include "vitrail/kernels/layout.h"
#include "vitrail/ops/ops.h"

namespace vitrail {
namespace {

using Inputs = std::vector<Tensor>;

DType dtype_of(const benchmark::State& state) { return state.range(0) != 0 ? DType::bf16 : DType::f32; }
bool backward_of(const benchmark::State& state) { return state.range(1) != 0; }

// run_op() for an op whose forward and backward pass over so many bytes.
template <class Forward>
void run_bytes(benchmark::State& state, const Inputs& inputs, double forward_bytes, double backward_bytes,
               const Forward& forward) {
  run_op(state, backward_of(state), inputs, forward);
  report_bytes(state, forward_bytes + (backward_of(state) ? backward_bytes : 0));
}

// The first stage of a residual network at batch 8, channels-last.
Tensor feature_maps(const benchmark::State& state) {
  return kernels::channels_last(normal({8, 256, 56, 56}, dtype_of(state)));
}
// The first stage of a Swin at batch 8.
Tensor grid(const benchmark::State& state) { return normal({8, 56, 56, 96}, dtype_of(state)); }
double bytes_of(const Tensor& x) { return static_cast<double>(x.bytes()); }

Inputs with_parameters(const Tensor& x, std::int64_t channels) {
  return {x, normal({channels}, DType::f32, 1), normal({channels}, DType::f32, 2)};
}

// In training: x is read for the statistics and for y; backward reads x and dy for the sums, and again for dx.
void batch_norm(benchmark::State& state) {
  const Tensor x = feature_maps(state);
  const Tensor mean = Tensor::zeros({256}), variance = Tensor::full({256}, 1);
  run_bytes(state, with_parameters(x, 256), 3 * bytes_of(x), 5 * bytes_of(x),
            [&](const Inputs& in) { return ops::batch_norm(in[0], in[1], in[2], mean, variance, true, 0.1F, 1e-5F); });
}
void batch_norm_residual_relu(benchmark::State& state) {
  const Tensor x = feature_maps(state);
  const Tensor mean = Tensor::zeros({256}), variance = Tensor::full({256}, 1);
  Inputs inputs = with_parameters(x, 256);
  inputs.push_back(feature_maps(state));
  run_bytes(state, inputs, 4 * bytes_of(x), 7 * bytes_of(x), [&](const Inputs& in) {
    return ops::batch_norm(in[0], in[1], in[2], mean, variance, true, 0.1F, 1e-5F, ops::Activation::relu, in[3]);
  });
}
void group_norm(benchmark::State& state) {
  const Tensor x = feature_maps(state);
  run_bytes(state, with_parameters(x, 256), 3 * bytes_of(x), 5 * bytes_of(x),
            [](const Inputs& in) { return ops::group_norm(in[0], 32, in[1], in[2], 1e-5F); });
}

// The stem's pooling, 3 x 3 with a stride of 2.
void max_pool(benchmark::State& state) {
  const Tensor x = kernels::channels_last(normal({8, 64, 112, 112}, dtype_of(state)));
  run_bytes(state, {x}, 1.25 * bytes_of(x), 1.25 * bytes_of(x), [](const Inputs& in) {
    return ops::max_pool2d(in[0], {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  });
}
void average_pool(benchmark::State& state) {
  const Tensor x = feature_maps(state);
  run_bytes(state, {x}, 1.25 * bytes_of(x), 1.25 * bytes_of(x),
            [](const Inputs& in) { return ops::avg_pool2d(in[0], {}); });
}
void global_average_pool(benchmark::State& state) {
  const Tensor x = feature_maps(state);
  run_bytes(state, {x}, bytes_of(x), bytes_of(x), [](const Inputs& in) {
    return ops::adaptive_avg_pool2d(in[0], {1, 1});
  });
}

void window_partition(benchmark::State& state) {
  const Tensor x = grid(state);
  run_bytes(state, {x}, 2 * bytes_of(x), 2 * bytes_of(x), [](const Inputs& in) {
    return ops::window_partition(in[0], {.size = {7, 7}, .shift = {3, 3}});
  });
}
void window_reverse(benchmark::State& state) {
  const Tensor x = grid(state);
  const Tensor windows = ops::window_partition(x, {.size = {7, 7}, .shift = {3, 3}});
  run_bytes(state, {windows, x}, 3 * bytes_of(x), 2 * bytes_of(x), [](const Inputs& in) {
    return ops::window_reverse(in[0], {.size = {7, 7}, .shift = {3, 3}}, {56, 56}, in[1]);
  });
}
// The four directions of an S²-MLP.
void shift_channels(benchmark::State& state) {
  const Tensor x = grid(state);
  const std::vector<ops::ChannelShift> shifts = {
      {0, 24, 1, -1, 0}, {24, 48, 1, 1, 0}, {48, 72, 1, 0, -1}, {72, 96, 1, 0, 1}};
  run_bytes(state, {x}, 2 * bytes_of(x), 2 * bytes_of(x),
            [&](const Inputs& in) { return ops::shift_channels(in[0], shifts, ops::Border::edge); });
}
// Maps of a decoder, twice as large.
void interpolate_bilinear(benchmark::State& state) {
  const Tensor x = normal({8, 64, 56, 56}, dtype_of(state));
  run_bytes(state, {x}, 5 * bytes_of(x), 5 * bytes_of(x),
            [](const Inputs& in) { return ops::interpolate(in[0], 112, 112, ops::Interpolation::bilinear); });
}
// The positions of a ViT-B/16 from 224 to 384 pixels.
void interpolate_bicubic(benchmark::State& state) {
  const Tensor x = normal({1, 768, 14, 14}, dtype_of(state));
  const double bytes = bytes_of(x) * (1 + 24.0 * 24 / (14 * 14));
  run_bytes(state, {x}, bytes, bytes,
            [](const Inputs& in) { return ops::interpolate(in[0], 24, 24, ops::Interpolation::bicubic, true); });
}

// vit_small_patch16_224 at batch 16.
Tensor packed_heads(const benchmark::State& state) { return normal({16, 197, 3, 6, 64}, dtype_of(state)); }
void rotary(benchmark::State& state) {
  const Tensor qkv = packed_heads(state);
  const ops::Rotation rotation = ops::rotation(normal({196, 32}, DType::f32), ops::RotaryPairs::adjacent, 1);
  run_bytes(state, {qkv}, 2 * bytes_of(qkv), 2 * bytes_of(qkv),
            [&](const Inputs& in) { return ops::rotate_packed(in[0], rotation); });
}
void cosine_queries(benchmark::State& state) {
  const Tensor qkv = packed_heads(state);
  run_bytes(state, {qkv, Tensor::full({6}, 10)}, 2 * bytes_of(qkv), 3 * bytes_of(qkv),
            [](const Inputs& in) { return ops::cosine_queries(in[0], in[1]); });
}

// The quarter of the tokens that a masked autoencoder sees; backward adds to a gradient that begins with zeros.
void index_select(benchmark::State& state) {
  const Tensor x = normal({16, 196, 384}, dtype_of(state));
  const Tensor seen = Tensor::empty({49}, DType::i64);
  for (std::int64_t i = 0; i < 49; ++i) {
    seen.data<std::int64_t>()[i] = i * 4 + i % 4;
  }
  run_bytes(state, {x}, 0.5 * bytes_of(x), 1.25 * bytes_of(x),
            [&](const Inputs& in) { return ops::index_select(in[0], 1, seen); });
}
// The same for each sample by itself, element by element as torch.gather.
void gather(benchmark::State& state) {
  const Tensor x = normal({16, 196, 384}, dtype_of(state));
  const Tensor seen = Tensor::empty({16, 49, 384}, DType::i64);
  for (std::int64_t i = 0; i < seen.numel(); ++i) {
    seen.data<std::int64_t>()[i] = i / 384 % 49 * 4 + i / (384 * 49) % 4;
  }
  run_bytes(state, {x}, 0.5 * bytes_of(x) + bytes_of(seen), 1.25 * bytes_of(x) + bytes_of(seen),
            [&](const Inputs& in) { return ops::gather(in[0], 1, seen); });
}
// A batch of 8 texts of 512 tokens from a table of 30,000 words; backward writes the whole table's gradient.
void embedding(benchmark::State& state) {
  const Tensor table = normal({30000, 384}, dtype_of(state));
  const Tensor tokens = Tensor::empty({8, 512}, DType::i64);
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.data<std::int64_t>()[i] = i * 7919 % 30000;
  }
  const double rows = bytes_of(table) * 4096 / 30000;
  run_bytes(state, {table}, 2 * rows, bytes_of(table) + 2 * rows,
            [&](const Inputs& in) { return ops::embedding(in[0], tokens); });
}

// LayerScale with its residual connection.
void scale_and_residual(benchmark::State& state) {
  const Tensor x = normal({16, 197, 384}, dtype_of(state));
  run_bytes(state, {x, normal({384}, DType::f32), normal(x.shape(), x.dtype(), 1)}, 3 * bytes_of(x), 3 * bytes_of(x),
            [](const Inputs& in) { return ops::scale(in[0], in[1], {}, in[2]); });
}
void variance_of_channels(benchmark::State& state) {
  const Tensor x = normal({16, 197, 384}, dtype_of(state));
  run_bytes(state, {x}, 2 * bytes_of(x), 2 * bytes_of(x), [](const Inputs& in) {
    return ops::variance(in[0], {0, 1});
  });
}
void largest_of_channels(benchmark::State& state) {
  const Tensor x = normal({16, 197, 384}, dtype_of(state));
  run_bytes(state, {x}, bytes_of(x), 2 * bytes_of(x), [](const Inputs& in) { return ops::amax(in[0], {2}); });
}
// Images as they are read, to channels-last memory.
void to_channels_last(benchmark::State& state) {
  const Tensor x = normal({8, 64, 112, 112}, dtype_of(state));
  const Tensor y = kernels::empty_channels_last(x.shape(), x.dtype());
  for (auto _ : state) {
    kernels::copy_layout(x, y);
  }
  report_bytes(state, 2 * bytes_of(x));
  state.SetLabel(std::string(name_of(x.dtype())));
}
void extract_patches(benchmark::State& state) {
  const Tensor x = normal({16, 3, 224, 224}, dtype_of(state));
  run_bytes(state, {x}, 2 * bytes_of(x), 2 * bytes_of(x), [](const Inputs& in) {
    return ops::extract_patches(in[0], {16, 16});
  });
}

void both(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"bf16", "backward"})->ArgsProduct({{0, 1}, {0, 1}})->UseRealTime()->Unit(benchmark::kMicrosecond);
}
BENCHMARK(batch_norm)->Apply(both);
BENCHMARK(batch_norm_residual_relu)->Apply(both);
BENCHMARK(group_norm)->Apply(both);
BENCHMARK(max_pool)->Apply(both);
BENCHMARK(average_pool)->Apply(both);
BENCHMARK(global_average_pool)->Apply(both);
BENCHMARK(window_partition)->Apply(both);
BENCHMARK(window_reverse)->Apply(both);
BENCHMARK(shift_channels)->Apply(both);
BENCHMARK(interpolate_bilinear)->Apply(both);
BENCHMARK(interpolate_bicubic)->Apply(both);
BENCHMARK(rotary)->Apply(both);
BENCHMARK(cosine_queries)->Apply(both);
BENCHMARK(index_select)->Apply(both);
BENCHMARK(gather)->Apply(both);
BENCHMARK(embedding)->Apply(both);
BENCHMARK(scale_and_residual)->Apply(both);
BENCHMARK(variance_of_channels)->Apply(both);
BENCHMARK(largest_of_channels)->Apply(both);
BENCHMARK(extract_patches)->Apply(both);
BENCHMARK(to_channels_last)->ArgName("bf16")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace vitrail
