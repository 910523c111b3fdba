/// \file
/// Recurrent networks that write a text about something else: a text in another language, or a picture.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vitrail/models/recurrent/recurrent_language.h"
#include "vitrail/models/text/language_body.h"
#include "vitrail/models/text/token_ids.h"
#include "vitrail/nn/attention/additive.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/recurrent/recurrent.h"

namespace vitrail::models {

/// The sizes and parts of a RecurrentDecoder.
struct RecurrentDecoderConfig {
  nn::RecurrentConfig network;  ///< in one direction; its input_size follows from the others
  std::int64_t vocab_size = 0;
  std::int64_t embedding_size = 0;
  bool tied_head = false;           ///< the head's weight is that of the embedding
  std::int64_t memory_size = 0;     ///< of each state that it looks at
  std::int64_t attention_size = 0;  ///< of the layer that scores these states; 0: there is no attention
};

/// A recurrent network that predicts the next token of a text from the tokens so far and from the state that it begins
/// with (Sutskever et al. 2014, Cho et al. 2014). E is the embedding:
///
/// ```text
/// s_i = cell(E[y_{i-1}], s_{i-1})                         logits_i = W_o s_i + b_o
/// ```
///
/// With attention (Bahdanau et al. 2015) it looks at a memory, states e_1 … e_M, before each step, and reads what it
/// finds beside the last token. What it says comes of all three, through a layer in the place of the paper's maxout, as
/// in Nematus (Sennrich et al. 2017):
///
/// ```text
/// a_i = attention(s_{i-1}, e_1 … e_M)                     by the last layer's h: nn::AdditiveAttention
/// s_i = cell([E[y_{i-1}]; a_i], s_{i-1})
/// t_i = tanh(W_t [s_i; a_i; E[y_{i-1}]] + b_t)            logits_i = W_o t_i + b_o
/// ```
///
/// In training, dropout acts on embedded tokens, between the layers, and in front of the head. Parameters:
/// `embedding.weight`, `attention.{Wa,Ua,Va}.…`, `rnn.…`, `readout.…`, `out.…`.
class RecurrentDecoder {
 public:
  /// With the embedding `shared`, or one of its own. Throws Error if the config contradicts itself.
  RecurrentDecoder(const nn::Scope& scope, const RecurrentDecoderConfig& config,
                   const std::optional<TokenVectors>& shared = {});

  /// What texts begin with.
  struct Start {
    nn::RecurrentState state;
    nn::AdditiveAttention::Memory memory = {};  ///< of a network with attention: see remember()
  };
  /// The memory of states [S, M, memory_size], of which the first `lengths` are real; nothing without attention.
  nn::AdditiveAttention::Memory remember(const Tensor& states, const Tensor& lengths) const;

  /// The logits [B, N, V] of the token that follows each of texts [B, N], in the dtype of the pass. Padding behind a
  /// text changes nothing; texts in one row cost none. A recorder gets the map `decoder.attention` [B, 1, N, M] of
  /// texts of one length.
  Tensor logits(const Texts& texts, const Start& from, nn::Pass& pass) const;
  /// The state of texts of which nothing has been written. A start may get several texts by TextState::select(), all
  /// equally many, which follow each other.
  std::unique_ptr<TextState> begin(Start from) const;
  /// The logits [B, V] f32 of the token after the last of texts [B, N], which continue those that the state has seen.
  Tensor forward_last(const Tensor& texts, nn::Pass& pass, TextState& state) const;

  /// The memory that the state of a text holds, which looks at so many states in this dtype.
  std::size_t state_bytes(std::int64_t memory, DType dtype) const;
  bool has_attention() const { return attention_.has_value(); }
  const RecurrentDecoderConfig& config() const { return config_; }
  /// Multiply-accumulates of the products, for a text and a memory of these lengths.
  std::int64_t flops(std::int64_t text, std::int64_t memory) const;

 private:
  // What it says in its steps, and where it comes to.
  struct Written {
    Tensor out;                 // [rows, …], step by step: what the head reads
    nn::RecurrentState state;   // behind the last step
    Tensor probabilities = {};  // [B, N, M] of texts of one length
  };
  Written write(const Tensor& vectors, const Tensor& lengths, Start from, std::int64_t each, nn::Pass& pass) const;
  Tensor head(const Tensor& out, nn::Pass& pass) const;

  RecurrentDecoderConfig config_;
  std::optional<TokenVectors> vectors_;
  std::optional<nn::AdditiveAttention> attention_;
  std::optional<nn::Recurrent> network_;
  std::optional<nn::Linear> readout_;  // with attention
  Tensor head_weight_;
  Tensor head_bias_;
};

}  // namespace vitrail::models
