// The part of the attention kernel that is not compiled per instruction set: blocks, threads and their memory.
#include "vitrail/kernels/attention.h"

#include <cstring>
#include <vector>

#include "vitrail/kernels/cpu.h"
#include "vitrail/kernels/cpu/attention/attention_tile.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/tensor/profile.h"

namespace vitrail::kernels {
namespace {

// The number of multiplications that are worth a thread.
constexpr double thread_work = 1 << 18;

// The size of equal blocks that divide `n`, about `wanted` and a multiple of `unit`.
std::int64_t block_size(std::int64_t n, std::int64_t wanted, std::int64_t unit) {
  const std::int64_t blocks = std::max<std::int64_t>(1, (n + wanted - 1) / wanted);
  const std::int64_t size = (n + blocks - 1) / blocks;
  return std::max<std::int64_t>(unit, (size + unit - 1) / unit * unit);
}

AttentionProblem problem_of(const Tensor& q, const Tensor& k, const AttentionScores& scores) {
  AttentionProblem problem;
  problem.batch = q.size(0);
  problem.heads = q.size(1);
  problem.queries = q.size(2);
  problem.keys = k.size(2);
  problem.own = q.size(3);
  problem.dim = problem.own + (scores.q_extra.defined() ? scores.q_extra.size(3) : 0);
  problem.value_dim = 0;
  problem.q = HeadsView(q);
  problem.k = HeadsView(k, problem.heads);
  problem.q_extra = HeadsView(scores.q_extra);
  problem.k_extra = HeadsView(scores.k_extra);
  problem.mask = HeadsView(scores.mask);
  problem.bias = scores.bias.defined() ? HeadsView(scores.bias)
                                       : HeadsView::of_distances(scores.distance_bias, problem.queries, problem.keys);
  problem.mask_is_added = scores.mask.defined() && scores.mask.dtype() == DType::f32;
  problem.scale = scores.scale;
  problem.causal = scores.causal;
  problem.lengths = scores.lengths.defined() ? scores.lengths.data<std::int64_t>() : nullptr;
  problem.dropout = scores.dropout;
  problem.draws = scores.draws;
  problem.is_bf16 = q.dtype() == DType::bf16;
  problem.pairs = problem.is_bf16 && has_pair_products();
  return problem;
}

// The number of scores, with only the keys up to the lengths.
double scores_in(const AttentionProblem& problem) {
  std::int64_t keys = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    keys += problem.keys_of(b);
  }
  return static_cast<double>(problem.heads * keys) * static_cast<double>(problem.queries);
}

// The number of multiplications of the tiles, in forward.
double tile_work(const AttentionProblem& problem) {
  return scores_in(problem) * static_cast<double>(problem.dim + problem.value_dim);
}

// The number of shares of the tasks that are worth a thread each, of this much work in all.
int shares_for(double work, std::int64_t tasks) {
  const auto useful = static_cast<std::int64_t>(std::min(work / thread_work, 1e6));
  return threads_for(std::min(tasks, useful), 1);
}

// The beginnings of `parts` contiguous shares of the tasks whose costs are about equal, followed by the end: parts + 1
// numbers.
template <class Cost>
std::vector<std::int64_t> shares(std::int64_t tasks, int parts, Cost cost) {
  double total = 0;
  for (std::int64_t task = 0; task < tasks; ++task) {
    total += cost(task);
  }
  std::vector<std::int64_t> begins{0};
  double sum = 0;
  for (std::int64_t task = 0; task < tasks; ++task) {
    while (static_cast<int>(begins.size()) < parts && sum + cost(task) / 2 > total * begins.size() / parts) {
      begins.push_back(task);
    }
    sum += cost(task);
  }
  begins.resize(static_cast<std::size_t>(parts) + 1, tasks);
  return begins;
}

// In debug builds, fills the scratch memory with NaN, so that tests notice if it is read before it is written.
void poison([[maybe_unused]] const Storage& scratch) {
#ifndef NDEBUG
  std::memset(scratch.data(), 0xff, scratch.bytes());
#endif
}

void run_forward(const AttentionProblem& problem) {
  const std::int64_t blocks = problem.query_blocks();
  const std::int64_t tasks = problem.batch * problem.heads * blocks;
  const int parts = shares_for(tile_work(problem), tasks);
  const std::vector<std::int64_t> begins = shares(tasks, parts, [&](std::int64_t task) {
    const std::int64_t last = std::min(problem.queries, (task % blocks + 1) * problem.query_block) - 1;
    return static_cast<double>(problem.visible(task / blocks / problem.heads, last)) + 1;
  });
  const std::size_t bytes = attention_forward_part(problem, 0, 0, nullptr);
  const Storage scratch(bytes * static_cast<std::size_t>(parts));
  poison(scratch);
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t part = begin; part < end; ++part) {
      const auto p = static_cast<std::size_t>(part);
      attention_forward_part(problem, begins[p], begins[p + 1], scratch.data() + bytes * p);
    }
  });
}

