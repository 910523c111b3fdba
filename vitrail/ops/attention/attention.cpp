#include "vitrail/ops/attention/attention.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/attention.h"
#include "vitrail/kernels/cosine.h"
#include "vitrail/ops/attention/cached_attention.h"
#include "vitrail/ops/math/broadcast.h"
#include "vitrail/ops/math/dense.h"

namespace vitrail::ops {
namespace {

using autograd::Gradient;

// Memory for the kernel to write the gradient of x to: laid out as x, if its last dimension is dense.
Tensor room_for(const Gradient& gradient, const Tensor& x) {
  const Tensor room = gradient.empty(x.dtype());
  return is_dense_last(room) ? room : Tensor::empty_like(x);
}

// Views [B, N, H, d] as [B, H, N, d], or the other way round.
Tensor swap_heads(const Tensor& x) { return x.transpose(1, 2); }

void check_queries_and_keys(const Tensor& q, const Tensor& k) {
  check(q.rank() == 4 && k.rank() == 4, "attention: q and k must be [B, H, N, d] and [B, H, M, d], not {} and {}",
        q.shape(), k.shape());
  check(q.dtype() == k.dtype() && is_floating(q.dtype()),
        "attention: q and k must both be f32 or both bf16, not {} and {}", name_of(q.dtype()), name_of(k.dtype()));
  check(q.size(0) == k.size(0) && q.size(3) == k.size(3),
        "attention: q {} and k {} must agree in batch and head dimension", q.shape(), k.shape());
  check(k.size(1) > 0 && q.size(1) % k.size(1) == 0, "attention: the {} heads of k {} do not divide the {} of q {}",
        k.size(1), k.shape(), q.size(1), q.shape());
  check(q.size(3) > 0, "attention: the head dimension of q {} must be positive", q.shape());
}

void check_values(const Tensor& k, const Tensor& v) {
  check(v.rank() == 4 && v.size(0) == k.size(0) && v.size(1) == k.size(1) && v.size(2) == k.size(2),
        "attention: v {} must be [B, H, M, e] with the batch, heads and keys of k {}", v.shape(), k.shape());
  check(v.dtype() == k.dtype(), "attention: v is {}, but k is {}", name_of(v.dtype()), name_of(k.dtype()));
}

// Broadcasts `x` to [B, H, N, M], or to [W, H, N, M] if it has one for each of W windows; repeated dimensions have
// stride 0.
Tensor broadcast_scores(const Tensor& x, const Shape& shape, std::int64_t windows, const char* what) {
  if (!x.defined()) {
    return x;
  }
  bool fits = x.rank() <= shape.rank();
  for (int dim = 1; fits && dim <= std::min(x.rank(), 3); ++dim) {
    fits = x.size(-dim) == shape[-dim] || x.size(-dim) == 1;
  }
  const std::int64_t samples = x.rank() == 4 ? x.size(0) : 1;
  check(fits && (samples == 1 || samples == shape[0] || (windows > 0 && samples == windows)),
        "attention: the {} {} does not broadcast to [B, H, N, M] = {}{}", what, x.shape(), shape,
        windows > 0 ? fmt::format(", nor is it of {} windows", windows) : "");
  return x.detach().expand(samples > 1 ? shape.with(0, samples) : shape);
}

// Checks further columns of x, and returns them as [B, H, rows, r]. If `repeated`, B and H may be 1 and are broadcast.
Tensor further_columns(const char* what, const Tensor& more, const Tensor& x, bool repeated) {
  if (!more.defined()) {
    return more;
  }
  const auto fits = [&](int dim) { return more.size(dim) == x.size(dim) || (repeated && more.size(dim) == 1); };
  check(more.dtype() == x.dtype() && more.rank() == 4 && fits(0) && fits(1) && more.size(2) == x.size(2),
        "attention: {} must be [{}, {}, {}, r] {}, not {} {}", what, x.size(0), x.size(1), x.size(2),
        name_of(x.dtype()), more.shape(), name_of(more.dtype()));
  return dense_last(more.detach()).expand(x.shape().with(3, more.size(3)));
}

// The lengths of `shape[0]` samples, checked here, since the kernel does not check them.
Tensor checked_lengths(const Tensor& lengths, const Shape& shape) {
  if (!lengths.defined()) {
    return lengths;
  }
  check(lengths.dtype() == DType::i64 && lengths.shape() == Shape{shape[0]},
        "attention: the lengths must be [{}] i64, not {} {}", shape[0], lengths.shape(), name_of(lengths.dtype()));
  const Tensor dense = lengths.contiguous();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    const std::int64_t length = dense.data<std::int64_t>()[b];
    check(length >= 1 && length <= shape[3], "attention: the length of sample {} must lie in 1 … {}, but is {}", b,
          shape[3], length);
  }
  return dense;
}

// The offsets of sequences in `rows` rows, checked here, since the kernel does not check them.
Tensor checked_offsets(const Tensor& offsets, std::int64_t rows, const char* what) {
  check(offsets.dtype() == DType::i64 && offsets.rank() == 1 && offsets.numel() > 1,
        "attention: the offsets of {} must be [S + 1] i64, not {} {}", what, offsets.shape(), name_of(offsets.dtype()));
  const Tensor dense = offsets.contiguous();
  const std::span<const std::int64_t> at = dense.span<std::int64_t>();
  check(at.front() == 0 && at.back() == rows, "attention: the offsets of {} must go from 0 to {}, not from {} to {}",
        what, rows, at.front(), at.back());
  for (std::size_t s = 1; s < at.size(); ++s) {
    check(at[s] > at[s - 1], "attention: the offsets of {} must grow, but {} comes behind {}", what, at[s], at[s - 1]);
  }
  return dense;
}

// Takes the offsets of the options over, if it has any.
void set_offsets(const AttentionOptions& options, const Shape& shape, kernels::AttentionScores& scores) {
  if (!options.query_offsets.defined()) {
    check(!options.key_offsets.defined(), "attention: offsets of keys come with offsets of queries");
    return;
  }
  check(shape[0] == 1, "attention: sequences with offsets are one row, not a batch of {}", shape[0]);
  check(!options.lengths.defined() && !options.mask.defined() && !options.bias.defined() && !options.q_extra.defined(),
        "attention: sequences with offsets take no lengths, mask, bias or further columns");
  scores.query_offsets = checked_offsets(options.query_offsets, shape[2], "queries");
  scores.key_offsets = options.key_offsets.defined() ? checked_offsets(options.key_offsets, shape[3], "keys")
                                                     : checked_offsets(options.query_offsets, shape[3], "keys");
  check(scores.query_offsets.numel() == scores.key_offsets.numel(),
        "attention: {} sequences of queries cannot see {} of keys", scores.query_offsets.numel() - 1,
        scores.key_offsets.numel() - 1);
}

// The bias by distances for scores [B, H, N, M], checked and dense.
Tensor checked_distances(const AttentionOptions& options, const Shape& shape) {
  const Tensor& bias = options.distance_bias;
  if (!bias.defined()) {
    return bias;
  }
  check(bias.rank() == 2 && bias.size(0) == shape[1] && bias.size(1) % 2 == 1 && bias.dtype() == DType::f32,
        "attention: the distance_bias must be [{}, 2 C + 1] f32, not {} {}", shape[1], bias.shape(),
        name_of(bias.dtype()));
  const std::int64_t farthest = std::max(shape[2], shape[3]) - 1;
  // Of sequences in a row, only the longest counts.
  check(options.query_offsets.defined() || bias.size(1) / 2 >= farthest,
        "attention: the distance_bias {} has no distance of {}", bias.shape(), farthest);
  check(!options.bias.defined(), "attention: there is a bias beside the distance_bias: add them");
  return bias.detach().contiguous();
}

// Throws Error unless the distances between queries and keys of all sequences lie in the bias.
void check_distances_of_sequences(const kernels::AttentionScores& scores) {
  const std::span<const std::int64_t> queries = scores.query_offsets.span<std::int64_t>();
  const std::span<const std::int64_t> keys = scores.key_offsets.span<std::int64_t>();
  for (std::size_t s = 0; s + 1 < queries.size(); ++s) {
    const std::int64_t farthest = std::max(queries[s + 1] - queries[s], keys[s + 1] - keys[s]) - 1;
    check(scores.distance_bias.size(1) / 2 >= farthest,
          "attention: the distance_bias {} has no distance of {}, which sequence {} has", scores.distance_bias.shape(),
          farthest, s);
  }
}

kernels::AttentionScores scores_of(const AttentionOptions& options, const Tensor& q, const Tensor& k) {
  check(options.dropout >= 0 && options.dropout < 1, "attention: dropout must lie in [0, 1), but is {}",
        options.dropout);
  const Shape shape{q.size(0), q.size(1), q.size(2), k.size(2)};
  kernels::AttentionScores scores;
  scores.scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<float>(q.size(3)));
  scores.causal = options.causal;
  scores.lengths = checked_lengths(options.lengths, shape);
  set_offsets(options, shape, scores);
  check(!options.mask.defined() || options.mask.dtype() == DType::boolean || options.mask.dtype() == DType::f32,
        "attention: the mask must be bool or f32, not {}", options.mask.defined() ? name_of(options.mask.dtype()) : "");
  check(!options.bias.defined() || options.bias.dtype() == DType::f32, "attention: the bias must be f32, not {}",
        options.bias.defined() ? name_of(options.bias.dtype()) : "");
  check(options.windows >= 0 && (options.windows == 0 || shape[0] % options.windows == 0),
        "attention: a batch of {} does not consist of images of {} windows each", shape[0], options.windows);
  scores.mask = broadcast_scores(options.mask, shape, options.windows, "mask");
  scores.bias = broadcast_scores(options.bias, shape, options.windows, "bias");
  scores.distance_bias = checked_distances(options, shape);
  if (scores.distance_bias.defined() && scores.query_offsets.defined()) {
    check_distances_of_sequences(scores);
  }
  scores.q_extra = further_columns("q_extra", options.q_extra, q, false);
  check(!options.k_extra.defined() || q.size(1) == k.size(1),
        "attention: with k_extra, k {} must have as many heads as q {}", k.shape(), q.shape());
  scores.k_extra = further_columns("k_extra", options.k_extra, k, true);
  const auto columns = [](const Tensor& more) { return more.defined() ? more.size(3) : 0; };
  check(columns(scores.q_extra) == columns(scores.k_extra), "attention: q_extra has {} columns, but k_extra {}",
        columns(scores.q_extra), columns(scores.k_extra));
  scores.dropout = options.dropout;
  scores.draws = options.draws;
  return scores;
}

