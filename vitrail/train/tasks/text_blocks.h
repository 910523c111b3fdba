/// \file
/// The batches of language modelling: parts of a text, and for each token the one that follows it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/prefetch.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::train {

/// Parts of a text, and for each token the one that follows it.
struct TextBatch {
  std::int64_t number = 0;  ///< in the epoch
  Tensor ids;               ///< [B, N] i64
  Tensor targets;           ///< [B, N] i64
  Tensor offsets = {};      ///< [S + 1] i64 of S texts in one row, none of which sees another (models::Texts)
};

/// The blocks of `size` tokens of a text: one after the other, or, if `drawn`, from places that follow from (seed,
/// epoch, block).
class TextBlocks final : public data::Samples<TextBatch> {
 public:
  TextBlocks(std::shared_ptr<const std::vector<std::int64_t>> text, std::int64_t size, bool drawn, std::uint64_t seed)
      : text_(std::move(text)), size_(size), drawn_(drawn), seed_(seed) {}

  /// How many blocks the text has, each followed by one more token.
  std::int64_t count() const { return (std::ssize(*text_) - 1) / size_; }
  /// The tokens that are left behind the last block, as a batch of one row; without `ids` if there are none.
  TextBatch rest() const;

  std::string name(std::int64_t index) const override;
  TextBatch begin(const data::BatchPlan& plan) const override;
  void fill(TextBatch& batch, const data::BatchPlan& plan, std::int64_t i) const override;
  void finish(TextBatch&, const data::BatchPlan&, std::span<const std::int64_t>) const override {}

 private:
  std::shared_ptr<const std::vector<std::int64_t>> text_;
  std::int64_t size_;
  bool drawn_;
  std::uint64_t seed_;
};

/// Documents, none of which sees another: a batch is a row of whole ones, and of parts of those with more than `size`
/// tokens to predict.
class TextDocuments final : public data::Samples<TextBatch> {
 public:
  /// Documents with a token or none, which have nothing to predict, are left out.
  TextDocuments(std::vector<std::vector<std::int64_t>> documents, std::int64_t size);

  std::int64_t count() const { return std::ssize(parts_); }
  std::int64_t tokens() const;  ///< of an epoch
  /// Batches of about `batch_tokens` tokens, in order or shuffled by (seed, epoch).
  data::EpochPlan plan(std::int64_t batch_tokens, bool shuffle, std::uint64_t seed) const;

  std::string name(std::int64_t index) const override;
  TextBatch begin(const data::BatchPlan& plan) const override;
  void fill(TextBatch&, const data::BatchPlan&, std::int64_t) const override {}
  void finish(TextBatch&, const data::BatchPlan&, std::span<const std::int64_t>) const override {}

 private:
  struct Part {
    std::size_t document;
    std::int64_t begin, length;  // of what is read
  };
  std::vector<std::vector<std::int64_t>> documents_;
  std::vector<Part> parts_;
};

/// A text cut into `streams` equal parts, which the rows of the batches read side by side, `chunk` tokens at a time (if
/// the parts are shorter, as many as they have). At the end of its part a row goes on with the next one, cyclically, so
/// that a state that is carried from batch to batch always belongs to the text before, but where the text begins again.
/// What is left at the end of the text, less than a chunk for each row, is not read.
class TextStreams final : public data::Samples<TextBatch> {
 public:
  /// An epoch has `batches` batches; 0: as many as read the text once. Throws Error if there are not two tokens for
  /// each stream.
  TextStreams(std::shared_ptr<const std::vector<std::int64_t>> text, std::int64_t streams, std::int64_t chunk,
              std::int64_t batches = 0);

  std::int64_t chunk() const { return chunk_; }
  std::int64_t tokens() const { return batches_ * streams_ * chunk_; }  ///< of an epoch
  data::EpochPlan plan() const;

  std::string name(std::int64_t index) const override;
  TextBatch begin(const data::BatchPlan& plan) const override;
  void fill(TextBatch& batch, const data::BatchPlan& plan, std::int64_t i) const override;
  void finish(TextBatch&, const data::BatchPlan&, std::span<const std::int64_t>) const override {}

 private:
  std::shared_ptr<const std::vector<std::int64_t>> text_;
  std::int64_t streams_;
  std::int64_t chunk_ = 0;
  std::int64_t chunks_ = 0;   // of a part
  std::int64_t batches_ = 0;  // of an epoch
};

}  // namespace vitrail::train
