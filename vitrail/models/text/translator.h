/// \file
/// What all networks that turn a text into another one have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "vitrail/models/text/language_body.h"
#include "vitrail/models/text/text_network.h"
#include "vitrail/models/text/token_ids.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// A network that reads a source and predicts the next token of its translation from the tokens so far.
class Translator {
 public:
  virtual ~Translator() = default;
  Translator() = default;
  Translator(const Translator&) = delete;
  Translator& operator=(const Translator&) = delete;

  /// The logits [B, N, V] of the token that follows each of targets [B, N], in the dtype of the pass. No token sees a
  /// later one, so that padding behind a target changes nothing, and targets need no lengths. Of sources in one row,
  /// the targets lie in one row too.
  virtual Tensor logits(const Texts& sources, const Texts& targets, nn::Pass& pass) const = 0;
  /// The same in f32.
  Tensor forward(const Texts& sources, const Texts& targets, nn::Pass& pass) const;

  /// The state of translations of which nothing has been written. A source may get several by TextState::select(), all
  /// sources equally many, which follow each other.
  /// Keys and values are kept in the dtype `cache` (LanguageBody::begin()).
  virtual std::unique_ptr<TextState> begin(const Texts& sources, nn::Pass& pass,
                                           std::optional<DType> cache = std::nullopt) const = 0;
  /// The logits [B, V] f32 of the token after the last of targets [B, N], which continue those that the state has seen.
  virtual Tensor forward_last(const Tensor& targets, nn::Pass& pass, TextState& state) const = 0;

  /// Multiply-accumulates of the products, for a source and a target of these many tokens; without a source, of what is
  /// written alone.
  virtual std::int64_t flops(std::int64_t source, std::int64_t target) const = 0;
  /// About how much memory a state holds of a translation of so many tokens and of its source.
  virtual std::size_t state_bytes(std::int64_t source, std::int64_t tokens, DType dtype) const = 0;

  virtual std::int64_t source_vocab_size() const = 0;
  virtual std::int64_t target_vocab_size() const = 0;
  /// The longest source or translation that it is made for; unbounded_positions if it has no limit.
  virtual std::int64_t max_positions() const = 0;
  /// Whether states are made of keys and values (LanguageBody::keeps_keys()).
  virtual bool keeps_keys() const { return true; }
  /// Whether it looks at the source's tokens. Then the last attention map that a recorder gets is of that.
  virtual bool has_attention() const = 0;
};

/// Sources with the model that translates them, as one that continues the translations: begin() reads the sources, of
/// which the state has one text each.
class Translation final : public LanguageBody {
 public:
  /// The model must outlive this object.
  Translation(const Translator& model, Texts sources, DType dtype)
      : model_(model), sources_(std::move(sources)), dtype_(dtype) {}

  std::unique_ptr<TextState> begin(std::optional<DType> cache = std::nullopt) const override;
  Tensor forward(const Tensor& ids, nn::Pass& pass, TextState* state) const override;
  Tensor forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const override {
    return model_.forward_last(ids, pass, state);
  }
  bool keeps_keys() const override { return model_.keeps_keys(); }
  std::int64_t vocab_size() const override { return model_.target_vocab_size(); }
  std::int64_t max_positions() const override { return model_.max_positions(); }
  std::size_t state_bytes(std::int64_t tokens, DType dtype) const override {
    return model_.state_bytes(longest_text(sources_), tokens, dtype);
  }

 private:
  const Translator& model_;
  Texts sources_;
  DType dtype_;
};

/// TextNetwork::run() of a translator: logits [B, M, V] of decoder_input_ids [B, M] beside input_ids [B, N].
TextOutputs run_translator(const Translator& translator, const TextInputs& inputs, nn::Pass& pass);

/// Of which sources there are translations, and how many of each.
struct SourcesLeft {
  std::vector<std::int64_t> sources;
  std::int64_t each = 0;
};
/// The sources of the translations at `indices` (TextState::select()), of which each had `translations`. Throws Error
/// unless those that are left have equally many, side by side.
SourcesLeft sources_left(const std::vector<std::int64_t>& indices, std::int64_t translations);

}  // namespace vitrail::models
