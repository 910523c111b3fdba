/// \file
/// BLIP's text transformer (Li et al. 2022), whose every layer looks at something besides its own text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/text/cross_decoder.h"
#include "vitrail/models/text/text_positions.h"
#include "vitrail/models/text/token_ids.h"
#include "vitrail/nn/attention/decoder_block.h"
#include "vitrail/nn/embedding.h"
#include "vitrail/nn/norm.h"
#include "vitrail/nn/pass.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

/// The sizes and parts of a BlipText, with the defaults of transformers' BlipTextConfig.
struct BlipTextConfig {
  std::int64_t vocab_size = 30524;
  std::int64_t max_positions = 512;
  std::int64_t dim = 768;
  std::int64_t context_dim = 768;  ///< width of what it looks at
  std::int64_t depth = 12;
  std::int64_t num_heads = 8;
  std::int64_t hidden = 3072;  ///< of the Mlp
  ops::Activation activation = ops::Activation::gelu;
  float eps = 1e-12F;  ///< of the norms
  float drop = 0;
  float attn_drop = 0;
  float init_std = 0.02F;
  std::int64_t padding = -1;  ///< an id whose embedding gets no gradient where it is looked up; -1: none
};

/// transformers' BlipTextModel: BERT with an attention to a context between each layer's self-attention and Mlp,
///
/// ```text
/// x = norm(embedding[ids] + positions),   x = norm(x + attn(x)),  x = norm(x + cross(x, context)),  x = norm(x +
/// mlp(x))
/// ```
///
/// for each layer. As the encoder of questions a token sees all tokens of its text, as a decoder only itself and those
/// before it. Parameters: `embeddings.{word_embeddings,position_embeddings,LayerNorm}`, `encoder.layer.{i}` with
/// `attention`, `crossattention`, `intermediate` and `output`. Weights start as N(0, init_std²), biases as zeros.
class BlipText {
 public:
  using Sources = std::vector<nn::DecoderBlock::Source>;  ///< for each layer

  BlipText(const nn::Scope& scope, const BlipTextConfig& config);

  /// What the layers look at of contexts [S, M, context_dim], of which the first lengths [S] tokens are real
  /// (undefined: all). With `rows` [B] i64, text b looks at context rows[b]; without, B is a multiple of S, and the
  /// texts of one context follow each other.
  Sources remember(const Tensor& context, const Tensor& lengths = {}, const Tensor& rows = {}) const;

  /// The last states [B, N, dim] of texts, in the dtype of the pass. With a state, whose sources it then reads, the
  /// texts continue those that the state has seen. Texts may lie in one row, beside sources that do. Throws Error for
  /// an id that is not in the vocabulary, and for texts longer than the model's positions.
  Tensor operator()(const Texts& texts, const Sources& sources, bool causal, nn::Pass& pass,
                    CrossDecoderState* state = nullptr) const;

  const BlipTextConfig& config() const { return config_; }
  const nn::Embedding& embedding() const { return *embedding_; }
  std::int64_t flops(std::int64_t tokens, std::int64_t context) const;
  /// Where the map of layer i's attention to the context is in a recorder.
  std::string cross_attention_name(std::int64_t layer) const;

 private:
  BlipTextConfig config_;
  std::string path_;
  std::optional<nn::Embedding> embedding_;
  std::optional<TextPositions> positions_;
  std::optional<nn::Norm> norm_;
  std::vector<nn::DecoderBlock> blocks_;
};

}  // namespace vitrail::models
