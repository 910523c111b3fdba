#include "vitrail/train/tasks/text_blocks.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::train {
namespace {

TextBatch empty_batch(const data::BatchPlan& plan, std::int64_t tokens) {
  const Shape shape{std::ssize(plan.picks), tokens};
  return {plan.number, Tensor::empty(shape, DType::i64), Tensor::empty(shape, DType::i64)};
}

// Row `row` becomes the tokens of the text from `begin` on.
void take(TextBatch& batch, std::int64_t row, const std::vector<std::int64_t>& text, std::int64_t begin) {
  const std::int64_t tokens = batch.ids.size(1);
  const auto bytes = static_cast<std::size_t>(tokens) * sizeof(std::int64_t);
  std::memcpy(batch.ids.data<std::int64_t>() + row * tokens, text.data() + begin, bytes);
  std::memcpy(batch.targets.data<std::int64_t>() + row * tokens, text.data() + begin + 1, bytes);
}

}  // namespace

std::string TextBlocks::name(std::int64_t index) const { return fmt::format("block {}", index); }

TextBatch TextBlocks::begin(const data::BatchPlan& plan) const { return empty_batch(plan, size_); }

void TextBlocks::fill(TextBatch& batch, const data::BatchPlan& plan, std::int64_t i) const {
  const std::int64_t index = plan.picks[static_cast<std::size_t>(i)].index;
  std::int64_t begin = index * size_;
  if (drawn_) {
    const Philox draws(mix(seed_, static_cast<std::uint64_t>(plan.epoch)), static_cast<std::uint64_t>(index));
    const auto places = static_cast<double>(std::ssize(*text_) - size_);
    begin = static_cast<std::int64_t>(static_cast<double>(draws.uniform(0)) * places);
  }
  take(batch, i, *text_, begin);
}

TextStreams::TextStreams(std::shared_ptr<const std::vector<std::int64_t>> text, std::int64_t streams,
                         std::int64_t chunk, std::int64_t batches)
    : text_(std::move(text)), streams_(streams) {
  const std::int64_t longest = (std::ssize(*text_) - 1) / streams_;
  check(longest >= 1, "{} tokens are too few for {} streams of the text", text_->size(), streams_);
  chunk_ = std::min(chunk, longest);
  chunks_ = longest / chunk_;
  batches_ = batches > 0 ? batches : chunks_;
}

data::EpochPlan TextStreams::plan() const {
  return data::plan_batches({.size = batches_ * streams_, .batch_size = streams_});
}

std::string TextStreams::name(std::int64_t index) const { return fmt::format("chunk {}", index); }

TextBatch TextStreams::begin(const data::BatchPlan& plan) const { return empty_batch(plan, chunk_); }

void TextStreams::fill(TextBatch& batch, const data::BatchPlan& plan, std::int64_t i) const {
  const std::int64_t read = plan.epoch * batches_ + plan.number;  // chunks of each row so far
  const std::int64_t part = (i + read / chunks_) % streams_;
  take(batch, i, *text_, (part * chunks_ + read % chunks_) * chunk_);
}

}  // namespace vitrail::train
