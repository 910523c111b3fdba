/// \file
/// The encoder of the transformer (Vaswani et al. 2017; BERT: Devlin et al. 2019), each of whose tokens sees all
/// others, or (CLIP: Radford et al. 2021) those before it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/text/text_network.h"
#include "vitrail/models/text/text_positions.h"
#include "vitrail/models/text/token_ids.h"
#include "vitrail/nn/attention/block.h"
#include "vitrail/nn/drop.h"
#include "vitrail/nn/embedding.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/parameters.h"
#include "vitrail/nn/pass.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// The names of the parts of an Encoder, as in the reference implementation.
struct EncoderNames {
  std::string embedding;       ///< of tokens
  std::string positions;       ///< of what is learned of positions
  std::string types;           ///< of token types
  std::string embedding_norm;  ///< of embedded tokens
  std::string blocks;          ///< in front of their numbers
  std::string norm;            ///< behind the last block
};

/// The sizes and parts of an Encoder.
struct EncoderConfig {
  std::int64_t vocab_size = 0;     ///< 0: it has no embedding of its own, and is given embedded tokens
  std::int64_t max_positions = 0;  ///< the longest text that the model is made for; 0: any
  std::int64_t dim = 0;
  std::int64_t depth = 0;
  nn::BlockConfig block = {};  ///< of all blocks
  bool causal = false;         ///< a token sees itself and those before it

  float embedding_scale = 1;  ///< factor of embedded tokens (Vaswani et al. 2017, section 3.4: √dim)
  TextPositionsConfig positions = {};
  std::int64_t type_vocab_size = 0;  ///< how many types tokens may have (BERT's two sentences); 0: none
  std::optional<nn::NormConfig> embedding_norm = std::nullopt;
  float embd_drop = 0;                                ///< dropout of embedded tokens
  std::optional<nn::NormConfig> norm = std::nullopt;  ///< behind the last block, where the blocks' norms are in front
  EncoderNames names = {};
};

/// The texts of a batch, B of them with N tokens each, padding included.
struct EncoderInput {
  Tensor ids = {};       ///< [B, N] i64
  Tensor types = {};     ///< [B, N] i64; undefined: all tokens have the type 0
  Tensor lengths = {};   ///< [B] i64: how many tokens of each text are real, 1 … N. They come first; undefined: all
  Tensor embedded = {};  ///< [B, N, dim] in place of ids: embedded tokens, not yet scaled
  Tensor offsets = {};   ///< [S + 1] i64 of S texts in one row, without padding (Texts::offsets)

  Texts texts() const { return {ids, lengths, offsets}; }
};

/// The inputs of a forward pass as an encoder's. Throws Error if input_ids are missing, or decoder_input_ids are there.
EncoderInput encoder_input(const TextInputs& inputs);

/// The encoder of the transformer, by the names of its config:
///
/// ```text
/// x = drop(norm(scale · embedding[ids] + positions + types[type])),   x = block(x) for each block,   y = norm(x)
/// ```
///
/// with the norms that the config has. What a padding token gives is of no use, and no real token sees it. Parameters
/// start as the layers do unless the scope has a rule of its own.
class Encoder {
 public:
  Encoder(const nn::Scope& scope, const EncoderConfig& config);

  /// The tokens' last states [B, N, dim], in the dtype of the pass. Throws Error, naming the place, for an id, a type
  /// or a length that cannot be, and for texts longer than the model's positions.
  Tensor operator()(const EncoderInput& input, nn::Pass& pass) const;

  const EncoderConfig& config() const { return config_; }
  /// The weight [vocab_size, dim] of the embedding, which a head may share; undefined without an embedding.
  Tensor embedding() const { return embedding_ ? embedding_->weight : Tensor(); }
  /// fvcore's count for a text of `tokens` tokens: a multiply-accumulate counts as one flop.
  std::int64_t flops(std::int64_t tokens) const;

  std::int64_t depth() const { return config_.depth; }
  /// 0 for what embeds, i + 1 for block i, depth() + 1 for all other names (nn::Network::layer_of()).
  std::int64_t layer_of(const std::string& parameter) const;

 private:
  Tensor embed(const EncoderInput& input, nn::Pass& pass) const;

  EncoderConfig config_;
  std::optional<nn::Embedding> embedding_;
  std::optional<TextPositions> positions_;
  std::optional<nn::Embedding> types_;
  std::optional<nn::Norm> embedding_norm_;
  std::vector<nn::Block> blocks_;
  std::optional<nn::Norm> norm_;
};

}  // namespace vitrail::models
