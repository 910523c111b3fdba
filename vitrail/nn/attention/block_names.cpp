#include "vitrail/nn/attention/block_names.h"

namespace vitrail::nn {

BlockConfig named_as_beit(BlockConfig config) {
  config.names = {.rel_pos = "attn", .ls1 = "gamma_1", .ls2 = "gamma_2"};
  return config;
}

BlockConfig named_as_bert(BlockConfig config) {
  config.names = {.norm1 = "attention.output.LayerNorm", .attn = "attention", .norm2 = "output.LayerNorm", .mlp = ""};
  config.attention.fused = false;
  config.attention.names =
      AttentionNames{.q = "self.query", .k = "self.key", .v = "self.value", .proj = "output.dense"};
  config.mlp.names = {.fc1 = "intermediate.dense", .fc2 = "output.dense"};
  return config;
}

BlockConfig named_as_distilbert(BlockConfig config) {
  config.names = {.norm1 = "sa_layer_norm", .attn = "attention", .norm2 = "output_layer_norm", .mlp = "ffn"};
  config.attention.fused = false;
  config.attention.names = AttentionNames{.q = "q_lin", .k = "k_lin", .v = "v_lin", .proj = "out_lin"};
  config.mlp.names = {.fc1 = "lin1", .fc2 = "lin2"};
  return config;
}

BlockConfig named_as_torch(BlockConfig config) {
  config.names = {.attn = "self_attn", .mlp = ""};
  config.attention.fused = true;
  config.attention.names = AttentionNames{.proj = "out_proj", .in_proj = true};
  config.mlp.names = {.fc1 = "linear1", .fc2 = "linear2"};
  return config;
}

BlockConfig named_as_llama(BlockConfig config) {
  config.names = {.norm1 = "input_layernorm", .attn = "self_attn", .norm2 = "post_attention_layernorm"};
  config.attention.fused = false;
  config.attention.names = AttentionNames{.proj = "o_proj"};
  config.mlp.names = {.fc1_g = "gate_proj", .fc1_x = "up_proj", .fc2 = "down_proj"};
  return config;
}

BlockConfig named_as_bloom(BlockConfig config) {
  config.names = {.norm1 = "input_layernorm", .attn = "self_attention", .norm2 = "post_attention_layernorm"};
  config.attention.fused = true;
  config.attention.by_head = true;
  config.attention.names = AttentionNames{.qkv = "query_key_value", .proj = "dense"};
  config.mlp.names = {.fc1 = "dense_h_to_4h", .fc2 = "dense_4h_to_h"};
  return config;
}

BlockConfig named_as_gpt2(BlockConfig config) {
  config.names = {.norm1 = "ln_1", .norm2 = "ln_2"};
  config.attention.fused = true;
  config.attention.names = AttentionNames{.qkv = "c_attn", .proj = "c_proj"};
  config.attention.layout = WeightLayout::in_out;
  config.mlp.names = {.fc1 = "c_fc", .fc2 = "c_proj"};
  config.mlp.layout = WeightLayout::in_out;
  return config;
}

}  // namespace vitrail::nn
