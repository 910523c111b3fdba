// Kernels that memory bounds, at the sizes of a vision transformer's activations: rows, width and whether it is bf16.
// The rate counts the bytes that must be read and written once, beside what memory can do.
#include <vector>

#include <benchmark/benchmark.h>

#include "benchmarks/op_bench.h"
#include "benchmarks/roofline.h"
#include "vitrail/kernels/activation.h"
#include "vitrail/kernels/cast.h"
#include "vitrail/kernels/dropout.h"
#include "vitrail/kernels/loss.h"
#include "vitrail/kernels/norm.h"
#include "vitrail/kernels/optimizer.h"
#include "vitrail/kernels/softmax.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail {
namespace {

struct Case {
  explicit Case(const benchmark::State& state)
      : rows(state.range(0)),
        width(state.range(1)),
        n(rows * width),
        dtype(state.range(2) != 0 ? DType::bf16 : DType::f32),
        x(normal({rows, width}, dtype)),
        dy(normal({rows, width}, dtype)),
        y(normal({rows, width}, dtype)) {}
  // `passes` arrays of the case's size and `bytes` more were read or written.
  void report(benchmark::State& state, int passes, std::size_t bytes = 0) const {
    const std::size_t each = static_cast<std::size_t>(passes) * x.bytes() + bytes;
    report_bytes(state, static_cast<double>(each));
    state.SetLabel(std::string(name_of(dtype)));
  }
  std::int64_t rows, width, n;
  DType dtype;
  Tensor x, dy, y;
};

template <kernels::Activation activation>
void activation_forward(benchmark::State& state) {
  const Case c(state);
  for ([[maybe_unused]] auto _ : state) {
    kernels::activation_forward(activation, c.x.raw(), c.y.raw(), c.n, c.dtype);
  }
  c.report(state, 2);
}

template <kernels::Activation activation>
void activation_backward(benchmark::State& state) {
  const Case c(state);
  for ([[maybe_unused]] auto _ : state) {
    kernels::activation_backward(activation, c.x.raw(), c.dy.raw(), c.y.raw(), c.n, c.dtype);
  }
  c.report(state, 3);
}

struct NormCase : Case {
  explicit NormCase(const benchmark::State& state)
      : Case(state),
        norm{rows, width, dtype, true},
        weight(normal({width}, DType::f32)),
        bias(normal({width}, DType::f32)),
        mean(Tensor::empty({rows})),
        rstd(Tensor::empty({rows})),
        dweight(Tensor::empty({width})),
        dbias(Tensor::empty({width})) {
    forward();
  }
  void forward() const {
    kernels::norm_forward(norm, x.raw(), weight.data<float>(), bias.data<float>(), 1e-6F, y.raw(), mean.data<float>(),
                          rstd.data<float>());
  }
  kernels::RowNorm norm;
  Tensor weight, bias, mean, rstd, dweight, dbias;
};

void layer_norm_forward(benchmark::State& state) {
  const NormCase c(state);
  for ([[maybe_unused]] auto _ : state) {
    c.forward();
  }
  c.report(state, 2);
}

void layer_norm_backward(benchmark::State& state) {
  const NormCase c(state);
  for ([[maybe_unused]] auto _ : state) {
    kernels::norm_backward(c.norm, c.x.raw(), c.weight.data<float>(), c.mean.data<float>(), c.rstd.data<float>(),
                           c.dy.raw(), nullptr, c.y.raw(), c.dweight.data<float>(), c.dbias.data<float>());
  }
  c.report(state, 3);
}

void softmax_forward(benchmark::State& state) {
  const Case c(state);
  for ([[maybe_unused]] auto _ : state) {
    kernels::softmax_forward({c.rows, c.width, c.dtype, false}, c.x.raw(), c.y.raw());
  }
  c.report(state, 2);
}

void softmax_backward(benchmark::State& state) {
  const Case c(state);
  for ([[maybe_unused]] auto _ : state) {
    kernels::softmax_backward({c.rows, c.width, c.dtype, false}, c.x.raw(), c.dy.raw(), c.y.raw());
  }
  c.report(state, 3);
}

void cross_entropy(benchmark::State& state) {
  const Case c(state);
  const std::vector<std::int64_t> labels(static_cast<std::size_t>(c.rows));
  const Tensor losses = Tensor::empty({c.rows}), maximum = Tensor::empty({c.rows}), log_sum = Tensor::empty({c.rows});
  const kernels::CrossEntropy loss{c.rows, c.width, c.dtype, labels.data(), nullptr, 0.1F, -100};
  for ([[maybe_unused]] auto _ : state) {
    kernels::cross_entropy_forward(loss, c.x.raw(), losses.data<float>(), maximum.data<float>(), log_sum.data<float>());
    kernels::cross_entropy_backward(loss, c.x.raw(), maximum.data<float>(), log_sum.data<float>(), 1.0F, c.y.raw());
  }
  c.report(state, 3);
}

void dropout(benchmark::State& state) {
  const Case c(state);
  for ([[maybe_unused]] auto _ : state) {
    kernels::dropout(Philox(1, 2), 0.1F, c.x.raw(), c.y.raw(), c.n, c.dtype);
  }
  c.report(state, 2);
}

void drop_path(benchmark::State& state) {
  const Case c(state);
  std::vector<float> factors(static_cast<std::size_t>(c.rows), 1.25F);
  for (std::size_t i = 0; i < factors.size(); i += 5) {
    factors[i] = 0;
  }
  for ([[maybe_unused]] auto _ : state) {
    kernels::scale_samples(factors, c.x.raw(), c.y.raw(), c.width, c.dtype);
  }
  c.report(state, 2);
}

void cast_to_bf16(benchmark::State& state) {
  const Case c(state);
  const Tensor narrow = Tensor::empty({c.n}, DType::bf16);
  for ([[maybe_unused]] auto _ : state) {
    kernels::cast(c.x.raw(), DType::f32, narrow.raw(), DType::bf16, c.n);
  }
  c.report(state, 1, narrow.bytes());
}

void adamw_step(benchmark::State& state) {
  const Case c(state);
  const Tensor m = Tensor::zeros({c.n}), v = Tensor::zeros({c.n});
  for ([[maybe_unused]] auto _ : state) {
    kernels::adam_step({.lr = 1e-3, .weight_decay = 0.05}, c.x.data<float>(), c.dy.data<float>(), m.data<float>(),
                       v.data<float>(), c.n);
  }
  c.report(state, 7);
}

void sgd_step(benchmark::State& state) {
  const Case c(state);
  for ([[maybe_unused]] auto _ : state) {
    kernels::sgd_step({.lr = 1e-3, .weight_decay = 1e-4}, c.x.data<float>(), c.dy.data<float>(), c.y.data<float>(),
                      c.n);
  }
  c.report(state, 5);
}

void sum_of_squares(benchmark::State& state) {
  const Case c(state);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(kernels::sum_of_squares(c.x.data<float>(), c.n));
  }
  c.report(state, 1);
}

