/// \file
/// Blocks with the parameter names of other references than timm's Block.
#pragma once

#include "vitrail/nn/attention/block.h"

namespace vitrail::nn {

// Each function returns the config with the names of a reference, below the block's own name, and with its projections
// fused or separate and its weights laid out as there. Everything else is unchanged: sizes, biases, activation, norms
// and their place.

/// The names of timm's Beit and Eva: those of Block, but `gamma_1`, `gamma_2` and `attn.relative_position_bias_table`.
BlockConfig named_as_beit(BlockConfig config);

/// The names of transformers' BertLayer: `attention.self.{query,key,value}`, `attention.output.{dense,LayerNorm}`,
/// `intermediate.dense`, `output.{dense,LayerNorm}`.
BlockConfig named_as_bert(BlockConfig config);

/// The names of transformers' DistilBERT: `attention.{q,k,v,out}_lin`, `sa_layer_norm`, `ffn.{lin1,lin2}`,
/// `output_layer_norm`.
BlockConfig named_as_distilbert(BlockConfig config);

/// The names of torch.nn.TransformerEncoderLayer, which DETR has too:
/// `self_attn.{in_proj_weight,in_proj_bias,out_proj}`, `linear1`, `linear2`, `norm1`, `norm2`.
BlockConfig named_as_torch(BlockConfig config);

/// The names of transformers' LlamaDecoderLayer: `input_layernorm`, `self_attn.{q,k,v,o}_proj`,
/// `post_attention_layernorm`, `mlp.{gate,up,down}_proj` (MlpKind::swiglu).
BlockConfig named_as_llama(BlockConfig config);

/// The names of transformers' BloomBlock: `input_layernorm`, `self_attention.{query_key_value,dense}`,
/// `post_attention_layernorm`, `mlp.{dense_h_to_4h,dense_4h_to_h}`, with queries, keys and values head by head.
BlockConfig named_as_bloom(BlockConfig config);

/// The names of transformers' GPT2Block: `ln_1`, `attn.{c_attn,c_proj}`, `ln_2`, `mlp.{c_fc,c_proj}`, with all weights
/// laid out [in, out].
BlockConfig named_as_gpt2(BlockConfig config);

}  // namespace vitrail::nn