// Sums dq of the heads whose blocks of keys several shares computed, each of which has a partial sum.
template <class T>
void sum_queries(const AttentionProblem& problem, const std::vector<BackwardPart>& parts) {
  const std::int64_t blocks = problem.key_blocks();
  for (std::size_t first = 0; first + 1 < parts.size(); ++first) {
    const std::int64_t head = (parts[first].end - 1) / blocks;  // the last head of the share, if others continue it
    const bool begins_here = parts[first].begin <= head * blocks;
    if (parts[first].begin == parts[first].end || parts[first].end % blocks == 0 || !begins_here) {
      continue;
    }
    parallel_for(problem.queries, 64, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        T* dq = problem.dq.at<T>(head / problem.heads, head % problem.heads, i);
        T* dq_extra = problem.dq_extra.at<T>(head / problem.heads, head % problem.heads, i);
        for (std::int64_t c = 0; c < (problem.dq_extra ? problem.dim : problem.own); ++c) {
          float sum = 0;
          for (std::size_t p = first; p < parts.size() && parts[p].begin < (head + 1) * blocks; ++p) {
            if (parts[p].begin < parts[p].end) {
              sum += parts[p].dq_of(problem, head)[i * problem.dq_row() + c];
            }
          }
          (c < problem.own ? dq[c] : dq_extra[c - problem.own]) = T(sum * problem.scale);
        }
      }
    });
  }
}

// The gradient of the bias. If several shares may add to the same element, each of them adds to a copy of its own.
class BiasGradient {
 public:
  // With `common`, several scores have the same element.
  BiasGradient(const Tensor& dbias, bool common, int parts) : sum_(dbias) {
    if (dbias.defined() && common && parts > 1) {
      parts_ = Tensor::zeros(dbias.shape().inserted(0, parts));
    }
  }
  Tensor of(int part) const { return parts_.defined() ? parts_.select(0, part) : sum_; }
  void finish() const {
    if (!parts_.defined()) {
      return;
    }
    float* sum = sum_.data<float>();
    const float* own = parts_.data<float>();
    const std::int64_t n = sum_.numel();
    parallel_for(n, 1 << 14, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t part = 0; part < parts_.size(0); ++part) {
        for (std::int64_t i = begin; i < end; ++i) {
          sum[i] += own[part * n + i];
        }
      }
    });
  }

 private:
  Tensor sum_;
  Tensor parts_;
};

// Counts the work for a profile. For each score there are `keys` products over the width of a key, and `values` over
// that of a value.
void count_work(const AttentionProblem& problem, double keys, double values) {
  double scores = scores_in(problem);
  if (problem.causal) {
    scores /= 2;
  }
  Profile::flops(2 * scores *
                 (keys * static_cast<double>(problem.dim) + values * static_cast<double>(problem.value_dim)));
}

void run_backward(const AttentionProblem& problem, const AttentionScores& kinds, const Tensor& dbias) {
  const std::int64_t blocks = problem.key_blocks();
  const std::int64_t tasks = problem.batch * problem.heads * blocks;
  const int count = shares_for(tile_work(problem), tasks);
  const std::vector<std::int64_t> begins = shares(tasks, count, [&](std::int64_t task) {
    const std::int64_t first = problem.first_query(task / blocks / problem.heads, task % blocks * problem.key_block);
    return static_cast<double>(problem.queries - first) + 1;
  });
  const Shape scores{problem.bias ? problem.bias.samples : problem.batch, problem.heads, problem.queries, problem.keys};
  const bool distances = kinds.distance_bias.defined();
  const bool repeated = scores[0] != problem.batch || (dbias.defined() && dbias.numel() != scores.numel());
  const BiasGradient bias(dbias, distances || repeated, count);
  const auto view = [&](const Tensor& own) {
    return distances || !own.defined() ? HeadsView::of_distances(own, problem.queries, problem.keys)
                                       : HeadsView(own.expand(scores));
  };
  const std::size_t bytes = attention_backward_part(problem, {}, nullptr);
  const std::int64_t dq_size = problem.queries * problem.dq_row();
  const std::size_t dq_bytes = static_cast<std::size_t>(dq_size) * sizeof(float);
  const Storage scratch((bytes + 2 * dq_bytes) * static_cast<std::size_t>(count));
  poison(scratch);
  std::vector<BackwardPart> parts(static_cast<std::size_t>(count));
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::byte* memory = scratch.data() + (bytes + 2 * dq_bytes) * p + bytes;
    parts[p].begin = begins[p];
    parts[p].end = begins[p + 1];
    parts[p].dq[0] = reinterpret_cast<float*>(memory);
    parts[p].dq[1] = reinterpret_cast<float*>(memory + dq_bytes);
    parts[p].dbias = view(bias.of(static_cast<int>(p)));
  }
  parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t part = begin; part < end; ++part) {
      const auto p = static_cast<std::size_t>(part);
      attention_backward_part(problem, parts[p], scratch.data() + (bytes + 2 * dq_bytes) * p);
    }
  });
  problem.is_bf16 ? sum_queries<bf16>(problem, parts) : sum_queries<float>(problem, parts);
  bias.finish();
}

