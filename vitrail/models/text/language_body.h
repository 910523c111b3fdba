/// \file
/// What all models that continue texts have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "vitrail/models/text/token_ids.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// What a model keeps of several texts in order to continue them: keys and values of its attention, or the state of a
/// recurrent network.
class TextState {
 public:
  virtual ~TextState() = default;
  TextState() = default;
  TextState(const TextState&) = delete;
  TextState& operator=(const TextState&) = delete;

  virtual std::int64_t length() const = 0;  ///< tokens of the longest text so far
  /// Keeps the texts at `indices`, in this order; a text may come several times (the beams of a search).
  virtual void select(const std::vector<std::int64_t>& indices) = 0;
  /// Adds the texts of another state of the same model, of any lengths, behind these. Throws Error if the model cannot.
  virtual void join(const TextState& other) {
    (void)other;
    fail("texts of other beginnings cannot join these");
  }
  /// Forgets the last `tokens` tokens of each text. Throws Error if the model cannot.
  virtual void drop_last(std::int64_t tokens) {
    (void)tokens;
    fail("a text that was written about something else is not taken back");
  }
  virtual std::size_t bytes() const = 0;  ///< memory that is held
};

/// A network that predicts the next token of a text.
class LanguageBody {
 public:
  virtual ~LanguageBody() = default;
  LanguageBody() = default;
  LanguageBody(const LanguageBody&) = delete;
  LanguageBody& operator=(const LanguageBody&) = delete;

  /// The state of texts of which nothing has been read. Keys and values are kept in the dtype `cache`: f32, bf16 or i8;
  /// unset: in that of the pass.
  virtual std::unique_ptr<TextState> begin(std::optional<DType> cache = std::nullopt) const = 0;
  /// The logits [B, N, V] f32 of the token that follows each of ids [B, N] i64. With a state, made by begin(), the ids
  /// continue those that it has seen, and are added to it. Throws Error if an id lies outside of the vocabulary (naming
  /// its place), or if the text becomes longer than the positions.
  virtual Tensor forward(const Tensor& ids, nn::Pass& pass, TextState* state = nullptr) const = 0;
  /// The logits [B, N, V] f32 of the token that follows each of texts in either form, none of which sees another.
  virtual Tensor forward_texts(const Texts& texts, nn::Pass& pass) const {
    (void)texts;
    (void)pass;
    fail("a text that is written about something else is not read with others in a row");
  }
  /// The logits [B, V] f32 of the token that follows the last of ids [B, N] i64, which are added to the state.
  virtual Tensor forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const = 0;

  /// Whether a state is made of keys and values: it can be kept in another dtype, and its last tokens forgotten.
  virtual bool keeps_keys() const { return true; }
  /// Whether texts of different lengths can be continued together.
  virtual bool takes_unequal_texts() const { return true; }

  virtual std::int64_t vocab_size() const = 0;
  /// About how much memory a state holds of a text of so many tokens that is read in this dtype.
  virtual std::size_t state_bytes(std::int64_t tokens, DType dtype) const = 0;
  /// The longest text that the model is made for; unbounded_positions if it has no limit.
  virtual std::int64_t max_positions() const = 0;
};

/// max_positions() of a model without a limit.
constexpr std::int64_t unbounded_positions = std::int64_t{1} << 40;

}  // namespace vitrail::models
