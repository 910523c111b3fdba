/// \file
/// Batches of sentences and their translations, without padding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vitrail/data/prefetch.h"
#include "vitrail/models/text/token_ids.h"
#include "vitrail/text/parallel_text.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail::train {

/// The tokens that a translator is told of.
struct SpecialTokens {
  std::int64_t start = 0;  ///< the first that its decoder reads
  std::int64_t end = 0;
  std::int64_t padding = 0;
};

/// Pairs in one row each: what the encoder and the decoder read, and what the decoder is to predict. Behind them is a
/// pair of padding, by which the rows have few different lengths.
struct PairBatch {
  std::int64_t number = 0;
  std::int64_t tokens = 0;  ///< labels that count
  models::Texts sources;
  models::Texts targets;
  Tensor labels;  ///< [N] i64; -100: does not count
};

/// A sentence and its translation as tokens, each with its end.
struct TokenPair {
  std::vector<std::int64_t> source;
  std::vector<std::int64_t> target;
};

/// Rows are filled up to a multiple of this, or of the longest text, since for each number of rows the products are
/// compiled anew.
constexpr std::int64_t usual_row_unit = 64;

/// The batch of these pairs, whose rows are filled up to a multiple of `row_unit`. Its number is 0.
PairBatch batch_of(std::span<const TokenPair* const> pairs, const SpecialTokens& special, std::int64_t row_unit);

/// Sentences and their translations as tokens.
class SentencePairs final : public data::Samples<PairBatch> {
 public:
  /// Pairs of which one has more than `longest` tokens, with its end, are left out. Throws Error, naming the line, for
  /// a text that the tokenizer cannot encode.
  SentencePairs(const text::ParallelText& text, const text::Tokenizer& source, const text::Tokenizer& target,
                const SpecialTokens& special, std::int64_t longest, int threads);

  std::int64_t count() const { return std::ssize(pairs_); }
  const std::vector<TokenPair>& pairs() const { return pairs_; }
  std::int64_t source_tokens() const;
  std::int64_t target_tokens() const;

  /// Batches of about equally many target tokens, at most `batch_tokens` of them on average: all pairs in order, or
  /// shuffled by (seed, epoch).
  data::EpochPlan plan(std::int64_t batch_tokens, bool shuffle, std::uint64_t seed) const;

  std::string name(std::int64_t index) const override;
  PairBatch begin(const data::BatchPlan& plan) const override;
  void fill(PairBatch&, const data::BatchPlan&, std::int64_t) const override {}
  void finish(PairBatch&, const data::BatchPlan&, std::span<const std::int64_t>) const override {}

 private:
  std::vector<TokenPair> pairs_;
  SpecialTokens special_;
  std::int64_t row_unit_;
};

}  // namespace vitrail::train
