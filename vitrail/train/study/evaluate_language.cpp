#include "vitrail/train/study/evaluate_language.h"

#include <algorithm>
#include <cmath>

#include "vitrail/autograd/tape.h"
#include "vitrail/kernels/parallel.h"
#include "vitrail/train/finite.h"

namespace vitrail::train {
namespace {

// A part of the text: token `begin` … begin + length - 1 predict those behind them, of which those from place `fresh`
// on count.
struct Block {
  std::int64_t begin = 0;
  std::int64_t length = 0;
  std::int64_t fresh = 0;
};

std::vector<Block> blocks_of(std::int64_t targets, const EvaluateLanguageOptions& options) {
  const std::int64_t stride = options.stride > 0 ? options.stride : options.block_size;
  std::vector<Block> blocks;
  for (std::int64_t begin = 0, done = 0; done < targets; begin += stride) {
    const std::int64_t length = std::min(options.block_size, targets - begin);
    blocks.push_back({begin, length, done - begin});
    done = begin + length;
  }
  return blocks;
}

// The cross-entropy of each token of `count` blocks of one length, [count · length].
std::vector<double> losses_of(const models::LanguageBody& model, std::span<const std::int64_t> ids, const Block* blocks,
                              std::int64_t count, DType dtype) {
  const std::int64_t length = blocks->length;
  Tensor x = Tensor::empty({count, length}, DType::i64);
  for (std::int64_t b = 0; b < count; ++b) {
    std::copy_n(ids.begin() + blocks[b].begin, length, x.data<std::int64_t>() + b * length);
  }
  nn::Pass pass{.dtype = dtype};
  const Tensor logits = model.forward(x, pass).contiguous();
  const std::int64_t vocab = logits.size(2);
  std::vector<double> losses(static_cast<std::size_t>(count * length));
  kernels::parallel_for(count * length, kernels::rows_worth_a_thread(8 * vocab),
                        [&](std::int64_t begin, std::int64_t end, int) {
                          for (std::int64_t row = begin; row < end; ++row) {
                            const float* scores = logits.data<float>() + row * vocab;
                            const std::int64_t place = blocks[row / length].begin + row % length + 1;
                            const float most = *std::max_element(scores, scores + vocab);
                            double sum = 0;
                            for (std::int64_t v = 0; v < vocab; ++v) {
                              sum += std::exp(static_cast<double>(scores[v] - most));
                            }
                            const double own = scores[ids[static_cast<std::size_t>(place)]];
                            losses[static_cast<std::size_t>(row)] = std::log(sum) + most - own;
                          }
                        });
  return losses;
}

}  // namespace

LanguageEvaluation evaluate_language(const models::LanguageBody& model, std::span<const std::int64_t> ids,
                                     const EvaluateLanguageOptions& options) {
  check(ids.size() >= 2, "a text of {} tokens has none to predict: it needs at least two", ids.size());
  check(options.block_size >= 1 && options.block_size <= model.max_positions(),
        "a block of {} tokens is more than the {} positions of the model", options.block_size, model.max_positions());
  check(options.stride >= 0 && options.stride <= options.block_size,
        "a stride of {} leaves tokens out between blocks of {}", options.stride, options.block_size);
  check(options.batch_size >= 1, "a batch has at least one block, not {}", options.batch_size);
  const autograd::NoGrad no_grad;
  const std::vector<Block> blocks = blocks_of(std::ssize(ids) - 1, options);
  LanguageEvaluation result;
  result.loss_by_position.resize(static_cast<std::size_t>(options.block_size));
  result.tokens_by_position.resize(result.loss_by_position.size());
  for (std::size_t first = 0; first < blocks.size();) {
    std::size_t end = first + 1;
    while (end < blocks.size() && end - first < static_cast<std::size_t>(options.batch_size) &&
           blocks[end].length == blocks[first].length) {
      ++end;
    }
    const std::vector<double> losses =
        losses_of(model, ids, &blocks[first], static_cast<std::int64_t>(end - first), options.dtype);
    std::size_t row = 0;
    for (; first < end; ++first) {
      for (std::int64_t n = 0; n < blocks[first].length; ++n, ++row) {
        if (n >= blocks[first].fresh) {
          result.loss_by_position[static_cast<std::size_t>(n)] += losses[row];
          ++result.tokens_by_position[static_cast<std::size_t>(n)];
          result.loss += losses[row];
          ++result.tokens;
        }
      }
    }
    if (options.advance) {
      options.advance(result.tokens);
    }
  }
  check_finite(result.loss);
  result.loss /= static_cast<double>(result.tokens);
  for (std::size_t n = 0; n < result.loss_by_position.size(); ++n) {
    result.loss_by_position[n] /= static_cast<double>(std::max<std::int64_t>(result.tokens_by_position[n], 1));
  }
  return result;
}

}  // namespace vitrail::train
