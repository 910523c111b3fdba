/// \file
/// A decoder that attends to a memory: what an encoder has made of a text or an image.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/models/text/language_body.h"
#include "vitrail/models/text/text_positions.h"
#include "vitrail/models/text/token_ids.h"
#include "vitrail/nn/attention/decoder_block.h"
#include "vitrail/nn/attention/key_value_cache.h"
#include "vitrail/nn/embedding.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// The names of the parts of a CrossDecoder, as in the reference implementation.
struct CrossDecoderNames {
  std::string embedding;  ///< of its tokens
  std::string positions;  ///< of what is learned of positions
  std::string blocks;     ///< in front of their numbers
  std::string norm;       ///< behind the last block
  std::string head = "lm_head";
};

/// The sizes and parts of a CrossDecoder.
struct CrossDecoderConfig {
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 0;  ///< the longest text that it is made for
  std::int64_t dim = 0;
  std::int64_t depth = 0;
  nn::DecoderBlockConfig block = {};                  ///< of all its blocks
  bool scale_by_inverse_layer = false;                ///< block i divides its scores by i + 1 as well (GPT-2's option)
  std::optional<nn::NormConfig> norm = std::nullopt;  ///< behind its last block

  TextPositionsConfig positions = {};
  float embedding_scale = 1;  ///< factor of embedded tokens
  float embd_drop = 0;        ///< dropout of embedded tokens

  bool tied_head = true;     ///< the head's weight is that of the embedding
  bool head_bias = false;    ///< the head has a bias
  bool logits_bias = false;  ///< or there is a buffer `final_logits_bias` [1, V], which is added to the logits
  CrossDecoderNames names = {};
};

/// The block `index` of such a decoder.
nn::DecoderBlockConfig block_config(const CrossDecoderConfig& config, std::int64_t index);

/// What a CrossDecoder keeps of texts: of each block the keys and values of the tokens so far, and those of the
/// memory's samples (sources). A source may have several texts, all equally many, which follow each other.
struct CrossDecoderState final : TextState {
  CrossDecoderState(std::vector<nn::DecoderBlock::Source> own, std::optional<DType> cache)
      : blocks(own.size(), nn::KeyValueCache(texts, cache)), sources(std::move(own)) {}

  std::int64_t length() const override { return texts.length(); }
  /// Throws Error unless the sources that are left have equally many texts side by side.
  void select(const std::vector<std::int64_t>& indices) override;
  void drop_last(std::int64_t tokens) override { texts.drop_last(tokens); }
  std::size_t bytes() const override;

  nn::TextSlots texts;
  std::vector<nn::KeyValueCache> blocks;
  std::vector<nn::DecoderBlock::Source> sources;  ///< for each block
  std::int64_t texts_each = 1;                    ///< of each source
};

/// The decoder of Vaswani et al. 2017, section 3.1: it predicts the next token of a text from the tokens so far and
/// from a memory [S, M, dim], in blocks that attend to the one and to the other,
///
/// ```text
/// x₀ = drop(scale · E[ids] + P[positions]),   x_l = block_l(x_{l-1}, memory),   logits = norm(x_L) Wᵀ + b,
/// ```
///
/// where W is E if the head is tied. Tokens see the memory without positions between the two.
class CrossDecoder {
 public:
  /// What a block is told of a memory.
  using Sources = std::vector<nn::DecoderBlock::Source>;

  /// `embedding` is that of its tokens, which others may share.
  CrossDecoder(const nn::Scope& scope, const CrossDecoderConfig& config, nn::Embedding embedding);

  /// The keys and values of a memory [S, M, dim] in all blocks. `lengths` [S] says how much of each sample is real
  /// (undefined: all); with `offsets` the samples lie in one row (nn::DecoderBlock::Source).
  Sources remember(const Tensor& memory, const Tensor& lengths = {}, const Tensor& offsets = {}) const;
  /// The last states [B, N, dim] of texts [B, N] beside such a memory, or of tokens that continue those of a state, in
  /// the pass's dtype. A token sees no later one, so that padding behind a text changes nothing, and texts need no
  /// lengths. Beside samples in one row, the texts lie in one row too. `what` is what errors call a text.
  Tensor operator()(const Texts& texts, const Sources& sources, nn::Pass& pass, CrossDecoderState* state = nullptr,
                    std::string_view what = "text") const;
  /// The logits [..., V] of states [..., dim], in their dtype.
  Tensor head(const Tensor& states) const;
  /// The logits [B, V] f32 of the token after the last of ids [B, N], which continue those of a state. Throws Error if
  /// the state is another model's.
  Tensor forward_last(const Tensor& ids, nn::Pass& pass, TextState& state, std::string_view what = "text") const;

  const CrossDecoderConfig& config() const { return config_; }
  /// Multiply-accumulates of the products, for `tokens` tokens beside `memory` of them.
  std::int64_t flops(std::int64_t memory, std::int64_t tokens) const;
  /// About how much memory a state holds of a text of so many tokens and of its source.
  std::size_t state_bytes(std::int64_t memory, std::int64_t tokens, DType dtype) const {
    return static_cast<std::size_t>(2 * config_.depth * config_.dim * (memory + tokens)) * size_of(dtype);
  }

 private:
  CrossDecoderConfig config_;
  nn::Embedding embedding_;
  TextPositions positions_;
  std::vector<nn::DecoderBlock> blocks_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> head_;  // unless it is tied to the embedding
  Tensor tied_bias_;                // [V] of a head that is; or undefined
};

}  // namespace vitrail::models
