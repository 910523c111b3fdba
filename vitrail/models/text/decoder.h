/// \file
/// The decoder-only transformer (GPT: Radford et al. 2018), which predicts the next token.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/text/language_body.h"
#include "vitrail/models/text/text_network.h"
#include "vitrail/models/text/text_positions.h"
#include "vitrail/nn/attention/block.h"
#include "vitrail/nn/attention/key_value_cache.h"
#include "vitrail/nn/drop.h"
#include "vitrail/nn/embedding.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// The names of the parts of a Decoder, as in the reference implementation.
struct DecoderNames {
  std::string embedding;            ///< of tokens
  std::string positions;            ///< of what is learned of positions
  std::string blocks;               ///< in front of their numbers
  std::string norm;                 ///< behind the last block
  std::string embedding_norm = {};  ///< of embedded tokens
};

/// The sizes and parts of a Decoder.
struct DecoderConfig {
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 0;  ///< the longest sequence that the model is made for
  std::int64_t dim = 0;
  std::int64_t depth = 0;
  nn::BlockConfig block;                ///< of all blocks
  nn::NormConfig norm;                  ///< behind the last block
  bool scale_by_inverse_layer = false;  ///< block i divides its scores by i + 1 as well (GPT-2's option)

  TextPositionsConfig positions = {};
  std::optional<nn::NormConfig> embedding_norm = std::nullopt;  ///< of embedded tokens (Bloom)

  std::int64_t sliding_window = 0;  ///< blocks see only so many of the last tokens, themselves included; 0: all
  std::vector<bool> slides = {};    ///< for each block whether it does so; empty: each

  bool tied_head = true;       ///< the head's weight is that of the token embedding
  std::int64_t predicted = 0;  ///< tokens that a free head predicts, the first of the vocabulary; 0: all
  float embd_drop = 0;         ///< dropout of embedded tokens
  float init_std = 0.02F;   ///< of weights; the projections back into the residual stream start smaller by √(2 depth)
  bool scaled_init = true;  ///< whether they do
  DecoderNames names;
};

/// How the weights of GPT-2's kind start (Radford et al. 2019, section 2.3): as N(0, std²), those whose names end with
/// one of `back`, which lead back into the residual stream, `scale` times that; biases as zeros.
nn::InitRule gpt_init(float std, const std::vector<std::string>& back, float scale);
/// 1 / √(2 depth): each block has two branches.
inline float gpt_scale(std::int64_t depth) { return 1 / std::sqrt(2 * static_cast<float>(depth)); }

/// What a decoder keeps of texts: the keys and values of each block.
struct DecoderState final : TextState {
  DecoderState(std::size_t depth, std::optional<DType> cache) : blocks(depth, nn::KeyValueCache(texts, cache)) {}

  std::int64_t length() const override { return texts.length(); }
  void select(const std::vector<std::int64_t>& indices) override { texts.select(indices); }
  void join(const TextState& other) override;
  void drop_last(std::int64_t tokens) override { texts.drop_last(tokens); }
  std::size_t bytes() const override;

  nn::TextSlots texts;
  std::vector<nn::KeyValueCache> blocks;
};

/// A decoder-only transformer with causal self-attention: token n sees the tokens 0 … n,
///
/// ```text
/// x₀ = E[ids] + P[positions],   x_l = block_l(x_{l-1}),   logits = norm(x_L) Wᵀ,
/// ```
///
/// where P is there only for positions that are added, and W is E if the head is tied. GPT-2, Llama and Bloom differ in
/// their positions and the parts of their blocks (DecoderConfig), and in the names of their parameters.
class Decoder final : public LanguageBody {
 public:
  Decoder(const nn::Scope& scope, const DecoderConfig& config);

  /// The hidden states behind the final norm, [B, N, D] in the pass's dtype, of texts as those of forward_texts(), or
  /// of ids that continue the texts of a state.
  Tensor forward_features(const Texts& texts, nn::Pass& pass, TextState* state = nullptr) const;
  /// The logits [..., V] f32 of hidden states [..., D]; V is the number of tokens that are predicted.
  Tensor forward_head(const Tensor& features) const;

  std::unique_ptr<TextState> begin(std::optional<DType> cache = std::nullopt) const override {
    return std::make_unique<DecoderState>(blocks_.size(), cache);
  }
  Tensor forward(const Tensor& ids, nn::Pass& pass, TextState* state = nullptr) const override;
  Tensor forward_texts(const Texts& texts, nn::Pass& pass) const override;
  Tensor forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const override;
  /// Not where attention adds biases by distance, which are those of one length.
  bool takes_unequal_texts() const override { return !positions_->has_distance_bias(); }
  std::int64_t vocab_size() const override { return config_.vocab_size; }
  std::int64_t max_positions() const override { return config_.max_positions; }
  std::size_t state_bytes(std::int64_t tokens, DType dtype) const override;

  const DecoderConfig& config() const { return config_; }
  /// Multiply-accumulates of the products, for one sequence of this many tokens.
  std::int64_t flops(std::int64_t tokens) const;

  std::int64_t layer_of(const std::string& parameter) const;
  bool is_head(const std::string& parameter) const { return parameter.starts_with("lm_head."); }

 private:
  Tensor embed(const Texts& texts, const Tensor& places, nn::Pass& pass) const;
  std::int64_t predicted() const {
    return config_.predicted > 0 && !config_.tied_head ? config_.predicted : config_.vocab_size;
  }

  DecoderConfig config_;
  std::optional<nn::Embedding> embedding_;
  std::optional<TextPositions> positions_;
  std::optional<nn::Norm> embedding_norm_;
  std::vector<nn::Block> blocks_;
  std::optional<nn::Norm> norm_;
  std::optional<nn::Linear> lm_head_;
};

TextShape shape_of(const Decoder& decoder);  ///< its sizes

/// A Decoder as a network of its own.
struct DecoderNetwork final : TextNetwork {
  explicit DecoderNetwork(const DecoderConfig& config, const nn::StoreOptions& store = {})
      : TextNetwork(store), body(nn::Scope(parameters), config) {}

  TextShape shape() const override { return shape_of(body); }
  std::int64_t flops(std::int64_t tokens) const override { return body.flops(tokens); }
  const LanguageBody* language() const override { return &body; }
  std::int64_t layer_of(const std::string& parameter) const override { return body.layer_of(parameter); }
  bool is_head(const std::string& parameter) const override { return body.is_head(parameter); }
  std::vector<std::string> vocabulary_weights() const override {
    return {body.config().names.embedding + ".weight", "lm_head.weight"};
  }

  const Decoder body;
};

}  // namespace vitrail::models
