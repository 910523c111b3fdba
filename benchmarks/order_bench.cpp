// Sorting, the best of many, running sums, choices, draws, convolutions of sequences, and arithmetic of integers, at
// the sizes of generating (rows of 50,257 scores) and of tokens: bytes/s of what is read and written once, and for
// convolutions FLOP/s.
#include <benchmark/benchmark.h>

#include "benchmarks/op_bench.h"
#include "benchmarks/roofline.h"
#include "vitrail/ops/ops.h"

namespace vitrail {
namespace {

constexpr std::int64_t vocabulary = 50257;

// range(0) rows of scores.
Tensor scores(const benchmark::State& state) { return normal({state.range(0), vocabulary}, DType::f32); }

Tensor tokens_of(const benchmark::State& state) {
  return normal({32, 197, 384}, state.range(0) != 0 ? DType::bf16 : DType::f32);
}

void sort_rows(benchmark::State& state) {
  const Tensor x = scores(state);
  for (auto _ : state) {
    benchmark::DoNotOptimize(ops::sort(x));
  }
  report_bytes(state, static_cast<double>(x.bytes()) * 4);
}
void topk_rows(benchmark::State& state) {
  const Tensor x = scores(state);
  for (auto _ : state) {
    benchmark::DoNotOptimize(ops::topk(x, state.range(1)));
  }
  report_bytes(state, static_cast<double>(x.bytes()));
}
void argmax_rows(benchmark::State& state) {
  const Tensor x = scores(state);
  for (auto _ : state) {
    benchmark::DoNotOptimize(ops::argmax(x, 1));
  }
  report_bytes(state, static_cast<double>(x.bytes()));
}
void multinomial_rows(benchmark::State& state) {
  const Tensor p = ops::softmax(scores(state), 1);
  std::uint64_t stream = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ops::multinomial(p, state.range(1), state.range(2) != 0, Philox(1, stream++)));
  }
  report_bytes(state, static_cast<double>(p.bytes()));
}
BENCHMARK(sort_rows)->ArgName("rows")->Arg(1)->Arg(32)->UseRealTime();
BENCHMARK(topk_rows)->ArgNames({"rows", "k"})->ArgsProduct({{1, 32}, {1, 50, 1000}})->UseRealTime();
BENCHMARK(argmax_rows)->ArgName("rows")->Arg(1)->Arg(32)->UseRealTime();
BENCHMARK(multinomial_rows)
    ->ArgNames({"rows", "samples", "replacement"})
    ->ArgsProduct({{1, 32}, {1, 10}, {0, 1}})
    ->UseRealTime();

void cumsum_of_tokens(benchmark::State& state) {
  const Tensor x = tokens_of(state);
  const int dim = static_cast<int>(state.range(2));
  run_op(state, state.range(1) != 0, {x}, [&](const std::vector<Tensor>& in) { return ops::cumsum(in[0], dim); });
  report_bytes(state, static_cast<double>(x.bytes()) * (state.range(1) != 0 ? 4 : 2));
}
void where_of_tokens(benchmark::State& state) {
  const Tensor x = tokens_of(state);
  const Tensor y = normal(x.shape(), x.dtype(), 1);
  const Tensor condition = Tensor::full(x.shape(), 1, DType::boolean);
  run_op(state, state.range(1) != 0, {x, y},
         [&](const std::vector<Tensor>& in) { return ops::where(condition, in[0], in[1]); });
  report_bytes(state, static_cast<double>(x.bytes()) * (state.range(1) != 0 ? 7 : 3) +
                          static_cast<double>(condition.bytes()) * (state.range(1) != 0 ? 3 : 1));
}
void mean_of_segments(benchmark::State& state) {
  const Tensor x = normal({4096, 384}, DType::f32);
  Tensor offsets = Tensor::empty({257}, DType::i64);
  for (std::int64_t s = 0; s <= 256; ++s) {
    offsets.data<std::int64_t>()[s] = 16 * s;
  }
  run_op(state, state.range(0) != 0, {x}, [&](const std::vector<Tensor>& in) {
    return ops::segment_reduce(in[0], ops::SegmentReduction::mean, offsets);
  });
  report_bytes(state, static_cast<double>(x.bytes()) * (state.range(0) != 0 ? 2 : 1));
}
BENCHMARK(cumsum_of_tokens)
    ->ArgNames({"bf16", "backward", "dim"})
    ->ArgsProduct({{0, 1}, {0, 1}, {1, 2}})
    ->UseRealTime();
BENCHMARK(where_of_tokens)->ArgNames({"bf16", "backward"})->ArgsProduct({{0, 1}, {0, 1}})->UseRealTime();
BENCHMARK(mean_of_segments)->ArgName("backward")->Arg(0)->Arg(1)->UseRealTime();

void integer_function(benchmark::State& state) {
  const Tensor a = ops::cast(Tensor::full({1 << 20}, 1234), state.range(0) != 0 ? DType::i64 : DType::i32);
  const Tensor b = ops::cast(Tensor::full({1 << 20}, 7), a.dtype());
  for (auto _ : state) {
    benchmark::DoNotOptimize(state.range(1) == 0   ? ops::add(a, b)
                             : state.range(1) == 1 ? ops::multiply(a, b)
                                                   : ops::floor_divide(a, b));
  }
  state.SetLabel(std::string(name_of(a.dtype())) + (state.range(1) == 0   ? " add"
                                                    : state.range(1) == 1 ? " multiply"
                                                                          : " floor_divide"));
  report_bytes(state, static_cast<double>(a.bytes()) * 3);
}
BENCHMARK(integer_function)->ArgNames({"i64", "function"})->ArgsProduct({{0, 1}, {0, 1, 2}})->UseRealTime();

// The first two layers of Whisper's encoder: a spectrum of 80 bands, 3000 frames.
void conv1d_of_frames(benchmark::State& state) {
  const std::int64_t in = state.range(0) != 0 ? 384 : 80;
  const std::int64_t stride = state.range(0) != 0 ? 2 : 1;
  const Tensor x = normal({4, in, 3000}, DType::f32);
  const Tensor weight = normal({384, in, 3}, DType::f32, 1);
  const bool backward = state.range(1) != 0;
  run_op(state, backward, {x, weight}, [&](const std::vector<Tensor>& given) {
    return ops::conv1d(given[0], given[1], {}, {.stride = stride, .padding = 1});
  });
  const double flops = 2.0 * 4 * static_cast<double>(3000 / stride * 384 * in * 3);
  report_flops(state, flops * (backward ? 3 : 1), DType::f32);
}
BENCHMARK(conv1d_of_frames)->ArgNames({"second", "backward"})->ArgsProduct({{0, 1}, {0, 1}})->UseRealTime();

}  // namespace
}  // namespace vitrail
