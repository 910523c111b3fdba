// The three products of a linear map at the sizes of vision transformers: arguments are M (batch · tokens), in, out and
// whether it is bf16; and the same product in int8.
#include <array>

#include <benchmark/benchmark.h>

#include "benchmarks/roofline.h"
#include "vitrail/kernels/gemm.h"
#include "vitrail/kernels/int8.h"
#include "vitrail/kernels/peak.h"

namespace vitrail {
namespace {

struct Case {
  explicit Case(const benchmark::State& state)
      : rows(state.range(0)),
        in(state.range(1)),
        out(state.range(2)),
        dtype(state.range(3) != 0 ? DType::bf16 : DType::f32),
        x(Tensor::full({rows, in}, 0.5, dtype)),
        y(Tensor::full({rows, out}, 0.25, dtype)),
        weight(Tensor::full({out, in}, 0.125)),
        bias(Tensor::full({out}, 1)) {}
  void report(benchmark::State& state) const {
    const auto operations = 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
    report_flops(state, operations, dtype);
    state.SetLabel(std::string(name_of(dtype)));
  }
  std::int64_t rows, in, out;
  DType dtype;
  Tensor x, y, weight, bias;
};

void linear_forward(benchmark::State& state) {
  const Case c(state);
  for (auto _ : state) {
    kernels::matmul_packed(c.x, c.weight.transpose(0, 1), {c.bias, kernels::Activation::identity, {}}, c.y);
  }
  c.report(state);
}

void linear_forward_residual(benchmark::State& state) {
  const Case c(state);
  const Tensor residual = c.y.clone();
  for (auto _ : state) {
    kernels::matmul_packed(c.x, c.weight.transpose(0, 1), {c.bias, kernels::Activation::identity, residual}, c.y);
  }
  c.report(state);
}

void linear_forward_gelu(benchmark::State& state) {
  const Case c(state);
  for (auto _ : state) {
    kernels::matmul_packed(c.x, c.weight.transpose(0, 1), {c.bias, kernels::Activation::gelu, {}}, c.y);
  }
  c.report(state);
}

void linear_input_gradient(benchmark::State& state) {
  const Case c(state);
  for (auto _ : state) {
    kernels::matmul_packed(c.y, c.weight, {}, c.x);
  }
  c.report(state);
}

void linear_weight_gradient(benchmark::State& state) {
  const Case c(state);
  const Tensor dweight = Tensor::empty(c.weight.shape());
  const Tensor dbias = Tensor::empty(c.bias.shape());
  for (auto _ : state) {
    kernels::weight_gradient(c.x, c.y, dweight, dbias);
  }
  c.report(state);
}

// What a training step pays for new weights: both packed forms.
void linear_packing(benchmark::State& state) {
  const Case c(state);
  const Tensor x = c.x.narrow(0, 0, 1).clone();
  const Tensor y = c.y.narrow(0, 0, 1).clone();
  for (auto _ : state) {
    c.weight.touch();
    kernels::matmul_packed(x, c.weight.transpose(0, 1), {}, y);
    kernels::matmul_packed(y, c.weight, {}, x);
  }
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"M", "in", "out", "bf16"})->UseRealTime()->Unit(benchmark::kMillisecond);
  for (const std::int64_t bf16 : {0, 1}) {
    benchmark->Args({64 * 65, 192, 576, bf16});   // a small ViT on CIFAR: qkv
    benchmark->Args({64 * 65, 192, 192, bf16});   // proj
    benchmark->Args({64 * 65, 192, 768, bf16});   // fc1
    benchmark->Args({64 * 65, 768, 192, bf16});   // fc2
    benchmark->Args({8 * 197, 768, 2304, bf16});  // vit_base_patch16_224: qkv
    benchmark->Args({8 * 197, 768, 3072, bf16});  // fc1
    benchmark->Args({8 * 197, 3072, 768, bf16});  // fc2
  }
}
// The whole map in int8: inputs rounded row by row, the product, scales and bias.
void linear_int8(benchmark::State& state) {
  const Case c(state);
  const Tensor weight = Tensor::empty(c.weight.shape(), DType::i8);
  const Tensor scales = Tensor::empty({c.out});
  kernels::quantize_rows(c.weight, {}, weight, scales);
  const Tensor q = Tensor::empty(c.x.shape(), DType::i8);
  const Tensor row_scales = Tensor::empty({c.rows});
  for (auto _ : state) {
    kernels::quantize_rows(c.x, {}, q, row_scales);
    kernels::matmul_int8(q, row_scales, weight, scales, {c.bias, kernels::Activation::identity, {}}, c.y);
  }
  report_flops(state, 2.0 * static_cast<double>(c.rows * c.in) * static_cast<double>(c.out), DType::i8);
}

void quantize_rows(benchmark::State& state) {
  const Case c(state);
  const Tensor q = Tensor::empty(c.x.shape(), DType::i8);
  const Tensor scales = Tensor::empty({c.rows});
  for (auto _ : state) {
    kernels::quantize_rows(c.x, {}, q, scales);
  }
  report_bytes(state, static_cast<double>(c.x.bytes() + q.bytes()));
}

BENCHMARK(linear_forward)->Apply(sizes);
BENCHMARK(linear_int8)->Apply(sizes);
BENCHMARK(quantize_rows)->Apply(sizes);
BENCHMARK(linear_forward_residual)->Apply(sizes);
BENCHMARK(linear_forward_gelu)->Apply(sizes);
BENCHMARK(linear_input_gradient)->Apply(sizes);
BENCHMARK(linear_weight_gradient)->Apply(sizes);
BENCHMARK(linear_packing)->Apply(sizes);

// What a step of generating does with GPT-2's head, in bytes of the weight: arguments are M, the dtype (0: f32, 1:
// bf16, 2: int8), and whether the weight is packed for oneDNN.
void few_rows(benchmark::State& state) {
  constexpr std::int64_t in = 768, out = 50257;
  constexpr std::array dtypes = {DType::f32, DType::bf16, DType::i8};
  const DType dtype = dtypes.at(static_cast<std::size_t>(state.range(1)));
  const bool packs = state.range(2) != 0;
  const std::int64_t rows = state.range(0);
  const Tensor x = Tensor::full({rows, in}, 1, dtype);
  const Tensor y = Tensor::empty({rows, out}, dtype == DType::i8 ? DType::i32 : dtype);
  const Tensor weight = Tensor::full({packs ? in : out, packs ? out : in}, 1, dtype);
  for (auto _ : state) {
    if (dtype == DType::i8) {
      kernels::int8_sums(x, packs ? weight.transpose(0, 1) : weight, y);
    } else {
      kernels::matmul_packed(x, packs ? weight : weight.transpose(0, 1), {}, y);
    }
  }
  report_bytes(state, static_cast<double>(weight.bytes()));
}
BENCHMARK(few_rows)
    ->ArgNames({"M", "dtype", "packed"})
    ->ArgsProduct({{1, 4, 8, 16}, {0, 1, 2}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void peak(benchmark::State& state) {
  const DType dtype = state.range(0) != 0 ? DType::bf16 : DType::f32;
  double best = 0;
  for (auto _ : state) {
    best = std::max(best, kernels::measure_peak_gflops(dtype));
  }
  state.counters["FLOP/s"] = benchmark::Counter(best * 1e9, benchmark::Counter::kDefaults, benchmark::Counter::kIs1000);
  state.SetLabel(std::string(name_of(dtype)));
}
BENCHMARK(peak)->ArgName("bf16")->Arg(0)->Arg(1)->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vitrail