// Memory for the kernel to write the gradient of keys or values to, which has all H heads of the queries.
Tensor room_for_heads(const Gradient& gradient, const Tensor& x, std::int64_t heads) {
  return x.size(1) == heads ? room_for(gradient, x) : Tensor::empty(x.shape().with(1, heads), x.dtype());
}

// The gradient [B, H, M, d] summed over the heads that share keys or values: [B, G, M, d].
Tensor sum_groups(const Tensor& gradient, std::int64_t groups) {
  if (gradient.size(1) == groups) {
    return gradient;
  }
  const Shape& all = gradient.shape();
  const Shape apart{all[0], groups, all[1] / groups, all[2], all[3]};
  return sum_to(gradient.reshape(apart), apart.with(2, 1)).squeeze(2);
}

// The bias of either kind; undefined if there is none.
const Tensor& bias_of(const AttentionOptions& options) {
  return options.distance_bias.defined() ? options.distance_bias : options.bias;
}

// Whether there are so few queries for so many keys that packing the keys would take longer than reading them.
bool reads_as_it_lies(const AttentionOptions& options, const Tensor& q, const Tensor& k) {
  constexpr std::int64_t most_queries = 8;
  constexpr std::int64_t least_keys_each = 4;
  return q.size(2) <= most_queries && k.size(2) >= least_keys_each * q.size(2) && !options.query_offsets.defined() &&
         !options.mask.defined() && !bias_of(options).defined() && !options.q_extra.defined() && options.dropout == 0 &&
         (!options.causal || !options.lengths.defined());
}