// About how many queries and keys a tile has: no more than the caches of a core hold at once, and, along the side that
// is divided among the threads, few enough that each thread gets some.
constexpr std::int64_t tile_queries = 96;
constexpr std::int64_t forward_keys = 512;
constexpr std::int64_t backward_keys = 320;

std::int64_t shared_block(const AttentionProblem& problem, std::int64_t n, std::int64_t least, std::int64_t most) {
  const std::int64_t wanted = 4 * static_cast<std::int64_t>(threads());
  return std::clamp(n * problem.batch * problem.heads / wanted, least, most);
}

// The number of rows of the smallest part of a product; blocks of a multiple of it waste nothing.
std::int64_t query_unit(const AttentionProblem& problem) { return problem.pairs && has_amx() ? 16 : tile_rows; }

void choose_forward_blocks(AttentionProblem& problem) {
  problem.query_block =
      block_size(problem.queries, shared_block(problem, problem.queries, 24, tile_queries), query_unit(problem));
  problem.key_block = block_size(problem.keys, forward_keys, 16);
}

void choose_backward_blocks(AttentionProblem& problem) {
  problem.query_block = block_size(problem.queries, tile_queries, query_unit(problem));
  problem.key_block = block_size(problem.keys, shared_block(problem, problem.keys, 64, backward_keys), 16);
}

// The sequences of a row, each as a problem of its own.
std::vector<AttentionProblem> sequences_of(const AttentionProblem& row, const AttentionScores& scores) {
  const std::int64_t* queries = scores.query_offsets.data<std::int64_t>();
  const std::int64_t* keys = scores.key_offsets.data<std::int64_t>();
  std::vector<AttentionProblem> result;
  for (std::int64_t s = 0; s + 1 < scores.query_offsets.numel(); ++s) {
    AttentionProblem one = row;
    one.queries = queries[s + 1] - queries[s];
    one.keys = keys[s + 1] - keys[s];
    for (HeadsView* view : {&one.q, &one.out, &one.dout, &one.dq}) {
      view->skip(queries[s], row.element_size());
    }
    for (HeadsView* view : {&one.k, &one.v, &one.dk, &one.dv}) {
      view->skip(keys[s], row.element_size());
    }
    one.bias = HeadsView::of_distances(scores.distance_bias, one.queries, one.keys);
    one.log_sum = row.log_sum != nullptr ? row.log_sum + row.heads * queries[s] : nullptr;
    one.draws = Philox(mix(row.draws.seed(), static_cast<std::uint64_t>(s)), row.draws.stream());
    result.push_back(one);
  }
  return result;
}

// Runs `work(problem, head, memory, share)` for all heads of all sequences, in shares of about equal cost with `bytes`
// of memory each. There are at most threads() of them.
template <class Work>
void for_heads(const std::vector<AttentionProblem>& sequences, std::size_t bytes, Work&& work) {
  const std::int64_t heads = sequences.front().heads;
  const std::int64_t tasks = std::ssize(sequences) * heads;
  const auto of = [&](std::int64_t task) -> const AttentionProblem& {
    return sequences[static_cast<std::size_t>(task / heads)];
  };
  double total = 0;
  for (const AttentionProblem& one : sequences) {
    total += tile_work(one);
  }
  const int parts = shares_for(total, tasks);
  const std::vector<std::int64_t> begins =
      shares(tasks, parts, [&](std::int64_t task) { return scores_in(of(task)) + 1; });
  const Storage scratch(bytes * static_cast<std::size_t>(parts));
  poison(scratch);
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t part = begin; part < end; ++part) {
      const auto p = static_cast<std::size_t>(part);
      for (std::int64_t task = begins[p]; task < begins[p + 1]; ++task) {
        work(of(task), task % heads, scratch.data() + bytes * p, static_cast<int>(part));
      }
    }
  });
}

