/// \file
/// The base of the networks that read texts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/models/text/language_body.h"
#include "vitrail/nn/network.h"
#include "vitrail/nn/pass.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// The sizes of a network that reads texts.
struct TextShape {
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 0;  ///< the longest text; unbounded_positions if there is no limit
  std::int64_t depth = 0;          ///< blocks, or layers
  std::int64_t dim = 0;
  std::int64_t num_heads = 0;     ///< 0: it has no attention
  std::int64_t num_kv_heads = 0;  ///< heads of keys and values
};

class TextClassifier;  // text_classifier.h
class Translator;      // translator.h

/// The inputs of a forward pass of B texts, by transformers' names. What a network has no use for may be undefined.
struct TextInputs {
  Tensor input_ids = {};          ///< [B, N] i64
  Tensor attention_mask = {};     ///< [B, N] i64: 1 for real tokens, which come first, 0 for padding; undefined: all 1
  Tensor token_type_ids = {};     ///< [B, N] i64
  Tensor decoder_input_ids = {};  ///< [B, M] i64
};

/// Tensors that run() gives, by transformers' names.
using TextOutputs = std::vector<std::pair<std::string, Tensor>>;

/// Whose tokens look at whose in an attention: those of a text at each other, those of an encoder–decoder's target at
/// each other, or the target's at the source's.
enum class TextAttentionKind { self, decoder, cross };
/// "attention", "decoder_attention" or "cross_attention".
const char* name_of(TextAttentionKind kind);

/// A map that a recorder got of an attention, and which it is of those of its kind, from 0.
struct TextAttentionMap {
  TextAttentionKind kind;
  std::int64_t layer;
  Tensor map;  ///< [B, H, N, M]
  std::string name;
};

/// The number of real tokens of each text, [B] i64, of an attention_mask; undefined if that is. Throws Error if padding
/// stands before a token, or a text has none.
Tensor lengths_of(const Tensor& attention_mask);

/// A network that reads texts.
struct TextNetwork : nn::Network {
  explicit TextNetwork(const nn::StoreOptions& store) : nn::Network(store) {}

  virtual TextShape shape() const = 0;
  /// Multiply-accumulates of the products, for one text of this many tokens.
  virtual std::int64_t flops(std::int64_t tokens) const = 0;
  /// Runs the network on texts and gives all that its heads say: "logits", and of models without a head
  /// "last_hidden_state". What stands at padding is of no use. Throws Error if an input is missing or does not fit.
  /// That of a language model is here: it gives logits [B, N, V] of input_ids alone, as no token sees padding behind
  /// it.
  virtual TextOutputs run(const TextInputs& inputs, nn::Pass& pass) const;
  /// The maps of a recorder in order.
  std::vector<TextAttentionMap> attention_maps(const nn::Recorder& recorder) const;
  /// The kind of the attention that a recorder got under this name.
  virtual TextAttentionKind attention_kind(const std::string& /*name*/) const { return TextAttentionKind::self; }
  /// The names of the tables of embeddings, and of the heads, by which tokens are written: with one they are multiplied
  /// at each step, so that it pays to hold them as the weights inside the blocks are. Some may not exist.
  virtual std::vector<std::string> vocabulary_weights() const { return {}; }
  /// The network as one that continues texts; null if it does not.
  virtual const LanguageBody* language() const { return nullptr; }
  /// The network as one that tells classes apart; null if it does not.
  virtual const TextClassifier* classifier() const { return nullptr; }
  /// The network as one that translates; null if it does not.
  virtual const Translator* translator() const { return nullptr; }

  std::int64_t depth() const override { return shape().depth; }
  bool no_weight_decay(const std::string&) const override { return false; }
};

}  // namespace vitrail::models
