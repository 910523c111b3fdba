// Fused attention at the sizes of vision transformers: arguments are B, H, N, d, whether it is bf16, and how many
// percent of the keys are real (0: the kernel is told no lengths; -L: the row is one of texts of L tokens on average,
// each of which sees itself alone). The rate counts 2 products of 2 B H N M d operations forward and 5 backward, of
// those queries and keys that see each other.
#include <algorithm>
#include <vector>

#include <benchmark/benchmark.h>

#include "benchmarks/op_bench.h"
#include "benchmarks/roofline.h"
#include "vitrail/kernels/attention.h"
#include "vitrail/kernels/cached_attention.h"

namespace vitrail {
namespace {

struct Case {
  explicit Case(const benchmark::State& state)
      : batch(state.range(0)),
        heads(state.range(1)),
        tokens(state.range(2)),
        dim(state.range(3)),
        dtype(state.range(4) != 0 ? DType::bf16 : DType::f32) {
    scores.scale = 0.125F;
    if (state.range(5) > 0) {
      const std::int64_t keys = tokens * state.range(5) / 100;
      scores.lengths = Tensor::full({batch}, static_cast<double>(keys), DType::i64);
      pairs = static_cast<double>(batch * tokens * keys);
    } else if (state.range(5) < 0) {
      scores.query_offsets = texts(-state.range(5));
    }
    qkv = normal({batch, tokens, 3, heads, dim}, dtype, 0);
    out = Tensor::empty({batch, tokens, heads, dim}, dtype);
    log_sum = Tensor::empty({batch, heads, tokens});
    forward();
  }
  // The offsets of texts in the row, from half to one and a half times as long as on average.
  Tensor texts(std::int64_t average) {
    std::vector<std::int64_t> offsets = {0};
    pairs = 0;
    for (std::int64_t length = average / 2; offsets.back() < tokens;
         length = average / 2 + (length + 7) % (average + 1)) {
      const std::int64_t own = std::min(length, tokens - offsets.back());
      offsets.push_back(offsets.back() + own);
      pairs += static_cast<double>(own * own);
    }
    return Tensor::from(offsets, {std::ssize(offsets)});
  }
  // Part 0, 1 or 2 of a packed projection as [B, H, N, d].
  static Tensor part(const Tensor& packed, int i) { return packed.select(2, i).transpose(1, 2); }
  void forward() const {
    kernels::attention_forward(part(qkv, 0), part(qkv, 1), part(qkv, 2), scores, out.transpose(1, 2), log_sum);
  }
  void report(benchmark::State& state, int products) const {
    const double operations = 2.0 * products * static_cast<double>(heads * dim) * pairs;
    report_flops(state, operations, dtype);
    state.SetLabel(dtype == DType::bf16 ? "bf16" : "f32");
  }

  std::int64_t batch, heads, tokens, dim;
  double pairs = static_cast<double>(batch * tokens * tokens);  // of queries and keys that see each other
  DType dtype;
  kernels::AttentionScores scores;
  Tensor qkv, out, log_sum;
};

void attention_forward(benchmark::State& state) {
  const Case c(state);
  for ([[maybe_unused]] auto _ : state) {
    c.forward();
  }
  c.report(state, 2);
}

void attention_backward(benchmark::State& state) {
  const Case c(state);
  const Tensor dout = normal(c.out.shape(), c.dtype, 1).transpose(1, 2);
  const Tensor dqkv = Tensor::empty_like(c.qkv);
  for ([[maybe_unused]] auto _ : state) {
    kernels::attention_backward(Case::part(c.qkv, 0), Case::part(c.qkv, 1), Case::part(c.qkv, 2), c.scores,
                                c.out.transpose(1, 2), c.log_sum, dout,
                                {Case::part(dqkv, 0), Case::part(dqkv, 1), Case::part(dqkv, 2)});
  }
  c.report(state, 5);
}

void sizes(benchmark::internal::Benchmark* b) {
  for (const std::int64_t dtype : {0, 1}) {
    b->Args({64, 3, 65, 64, dtype, 0});
    b->Args({16, 3, 197, 64, dtype, 0});
    b->Args({8, 12, 197, 64, dtype, 0});
    b->Args({1, 3, 1025, 64, dtype, 0});
    b->Args({1, 3, 4097, 64, dtype, 0});
    for (const std::int64_t real : {0, 100, 50}) {  // texts
      b->Args({8, 12, 512, 64, dtype, real});
    }
    b->Args({1, 8, 4096, 32, dtype, -16});  // a translator's batch without padding, and one of MiniLM
    b->Args({1, 12, 4096, 32, dtype, -16});
  }
  b->UseRealTime()->Unit(benchmark::kMicrosecond);
}
BENCHMARK(attention_forward)->Apply(sizes);
BENCHMARK(attention_backward)->Apply(sizes);

// One query for each head behind M tokens, as texts grow: arguments are B, H, the heads of keys and values, M, d, and
// the dtype of the cache (0: f32, 1: bf16, 2: int8; 3: f32, packed as for many queries). The rate counts the bytes of
// the cache.
void attention_cached(benchmark::State& state) {
  const std::int64_t batch = state.range(0), heads = state.range(1), groups = state.range(2), tokens = state.range(3),
                     dim = state.range(4), kind = state.range(5);
  const DType dtype = kind == 1 ? DType::bf16 : kind == 2 ? DType::i8 : DType::f32;
  const Tensor q = normal({batch, heads, 1, dim}, DType::f32, 0);
  const Tensor out = Tensor::empty(q.shape());
  const kernels::CachedRows rows = {Tensor::full({batch, groups, tokens, dim}, 1, dtype),
                                    dtype == DType::i8 ? Tensor::full({batch, groups, tokens}, 0.01) : Tensor()};
  for ([[maybe_unused]] auto _ : state) {
    if (kind == 3) {
      kernels::attention_forward(q, rows.rows, rows.rows, {.scale = 0.125F, .causal = true}, out, {});
    } else {
      kernels::cached_attention(q, rows, rows, {.scale = 0.125F, .causal = true}, out);
    }
  }
  report_bytes(state, 2.0 * static_cast<double>(rows.rows.bytes()));
}

void cached_sizes(benchmark::internal::Benchmark* b) {
  for (const std::int64_t kind : {0, 1, 2, 3}) {
    b->Args({1, 12, 12, 96, 64, kind});  // GPT-2
    b->Args({1, 12, 12, 1024, 64, kind});
    b->Args({8, 12, 12, 512, 64, kind});
    b->Args({1, 32, 4, 2048, 64, kind});  // TinyLlama
  }
  b->UseRealTime()->Unit(benchmark::kMicrosecond);
}
BENCHMARK(attention_cached)->Apply(cached_sizes);

}  // namespace
}  // namespace vitrail
