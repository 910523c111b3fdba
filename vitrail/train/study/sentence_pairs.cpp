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

}  // namespace

PairBatch batch_of(std::span<const TokenPair* const> pairs, const SpecialTokens& special, std::int64_t row_unit) {
  PairBatch batch;
  models::TextRow sources;
  models::TextRow targets;
  Ids labels;
  for (const TokenPair* pair : pairs) {
    sources.add(pair->source);
    Ids read = {special.start};
    read.insert(read.end(), pair->target.begin(), pair->target.end() - 1);
    targets.add(read);
    labels.insert(labels.end(), pair->target.begin(), pair->target.end());
  }
  batch.tokens = std::ssize(labels);
  const auto filler = [&](const models::TextRow& row) {
    return Ids(static_cast<std::size_t>(row_unit - std::ssize(row.ids()) % row_unit), special.padding);
  };
  sources.add(filler(sources));
  targets.add(filler(targets));
  labels.resize(targets.ids().size(), -100);
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
  Ids lengths;
  std::ranges::transform(pairs_, std::back_inserter(lengths),
                         [](const TokenPair& pair) { return std::ssize(pair.target); });
  return data::plan_by_units(std::move(lengths), batch_tokens, shuffle, seed);
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
