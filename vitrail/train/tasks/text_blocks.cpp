#include "vitrail/train/tasks/text_blocks.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

#include "vitrail/models/text/token_ids.h"
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

TextBatch TextBlocks::rest() const {
  const std::int64_t begin = count() * size_;
  const std::int64_t tokens = std::ssize(*text_) - 1 - begin;
  if (tokens == 0) {
    return {};
  }
  TextBatch batch{count(), Tensor::empty({1, tokens}, DType::i64), Tensor::empty({1, tokens}, DType::i64)};
  take(batch, 0, *text_, begin);
  return batch;
}

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

TextDocuments::TextDocuments(std::vector<std::vector<std::int64_t>> documents, std::int64_t size)
    : documents_(std::move(documents)) {
  for (std::size_t d = 0; d < documents_.size(); ++d) {
    const std::int64_t read = std::ssize(documents_[d]) - 1;
    for (std::int64_t begin = 0; begin < read; begin += size) {
      parts_.push_back({d, begin, std::min(size, read - begin)});
    }
  }
}

std::int64_t TextDocuments::tokens() const {
  return std::accumulate(parts_.begin(), parts_.end(), std::int64_t{0},
                         [](std::int64_t sum, const Part& part) { return sum + part.length; });
}

data::EpochPlan TextDocuments::plan(std::int64_t batch_tokens, bool shuffle, std::uint64_t seed) const {
  std::vector<std::int64_t> lengths;
  std::ranges::transform(parts_, std::back_inserter(lengths), &Part::length);
  return data::plan_by_units(std::move(lengths), batch_tokens, shuffle, seed);
}

std::string TextDocuments::name(std::int64_t index) const { return fmt::format("part {} of the documents", index); }

TextBatch TextDocuments::begin(const data::BatchPlan& plan) const {
  models::TextRow read;
  std::vector<std::int64_t> next;
  for (const data::Pick& pick : plan.picks) {
    const Part& part = parts_[static_cast<std::size_t>(pick.index)];
    const std::span<const std::int64_t> all = documents_[part.document];
    const auto begin = static_cast<std::size_t>(part.begin);
    const auto length = static_cast<std::size_t>(part.length);
    read.add(all.subspan(begin, length));
    const auto predicted = all.subspan(begin + 1, length);
    next.insert(next.end(), predicted.begin(), predicted.end());
  }
  const models::Texts row = read.texts();
  return {plan.number, row.ids, Tensor::from(next, row.ids.shape()), row.offsets};
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
