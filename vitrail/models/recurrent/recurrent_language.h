/// \file
/// Recurrent language models (Mikolov et al. 2010), which read a text token by token.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/text/text_network.h"
#include "vitrail/nn/drop.h"
#include "vitrail/nn/recurrent/recurrent.h"

namespace vitrail::models {

/// The bound of the embedding and the head as training begins, as in word_language_model.
constexpr float language_init = 0.1F;

/// The sizes and parts of a RecurrentLanguage.
struct RecurrentLanguageConfig {
  nn::RecurrentConfig network;  ///< its input_size follows from the embedding; its dropout is that of the ends too
  std::int64_t vocab_size = 0;
  std::int64_t embedding_size = 0;  ///< 0: tokens are read as one-hot vectors
  bool tied_head = false;           ///< the head's weight is that of the embedding (Press & Wolf 2017)
};

/// The config with the input_size that follows from the rest.
RecurrentLanguageConfig with_input(RecurrentLanguageConfig config);
/// What it says of the sizes.
TextShape shape_of(const RecurrentLanguageConfig& config);

/// What a recurrent network reads of tokens: a vector that is looked up in the parameter `weight`, or a one-hot vector;
/// in training, with dropout.
struct TokenVectors {
  TokenVectors(const nn::Scope& scope, const RecurrentLanguageConfig& config);
  /// ids [B, N] i64 → [B, N, I] in the pass's dtype. Throws Error, naming the place, for an id out of range.
  Tensor operator()(const Tensor& ids, nn::Pass& pass) const;

  std::int64_t vocab_size;
  Tensor table;  ///< the parameter, or the identity [V, V]
  nn::Dropout drop;
};

/// What a recurrent network keeps of texts: the states of its layers, without their history. Training that goes on from
/// them is truncated backpropagation through time (Williams & Peng 1990).
struct RecurrentTextState final : TextState {
  std::int64_t length() const override { return tokens; }
  void select(const std::vector<std::int64_t>& indices) override;
  void join(const TextState& other) override;
  void drop_last(std::int64_t tokens) override;
  std::size_t bytes() const override;

  nn::RecurrentState state;
  std::int64_t tokens = 0;
};

/// A recurrent network between an embedding and a head, as RNNModel of PyTorch's example word_language_model, whose
/// names its parameters have (`encoder.weight`, `rnn.weight_ih_l0` …, `decoder.weight`, `decoder.bias`):
///
/// ```text
/// x_t = E[id_t],   h_t = cell(x_t, h_{t-1}) in each layer,   logits_t = W h_t + b
/// ```
///
/// In training, dropout acts on x, between the layers, and on the last layer's h.
class RecurrentLanguage final : public LanguageBody {
 public:
  RecurrentLanguage(const nn::Scope& scope, const RecurrentLanguageConfig& config);

  std::unique_ptr<TextState> begin(std::optional<DType> /*cache*/ = std::nullopt) const override {
    return std::make_unique<RecurrentTextState>();
  }
  Tensor forward(const Tensor& ids, nn::Pass& pass, TextState* state = nullptr) const override;
  Tensor forward_texts(const Texts& texts, nn::Pass& pass) const override;
  Tensor forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const override;
  bool keeps_keys() const override { return false; }
  std::int64_t vocab_size() const override { return config_.vocab_size; }
  std::int64_t max_positions() const override { return unbounded_positions; }
  std::size_t state_bytes(std::int64_t tokens, DType dtype) const override;

  const TokenVectors& vectors() const { return *vectors_; }
  /// The logits [..., V] f32 of outputs [..., P] of the last layer.
  Tensor head(const Tensor& output) const;
  const nn::Recurrent& network() const { return *network_; }
  const RecurrentLanguageConfig& config() const { return config_; }
  /// Multiply-accumulates of the products, for texts of this many tokens in all.
  std::int64_t flops(std::int64_t tokens) const;

 private:
  Tensor outputs(const Tensor& ids, nn::Pass& pass, TextState* state) const;

  RecurrentLanguageConfig config_;
  nn::Dropout drop_;
  std::optional<TokenVectors> vectors_;
  std::optional<nn::Recurrent> network_;
  Tensor head_weight_;
  Tensor head_bias_;
};

/// A RecurrentLanguage as a network of its own.
struct RecurrentLanguageNetwork final : TextNetwork {
  explicit RecurrentLanguageNetwork(const RecurrentLanguageConfig& config, const nn::StoreOptions& store = {})
      : TextNetwork(store), body(nn::Scope(parameters), config) {}

  TextShape shape() const override { return shape_of(body.config()); }
  std::int64_t flops(std::int64_t tokens) const override { return body.flops(tokens); }
  const LanguageBody* language() const override { return &body; }
  std::int64_t layer_of(const std::string& parameter) const override;
  bool is_head(const std::string& parameter) const override { return parameter.starts_with("decoder."); }

  const RecurrentLanguage body;
};

/// The body as a recurrent network; null if it is none.
const RecurrentLanguage* as_recurrent(const LanguageBody& body);

}  // namespace vitrail::models
