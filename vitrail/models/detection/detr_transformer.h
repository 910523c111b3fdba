/// \file
/// DETR's transformer: an encoder of a set, and queries that read it (Carion et al. 2020).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/nn/attention/attention.h"
#include "vitrail/nn/embedding.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/pass.h"

namespace vitrail::models {

/// The sizes of a DetrTransformer, by the names of transformers' DetrConfig.
struct DetrTransformerConfig {
  std::int64_t d_model = 256;
  std::int64_t encoder_layers = 6;
  std::int64_t decoder_layers = 6;
  std::int64_t encoder_attention_heads = 8;
  std::int64_t decoder_attention_heads = 8;
  std::int64_t encoder_ffn_dim = 2048;
  std::int64_t decoder_ffn_dim = 2048;
  ops::Activation activation = ops::Activation::relu;
  std::int64_t num_queries = 100;
  std::int64_t num_labels = 91;  ///< the kinds of elements of the set that is predicted; "nothing" is one more
  float dropout = 0.1F;
  float attention_dropout = 0;
  float activation_dropout = 0;
  /// The decoder of transformers' config of this name: each layer's states go to the next one normed, and those of the
  /// last layer are normed twice.
  bool auxiliary_loss = false;
};

/// What each query says: S sets of Q elements each.
struct SetOutputs {
  Tensor logits;  ///< [S, Q, num_labels + 1] f32; the last class is "nothing"
  Tensor values;  ///< [S, Q, V] f32, the numbers of the elements
};

/// One layer of the encoder, x [B, N, D] → [B, N, D]:
///
/// ```text
/// x = norm(x + attention(q = x + p, k = x + p, v = x)),   x = norm(x + fc2(act(fc1(x))))
/// ```
///
/// where p are the positions, or 0 if they are undefined. Parameters by the names of transformers' DetrEncoderLayer.
struct DetrEncoderLayer {
  DetrEncoderLayer(const nn::Scope& scope, const DetrTransformerConfig& config);
  Tensor operator()(const Tensor& x, const Tensor& positions, const Tensor& mask, nn::Pass& pass) const;

  nn::CrossAttention self_attn;
  nn::Norm self_attn_layer_norm;
  nn::Mlp mlp;
  nn::Norm final_layer_norm;
};

/// One layer of the decoder, x [B, Q, D] → [B, Q, D], which reads the encoder's memory [B, N, D]:
///
/// ```text
/// x = norm(x + attention(q = x + o, k = x + o, v = x))
/// x = norm(x + attention(q = x + o, k = memory + p, v = memory)),   x = norm(x + fc2(act(fc1(x))))
/// ```
///
/// where o are the query embeddings. Parameters by the names of transformers' DetrDecoderLayer.
struct DetrDecoderLayer {
  DetrDecoderLayer(const nn::Scope& scope, const DetrTransformerConfig& config);
  /// What the queries look at, the same for all layers.
  struct Memory {
    Tensor values;  ///< the encoder's output
    Tensor keys;    ///< with the positions added
    Tensor mask;    ///< bool [B, 1, 1, N] or undefined
  };
  Tensor operator()(const Tensor& x, const Tensor& queries, const Memory& memory, nn::Pass& pass) const;

  nn::CrossAttention self_attn;
  nn::Norm self_attn_layer_norm;
  nn::CrossAttention encoder_attn;
  nn::Norm encoder_attn_layer_norm;
  nn::Mlp mlp;
  nn::Norm final_layer_norm;
};

/// An encoder of N tokens and a decoder that turns num_queries learned embeddings, beginning with zeros, into as many
/// states. Without positions the tokens are a set: their order makes no difference.
///
/// Parameters by transformers' names: `query_position_embeddings`, `encoder.layers.{i}.…`, `decoder.layers.{i}.…`,
/// `decoder.layernorm`. They start as facebookresearch/detr's: matrices Xavier uniform, query embeddings N(0, 1).
class DetrTransformer {
 public:
  /// `scope` is that of the model, without the rule by which its parameters start (detr_init_rule()).
  DetrTransformer(const nn::Scope& scope, const DetrTransformerConfig& config);

  /// What is encoded.
  struct Input {
    Tensor x;          ///< [B, N, D]
    Tensor positions;  ///< [B or 1, N, D], or undefined: none
    Tensor mask;       ///< bool [B, 1, 1, N], true where a token is there; undefined: everywhere
  };
  /// The normed states [B, Q, D] of the last layer of the decoder, or of each, in order: each layer's states go through
  /// the one final norm, and without it to the next layer.
  std::vector<Tensor> operator()(const Input& input, nn::Pass& pass, bool all_layers) const;

  std::int64_t flops(std::int64_t tokens) const;
  std::int64_t depth() const { return std::ssize(encoder_) + std::ssize(decoder_); }
  /// The layer of a parameter of a model whose scope is "model.": 0 for what comes before the encoder, depth() + 1 for
  /// what comes behind the decoder.
  std::int64_t layer_of(const std::string& parameter) const;

 private:
  std::int64_t num_queries_;
  std::int64_t dim_;
  bool feeds_normed_;  // each layer's states to the next
  nn::Embedding queries_;
  std::vector<DetrEncoderLayer> encoder_;
  std::vector<DetrDecoderLayer> decoder_;
  std::optional<nn::Norm> norm_;
};

/// How the parameters of a DetrTransformer and of what its model has beside it start: those of encoder and decoder as
/// facebookresearch/detr's Transformer._reset_parameters has it, others as layers do.
nn::InitRule detr_init_rule();

/// What states of the decoder say, in f32: a class by one linear map, `class_labels_classifier`, and numbers by three
/// with ReLU between them, `layers.{0,1,2}` below `name`.
class DetrHeads {
 public:
  DetrHeads(const nn::Scope& scope, const std::string& name, const DetrTransformerConfig& config, std::int64_t numbers);
  SetOutputs operator()(const Tensor& states) const;
  std::int64_t flops(std::int64_t queries) const;

 private:
  nn::Linear classifier_;
  std::vector<nn::Linear> layers_;
};

}  // namespace vitrail::models