// Memory for the gradient of the bias to accumulate in; undefined if it is not wanted.
Tensor zeros_for(const Gradient& bias) { return bias.wanted() ? Tensor::zeros(bias.shape()) : Tensor(); }

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  check_queries_and_keys(q, k);
  check_values(k, v);
  const kernels::AttentionScores scores = scores_of(options, q, k);
  const Tensor qd = dense_last(q.detach()), kd = dense_last(k.detach()), vd = dense_last(v.detach());
  const bool recording = autograd::recording({&q, &k, &v, &bias_of(options), &options.q_extra});
  if (!recording && reads_as_it_lies(options, q, k)) {
    return cached_attention(qd, {kd}, {vd}, {scores.scale, scores.lengths, {}, scores.causal});
  }
  const Tensor out = swap_heads(Tensor::empty({q.size(0), q.size(2), q.size(1), v.size(3)}, q.dtype()));
  const Tensor log_sum = recording ? Tensor::empty({q.size(0), q.size(1), q.size(2)}) : Tensor();
  kernels::attention_forward(qd, kd, vd, scores, out, log_sum);
  return autograd::record("attention", out, {&q, &k, &v, &bias_of(options), &options.q_extra},
                          [qd, kd, vd, scores, out, log_sum, gq = Gradient(q), gk = Gradient(k), gv = Gradient(v),
                           gmore = Gradient(options.q_extra), gbias = Gradient(bias_of(options))](const Tensor& dout) {
                            const kernels::AttentionGradients to{
                                .dq = room_for(gq, qd),
                                .dk = room_for_heads(gk, kd, qd.size(1)),
                                .dv = room_for_heads(gv, vd, qd.size(1)),
                                .dq_extra = gmore.wanted() ? room_for(gmore, scores.q_extra) : Tensor(),
                                .dbias = zeros_for(gbias)};
                            kernels::attention_backward(qd, kd, vd, scores, out, log_sum, dense_last(dout), to);
                            gq.add(to.dq);
                            gk.add(sum_groups(to.dk, kd.size(1)));
                            gv.add(sum_groups(to.dv, vd.size(1)));
                            gmore.add(to.dq_extra);
                            gbias.add(to.dbias);
                          });
}

