#include "vitrail/train/study/sentence_pairs.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "vitrail/tensor/error.h"
#include "vitrail/tensor/random.h"

namespace vitrail::train {
namespace {

using Ids = std::vector<std::int64_t>;

// Texts that follow each other in a row.
struct Row {
  Ids ids;
  Ids offsets = {0};

  void add(const Ids& text) {
    ids.insert(ids.end(), text.begin(), text.end());
    offsets.push_back(std::ssize(ids));
  }
  // The number of tokens that fill it up to a multiple of `unit`, at least one.
  std::int64_t missing(std::int64_t unit) const { return unit - std::ssize(ids) % unit; }
  models::Texts texts() const {
    return {Tensor::from(ids, {1, std::ssize(ids)}), {}, Tensor::from(offsets, {std::ssize(offsets)})};
  }
};

}  // namespace

PairBatch batch_of(std::span<const TokenPair* const> pairs, const SpecialTokens& special, std::int64_t row_unit) {
  PairBatch batch;
  Row sources;
  Row targets;
  Ids labels;
  for (const TokenPair* pair : pairs) {
    sources.add(pair->source);
    Ids read = {special.start};
    read.insert(read.end(), pair->target.begin(), pair->target.end() - 1);
    targets.add(read);
    labels.insert(labels.end(), pair->target.begin(), pair->target.end());
  }
  batch.tokens = std::ssize(labels);
  const auto filler = [&](const Row& row) {
    return Ids(static_cast<std::size_t>(row.missing(row_unit)), special.padding);
  };
  sources.add(filler(sources));
  targets.add(filler(targets));
  labels.resize(targets.ids.size(), -100);
  batch.sources = sources.texts();
  batch.targets = targets.texts();
  batch.labels = Tensor::from(labels, {std::ssize(labels)});
  return batch;
}

SentencePairs::SentencePairs(const text::ParallelText& text, const text::Tokenizer& source,
                             const text::Tokenizer& target, const SpecialTokens& special, std::int64_t longest,
                             int threads)
    : special_(special), row_unit_(std::min(longest, usual_row_unit)) {
  std::vector<text::Encoding> sources = source.encode_batch(text.source, true, threads);
  std::vector<text::Encoding> targets = target.encode_batch(text.target, true, threads);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    TokenPair pair{std::move(sources[i].ids), std::move(targets[i].ids)};
    if (std::max(std::ssize(pair.source), std::ssize(pair.target)) <= longest) {
      pairs_.push_back(std::move(pair));
    }
  }
}

std::int64_t SentencePairs::source_tokens() const {
  return std::accumulate(pairs_.begin(), pairs_.end(), std::int64_t{0},
                         [](std::int64_t sum, const TokenPair& pair) { return sum + std::ssize(pair.source); });
}

std::int64_t SentencePairs::target_tokens() const {
  return std::accumulate(pairs_.begin(), pairs_.end(), std::int64_t{0},
                         [](std::int64_t sum, const TokenPair& pair) { return sum + std::ssize(pair.target); });
}

data::EpochPlan SentencePairs::plan(std::int64_t batch_tokens, bool shuffle, std::uint64_t seed) const {
  const std::int64_t total = target_tokens();
  const std::int64_t batches = std::clamp<std::int64_t>((total + batch_tokens - 1) / batch_tokens, 1, count());
  // All pairs in one "batch", of which the real ones are cut.
  const data::EpochPlan order =
      data::plan_batches({.size = count(), .batch_size = count(), .shuffle = shuffle, .seed = seed});
  Ids lengths;
  for (const TokenPair& pair : pairs_) {
    lengths.push_back(std::ssize(pair.target));
  }
  return [=, lengths = std::move(lengths)](std::int64_t epoch) {
    std::vector<std::vector<data::Pick>> result(static_cast<std::size_t>(batches));
    const std::vector<data::Pick> all = order(epoch).front();
    std::int64_t done = 0;
    std::int64_t last = -1;
    for (std::size_t i = 0; i < all.size(); ++i) {
      // The batch by the tokens before it, but such that no batch is without a pair.
      const auto left = static_cast<std::int64_t>(all.size() - i);
      const std::int64_t batch = std::clamp(done * batches / total, batches - left, last + 1);
      last = batch;
      result[static_cast<std::size_t>(batch)].push_back(all[i]);
      done += lengths[static_cast<std::size_t>(all[i].index)];
    }
    return result;
  };
}

std::string SentencePairs::name(std::int64_t index) const { return fmt::format("pair {}", index + 1); }

PairBatch SentencePairs::begin(const data::BatchPlan& plan) const {
  std::vector<const TokenPair*> picked;
  for (const data::Pick& pick : plan.picks) {
    picked.push_back(&pairs_[static_cast<std::size_t>(pick.index)]);
  }
  PairBatch batch = batch_of(picked, special_, row_unit_);
  batch.number = plan.number;
  return batch;
}

}  // namespace vitrail::train