// Within the last cache (a block of a small model) and beyond it.
void both_dtypes(benchmark::internal::Benchmark* b) {
  for (const std::int64_t bf16 : {0, 1}) {
    b->Args({4096, 192, bf16})->Args({16384, 1024, bf16});
  }
  b->UseRealTime();
}
void parameters(benchmark::internal::Benchmark* b) { b->Args({8192, 2048, 0})->UseRealTime(); }

BENCHMARK(activation_forward<kernels::Activation::relu>)->Apply(both_dtypes);
BENCHMARK(activation_forward<kernels::Activation::gelu>)->Apply(both_dtypes);
BENCHMARK(activation_forward<kernels::Activation::gelu_tanh>)->Apply(both_dtypes);
BENCHMARK(activation_forward<kernels::Activation::silu>)->Apply(both_dtypes);
BENCHMARK(activation_backward<kernels::Activation::gelu>)->Apply(both_dtypes);
BENCHMARK(activation_backward<kernels::Activation::gelu_tanh>)->Apply(both_dtypes);
BENCHMARK(activation_backward<kernels::Activation::silu>)->Apply(both_dtypes);
BENCHMARK(layer_norm_forward)->Apply(both_dtypes);
BENCHMARK(layer_norm_backward)->Apply(both_dtypes);
BENCHMARK(softmax_forward)->Apply(both_dtypes);
BENCHMARK(softmax_backward)->Apply(both_dtypes);
BENCHMARK(cross_entropy)->Apply(both_dtypes);
BENCHMARK(dropout)->Apply(both_dtypes);
BENCHMARK(drop_path)->Apply(both_dtypes);
BENCHMARK(cast_to_bf16)->Apply(parameters);
BENCHMARK(adamw_step)->Apply(parameters);
BENCHMARK(sgd_step)->Apply(parameters);
BENCHMARK(sum_of_squares)->Apply(parameters);

}  // namespace
}  // namespace vitrail