void run_forward_of_sequences(std::vector<AttentionProblem> sequences) {
  std::size_t bytes = 0;
  for (AttentionProblem& one : sequences) {
    choose_forward_blocks(one);
    bytes = std::max(bytes, attention_forward_part(one, 0, 0, nullptr));
  }
  for_heads(sequences, bytes, [](const AttentionProblem& one, std::int64_t head, std::byte* memory, int) {
    const std::int64_t blocks = one.query_blocks();
    attention_forward_part(one, head * blocks, (head + 1) * blocks, memory);
  });
}

void run_backward_of_sequences(std::vector<AttentionProblem> sequences, const Tensor& dbias) {
  std::size_t bytes = 0;
  std::size_t dq_bytes = 0;
  for (AttentionProblem& one : sequences) {
    choose_backward_blocks(one);
    bytes = std::max(bytes, attention_backward_part(one, {}, nullptr));
    dq_bytes = std::max(dq_bytes, static_cast<std::size_t>(one.queries * one.dq_row()) * sizeof(float));
  }
  const BiasGradient bias(dbias, true, threads());
  for_heads(sequences, bytes + dq_bytes, [&](const AttentionProblem& one, std::int64_t head, std::byte* memory, int p) {
    const std::int64_t blocks = one.key_blocks();
    BackwardPart part;
    part.begin = head * blocks;
    part.end = (head + 1) * blocks;
    part.dq[0] = reinterpret_cast<float*>(memory + bytes);
    part.dbias = HeadsView::of_distances(bias.of(p), one.queries, one.keys);
    attention_backward_part(one, part, memory);
  });
  bias.finish();
}

}  // namespace

void attention_forward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionScores& scores,
                       const Tensor& out, const Tensor& log_sum) {
  if (out.numel() == 0) {
    return;
  }
  AttentionProblem problem = problem_of(q, k, scores);
  problem.value_dim = v.size(3);
  problem.v = HeadsView(v, problem.heads);
  problem.out = HeadsView(out);
  problem.log_sum = log_sum.defined() ? log_sum.data<float>() : nullptr;
  if (scores.query_offsets.defined()) {
    const std::vector<AttentionProblem> sequences = sequences_of(problem, scores);
    for (const AttentionProblem& one : sequences) {
      count_work(one, 1, 1);
    }
    run_forward_of_sequences(sequences);
    return;
  }
  choose_forward_blocks(problem);
  count_work(problem, 1, 1);
  run_forward(problem);
}

void attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionScores& scores,
                        const Tensor& out, const Tensor& log_sum, const Tensor& dout,
                        const AttentionGradients& gradients) {
  const auto& [dq, dk, dv, dq_extra, dbias] = gradients;
  if (out.numel() == 0 || k.numel() == 0) {
    for (const Tensor& gradient : {dq, dk, dv, dq_extra}) {
      if (gradient.defined()) {
        gradient.fill(0);
      }
    }
    return;
  }
  AttentionProblem problem = problem_of(q, k, scores);
  problem.value_dim = v.size(3);
  problem.v = HeadsView(v, problem.heads);
  problem.out = HeadsView(out);
  problem.log_sum = log_sum.data<float>();
  problem.dout = HeadsView(dout);
  problem.dq = HeadsView(dq);
  problem.dk = HeadsView(dk);
  problem.dv = HeadsView(dv);
  problem.dq_extra = HeadsView(dq_extra);
  if (scores.query_offsets.defined()) {
    const std::vector<AttentionProblem> sequences = sequences_of(problem, scores);
    for (const AttentionProblem& one : sequences) {
      count_work(one, 3, 2);
    }
    run_backward_of_sequences(sequences, dbias);
    return;
  }
  choose_backward_blocks(problem);
  count_work(problem, 3, 2);  // of keys: the scores again, dq, dk; of values: dv, d(probabilities)
  run_backward(problem, scores, dbias);
}

void attention_probabilities(const Tensor& q, const Tensor& k, const AttentionScores& scores,
                             const Tensor& probabilities) {
  if (probabilities.numel() == 0) {
    return;
  }
  AttentionProblem problem = problem_of(q, k, scores);
  problem.out = HeadsView(probabilities);
  choose_forward_blocks(problem);
  count_work(problem, 1, 0);
  run_forward(problem);
}

}  // namespace vitrail::kernels
