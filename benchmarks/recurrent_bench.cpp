// Training steps (forward and backward) of recurrent networks: two layers of 512 units, 64 sequences of 128 steps, as
// of a character language model; sequences of unequal length beside equal ones; and the attention of a translator's
// step.
#include <benchmark/benchmark.h>

#include "benchmarks/op_bench.h"
#include "benchmarks/roofline.h"
#include "vitrail/nn/recurrent/recurrent.h"
#include "vitrail/ops/attention/additive.h"

namespace vitrail {
namespace {

// The weights of a network that enter a product once a step, each [out, in].
double weights_of(const nn::ParameterStore& store) {
  double sum = 0;
  for (const nn::Parameter& parameter : store.all()) {
    sum += parameter.value.rank() == 2 ? static_cast<double>(parameter.value.numel()) : 0;
  }
  return sum;
}

void run_network(benchmark::State& state, const nn::RecurrentConfig& config, const Tensor& x, const Tensor& lengths,
                 DType dtype, double steps) {
  nn::ParameterStore store;
  const nn::Recurrent network(nn::Scope(store), config);
  const auto forward = [&](const std::vector<Tensor>& inputs) {
    nn::Pass pass{.training = true, .dtype = dtype};
    return network(inputs.front(), {}, lengths, pass).output;
  };
  Tensor input = x;
  autograd::require_grad(input);
  const Tensor dy = forward({x});
  for (auto _ : state) {
    store.zero_grad();
    autograd::zero_grad(input);
    for (const nn::Parameter& parameter : store.all()) {
      parameter.value.touch();  // as an optimizer does
    }
    autograd::Tape tape;
    tape.backward(forward({input}), dy);
  }
  report_flops(state, 3 * 2 * steps * weights_of(store), dtype);
  state.counters["steps/s"] = roofline::rate(steps);
  state.SetLabel(std::string(nn::name_of(config.kind)) + " " + std::string(name_of(dtype)));
}

// Arguments: the kind of cell, whether its GRU resets before the product, and whether it is bf16.
void recurrent_training(benchmark::State& state) {
  nn::RecurrentConfig config;
  config.kind = static_cast<nn::RecurrentKind>(state.range(0));
  config.reset_after = state.range(1) == 0;
  config.input_size = 512;
  config.hidden_size = 512;
  config.num_layers = 2;
  const DType dtype = state.range(2) != 0 ? DType::bf16 : DType::f32;
  run_network(state, config, normal({64, 128, 512}, DType::f32), {}, dtype, 64 * 128);
}
BENCHMARK(recurrent_training)
    ->ArgNames({"kind", "before", "bf16"})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond)
    ->Apply([](benchmark::internal::Benchmark* benchmark) {
      for (const std::int64_t bf16 : {0, 1}) {
        for (const std::int64_t kind : {0, 1, 2, 3, 4, 5, 6}) {
          benchmark->Args({kind, 0, bf16});
        }
        benchmark->Args({static_cast<std::int64_t>(nn::RecurrentKind::gru), 1, bf16});
      }
    });

// 32 sequences of 5 to 100 steps, or all of 52; arguments: the kind of cell and its units, whether it goes in both
// directions, and whether the lengths are unequal.
void recurrent_lengths(benchmark::State& state) {
  nn::RecurrentConfig config;
  config.kind = static_cast<nn::RecurrentKind>(state.range(0));
  config.input_size = state.range(1);
  config.hidden_size = state.range(1);
  config.bidirectional = state.range(2) != 0;
  std::vector<std::int64_t> lengths(32, 52);
  double steps = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = state.range(3) != 0 ? 5 + static_cast<std::int64_t>(i * 37 % 32 * 95 / 31) : lengths[i];
    steps += static_cast<double>(lengths[i]);
  }
  const std::int64_t time = *std::ranges::max_element(lengths);
  run_network(state, config, normal({32, time, config.input_size}, DType::f32), Tensor::from(lengths, {32}), DType::f32,
              steps);
}
BENCHMARK(recurrent_lengths)
    ->ArgNames({"kind", "hidden", "both_ways", "unequal"})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond)
    ->ArgsProduct({{0, 1, 2}, {128, 512}, {0, 1}, {0, 1}});

// 128 words of as many translations look at sources of 32 words, with 256 units in each direction.
void additive_attention(benchmark::State& state) {
  const std::vector<Tensor> inputs = {normal({128, 256}, DType::f32, 1), normal({128, 32, 256}, DType::f32, 2),
                                      normal({128, 32, 512}, DType::f32, 3), normal({256}, DType::f32, 4)};
  run_op(state, state.range(0) != 0, inputs,
         [](const std::vector<Tensor>& in) { return ops::additive_attention(in[0], in[1], in[2], in[3]).context; });
}
BENCHMARK(additive_attention)->ArgName("backward")->UseRealTime()->Unit(benchmark::kMicrosecond)->Arg(0)->Arg(1);

}  // namespace
}  // namespace vitrail
