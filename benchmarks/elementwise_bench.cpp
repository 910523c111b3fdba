// What a transformer does between its products: memory traffic in bytes/s, reads and writes counted once.
#include <benchmark/benchmark.h>

#include "benchmarks/op_bench.h"
#include "benchmarks/roofline.h"
#include "vitrail/ops/ops.h"

namespace vitrail {
namespace {

// vit_small_patch16_224, batch 32 (31 MB in f32), or vit_tiny at 32 px, batch 64 (3 MB: the caches hold it).
Tensor tokens(const benchmark::State& state) {
  const Shape shape = state.range(0) != 0 ? Shape{32, 197, 384} : Shape{64, 65, 192};
  return Tensor::full(shape, 0.5, state.range(1) != 0 ? DType::bf16 : DType::f32);
}

// `forward` over tokens and a parameter of the shape [1, N, D] or [D], and the backward of it; `passes` how many times
// a tensor of the tokens' size is read or written in both.
template <class Forward>
void run(benchmark::State& state, const Shape& parameter_shape, int forward_passes, int backward_passes,
         const Forward& forward) {
  const Tensor x = tokens(state);
  const bool backward = state.range(2) != 0;
  run_op(state, backward, {x, Tensor::full(parameter_shape, 2, x.dtype())},
         [&](const std::vector<Tensor>& in) { return forward(in[0], in[1]); });
  report_bytes(state, static_cast<double>(x.bytes()) * (forward_passes + (backward ? backward_passes : 0)));
}

Shape positions(const benchmark::State& state) { return tokens(state).shape().with(0, 1); }
Shape channels(const benchmark::State& state) { return {tokens(state).size(2)}; }

// Backward: a leaf copies a gradient that is shared (2); dposition reads dy.
void add_positions(benchmark::State& state) {
  run(state, positions(state), 2, 3, [](const Tensor& x, const Tensor& p) { return ops::add(x, p); });
}
// Backward: dx reads and writes (2), dgamma reads x and dy (2).
void layer_scale(benchmark::State& state) {
  run(state, channels(state), 2, 4, [](const Tensor& x, const Tensor& gamma) { return ops::multiply(x, gamma); });
}
void mean_over_tokens(benchmark::State& state) {
  run(state, {1}, 1, 1, [](const Tensor& x, const Tensor&) { return ops::mean(x, {1}); });
}
void concat_class_token(benchmark::State& state) {
  run(state, Shape{1, 1, tokens(state).size(2)}, 2, 2, [](const Tensor& x, const Tensor& token) {
    return ops::concat({ops::expand(token, x.shape().with(1, 1)), x}, 1);
  });
}
void heads_to_front(benchmark::State& state) {
  run(state, {1}, 2, 2, [](const Tensor& x, const Tensor&) {
    const Tensor heads = ops::reshape(x, {x.size(0), x.size(1), -1, 64});
    return ops::contiguous(ops::permute(heads, {0, 2, 1, 3}));
  });
}
void channels_to_front(benchmark::State& state) {
  run(state, {1}, 2, 2, [](const Tensor& x, const Tensor&) { return ops::contiguous(ops::transpose(x, 1, 2)); });
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"large", "bf16", "backward"})->ArgsProduct({{0, 1}, {0, 1}, {0, 1}})->UseRealTime();
}
BENCHMARK(add_positions)->Apply(sizes);
BENCHMARK(layer_scale)->Apply(sizes);
BENCHMARK(mean_over_tokens)->Apply(sizes);
BENCHMARK(concat_class_token)->Apply(sizes);
BENCHMARK(heads_to_front)->Apply(sizes);
BENCHMARK(channels_to_front)->Apply(sizes);

}  // namespace
}  // namespace vitrail