Tensor attention_packed(const Tensor& qkv, const AttentionOptions& options) {
  check(qkv.rank() == 5 && qkv.size(2) == 3, "attention: the packed projection must be [B, N, 3, H, d], not {}",
        qkv.shape());
  const auto part = [](const Tensor& x, int i) { return swap_heads(x.select(2, i)); };
  const Tensor packed = dense_last(qkv.detach());
  const Tensor q = part(packed, 0), k = part(packed, 1), v = part(packed, 2);
  check_queries_and_keys(q, k);
  check(!options.q_extra.defined() && !options.k_extra.defined(),
        "attention: the packed form takes no q_extra and k_extra");
  const kernels::AttentionScores scores = scores_of(options, q, k);
  const bool recording = autograd::recording({&qkv, &bias_of(options)});
  const Tensor out = Tensor::empty({qkv.size(0), qkv.size(1), qkv.size(3), qkv.size(4)}, qkv.dtype());
  const Tensor log_sum = recording ? Tensor::empty({q.size(0), q.size(1), q.size(2)}) : Tensor();
  kernels::attention_forward(q, k, v, scores, swap_heads(out), log_sum);
  return autograd::record(
      "attention", out, {&qkv, &bias_of(options)},
      [part, q, k, v, scores, out, log_sum, gqkv = Gradient(qkv),
       gbias = Gradient(bias_of(options))](const Tensor& dout) {
        const Tensor dqkv = Tensor::empty({q.size(0), q.size(2), 3, q.size(1), q.size(3)}, q.dtype());
        const Tensor dbias = zeros_for(gbias);
        kernels::attention_backward(q, k, v, scores, swap_heads(out), log_sum, swap_heads(dense_last(dout)),
                                    {.dq = part(dqkv, 0), .dk = part(dqkv, 1), .dv = part(dqkv, 2), .dbias = dbias});
        gqkv.add(dqkv);
        gbias.add(dbias);
      });
}

Tensor cosine_queries(const Tensor& qkv, const Tensor& scale) {
  check(qkv.rank() == 5 && qkv.size(2) == 3 && is_floating(qkv.dtype()),
        "cosine_queries: the packed projection must be [B, N, 3, H, d] of f32 or bf16, not {} {}", qkv.shape(),
        name_of(qkv.dtype()));
  check(scale.shape() == Shape{qkv.size(3)} && scale.dtype() == DType::f32,
        "cosine_queries: the scale must be [{}] f32, not {} {}", qkv.size(3), scale.shape(), name_of(scale.dtype()));
  const kernels::PackedHeads shape{qkv.size(0) * qkv.size(1), qkv.size(3), qkv.size(4), qkv.dtype()};
  const Tensor x = qkv.detach().contiguous();
  const Tensor factors = scale.detach().contiguous();
  const Tensor y = Tensor::empty(x.shape(), x.dtype());
  kernels::cosine_forward(shape, x.raw(), factors.data<float>(), y.raw());
  return autograd::record("cosine_queries", y, {&qkv, &scale},
                          [shape, x, factors, dqkv = Gradient(qkv), dscale = Gradient(scale)](const Tensor& dy) {
                            const Tensor dense = dy.contiguous();
                            const Tensor dx = Tensor::empty(x.shape(), x.dtype());
                            const Tensor df = Tensor::empty(factors.shape());
                            kernels::cosine_backward(shape, x.raw(), factors.data<float>(), dense.raw(), dx.raw(),
                                                     df.data<float>());
                            dqkv.add(dx);
                            dscale.add(df);
                          });
}

Tensor attention_probabilities(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  check_queries_and_keys(q, k);
  check(!options.query_offsets.defined(),
        "attention: there are no maps of sequences with offsets: give them as a batch");
  Tensor probabilities = Tensor::empty({q.size(0), q.size(1), q.size(2), k.size(2)});
  kernels::attention_probabilities(dense_last(q.detach()), dense_last(k.detach()), scores_of(options, q, k),
                                   probabilities);
  return probabilities;
}

}  // namespace vitrail::ops
