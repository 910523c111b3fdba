/// \file
/// The block of a decoder that reads another text besides its own.
#pragma once

#include <cstdint>
#include <string>

#include "vitrail/nn/attention/block.h"

namespace vitrail::nn {

/// The names of the parts of a DecoderBlock. If a name is empty, the parameters of the part have the names that they
/// would have as the block's own. The defaults are those of torch.nn.TransformerDecoderLayer.
struct DecoderBlockNames {
  std::string attn = "self_attn";
  std::string norm1 = "norm1";
  std::string cross = "multihead_attn";
  std::string norm2 = "norm2";
  std::string mlp = {};
  std::string norm3 = "norm3";
};

/// The parts of a DecoderBlock.
struct DecoderBlockConfig {
  AttentionConfig attention = {};  ///< of the decoder's own tokens
  AttentionConfig cross = {};      ///< to the memory
  MlpKind mlp_kind = MlpKind::mlp;
  MlpConfig mlp = {};
  NormConfig norm = {};
  NormPlace norm_place = NormPlace::post;
  DecoderBlockNames names = {};
};

/// The names of torch.nn.TransformerDecoderLayer: `self_attn.{in_proj_weight,in_proj_bias,out_proj}`, `multihead_attn`
/// alike, `linear1`, `linear2`, `norm1`, `norm2`, `norm3`.
DecoderBlockConfig named_as_torch(DecoderBlockConfig config);
/// The names of transformers' MarianDecoderLayer and BartDecoderLayer: `self_attn.{q,k,v,out}_proj`, `encoder_attn`
/// alike, `fc1`, `fc2`, `self_attn_layer_norm`, `encoder_attn_layer_norm`, `final_layer_norm`.
DecoderBlockConfig named_as_marian(DecoderBlockConfig config);
/// The names of transformers' GPT2Block with cross-attention: `ln_1`, `attn.{c_attn,c_proj}`, `ln_cross_attn`,
/// `crossattention.{q_attn,c_attn,c_proj}`, `ln_2`, `mlp.{c_fc,c_proj}`, with all weights laid out [in, out].
DecoderBlockConfig named_as_gpt2(DecoderBlockConfig config);
/// The names of transformers' BertLayer with cross-attention: those of nn::named_as_bert(BlockConfig), and
/// `crossattention.self.{query,key,value}`, `crossattention.output.{dense,LayerNorm}`.
DecoderBlockConfig named_as_bert(DecoderBlockConfig config);
/// The names of transformers' MarianEncoderLayer and BartEncoderLayer, which are those of the decoder's layer.
BlockConfig named_as_marian(BlockConfig config);

/// A decoder's block (Vaswani et al. 2017, section 3.1), x [B, N, D] → [B, N, D]. With the norms behind:
///
/// ```text
/// x = norm1(x + attn(x))
/// x = norm2(x + cross(x, memory))
/// x = norm3(x + mlp(x))
/// ```
///
/// and with the norms in front x + attn(norm1(x)) and so on. There are no other places.
struct DecoderBlock {
  DecoderBlock(const Scope& scope, const DecoderBlockConfig& config);

  /// What a call is told of the other text.
  struct Source {
    Memory memory;        ///< cross.remember() of it, [S, M, …]
    Tensor lengths = {};  ///< i64 [S]: how many of its tokens are real; undefined: all
    Tensor offsets = {};  ///< of texts in one row, as AttentionExtras::key_offsets; then x is such a row too
    /// f32, broadcastable to [S, H, N, M]: is added to the scores of the attention to the memory. The gradient at zeros
    /// tells what each score brings.
    Tensor bias = {};
  };
  /// `own` are the extras of the attention to the block's own tokens, without a residual. B is a multiple of S: the
  /// samples of one source (such as the beams of a search) follow each other, and share its memory.
  Tensor operator()(const Tensor& x, const Source& source, Pass& pass, const AttentionExtras& own) const;
  /// For `tokens` tokens that see `memory` tokens of the other text.
  std::int64_t flops(std::int64_t tokens, std::int64_t memory) const;

  NormPlace norm_place;
  Attention attn;
  Norm norm1;
  CrossAttention cross;
  Norm norm2;
  FeedForward mlp;
  Norm norm3;
};

}  // namespace vitrail::nn
