// Blocks as other references have them, with their parameters' names: tools/golden/blocks.py.
#include "tests/support/layers.h"
#include "vitrail/nn/attention/attention.h"
#include "vitrail/nn/attention/block.h"
#include "vitrail/nn/attention/block_names.h"
#include "vitrail/nn/positions/rotary.h"

namespace vitrail::nn {
namespace {

using test::LayerCase;
using BlockInputs = std::vector<Tensor>;

constexpr std::int64_t dim = 12, heads = 3, hidden = 20, tokens = 7;

const io::Safetensors& block_cases() {
  static const io::Safetensors file = test::golden("nn/blocks.safetensors");
  return file;
}

Tensor lengths_of_case(const std::string& name) {
  return name.find("padded") != std::string::npos ? block_cases().get(name + ".lengths") : Tensor();
}

// The block against the case, in both precisions; with ReLUs in f32 alone, since rounding to bf16 changes which are
// cut.
void check_block(const std::string& name, const BlockConfig& config, const AttentionExtras& extras = {}) {
  LayerCase block_case(block_cases(), name);
  const Block block(block_case.scope(), config);
  AttentionExtras all = extras;
  all.lengths = lengths_of_case(name);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    if (dtype == DType::bf16 && config.mlp.activation == ops::Activation::relu) {
      continue;
    }
    Pass pass{.dtype = dtype};
    block_case.check([&](const BlockInputs& in) { return block(in[0], pass, all); }, {"x"}, dtype);
  }
}

BlockConfig plain_config(ops::Activation activation) {
  return {.attention = {.dim = dim, .num_heads = heads, .qkv_bias = true},
          .mlp = {.dim = dim, .hidden = hidden, .activation = activation}};
}

TEST(Block, AgreesWithTorchsEncoderLayer) {
  for (const bool pre : {false, true}) {
    for (const ops::Activation activation : {ops::Activation::relu, ops::Activation::gelu}) {
      BlockConfig config = named_as_torch(plain_config(activation));
      config.norm = {.eps = 1e-5F};
      config.norm_place = pre ? NormPlace::pre : NormPlace::post;
      const std::string name =
          std::string(pre ? "torch_pre_" : "torch_post_") + (activation == ops::Activation::relu ? "relu" : "gelu");
      check_block(name, config);
      check_block(name + "_padded", config);
      check_block(name + "_causal", config, {.causal = true});
    }
  }
  BlockConfig config = named_as_torch(plain_config(ops::Activation::relu));
  config.norm = {.eps = 1e-5F};
  config.norm_place = NormPlace::post;
  check_block("torch_post_relu_padded_causal", config, {.causal = true});
}

TEST(Block, AgreesWithBert) {
  BlockConfig config = named_as_bert(plain_config(ops::Activation::gelu));
  config.norm = {.eps = 1e-12F};
  config.norm_place = NormPlace::post;
  check_block("bert", config);
  check_block("bert_padded", config);
}

TEST(Block, AgreesWithLlama) {
  BlockConfig config = named_as_llama(plain_config(ops::Activation::silu));
  config.attention.qkv_bias = config.attention.proj_bias = false;
  config.mlp_kind = MlpKind::swiglu;
  config.mlp.fc1_bias = config.mlp.fc2_bias = false;
  config.norm = {NormKind::rms, 1e-6F};
  const ops::Rotation rotation = ops::rotation(sequence_angles(tokens, dim / heads, 10000), ops::RotaryPairs::halves);
  check_block("llama", config, {.causal = true, .rotation = rotation});
  check_block("llama_padded", config, {.causal = true, .rotation = rotation});
}

TEST(Block, AgreesWithGpt2) {
  BlockConfig config = named_as_gpt2(plain_config(ops::Activation::gelu_tanh));
  config.norm = {.eps = 1e-5F};
  check_block("gpt2", config, {.causal = true});
}

TEST(CrossAttention, AgreesWithTorchsMultiheadAttention) {
  const std::string name = "torch_cross_attention";
  LayerCase attention_case(block_cases(), name);
  const CrossAttention attention(
      attention_case.scope(),
      {.dim = dim, .num_heads = heads, .qkv_bias = true, .names = AttentionNames{.proj = "out_proj", .in_proj = true}});
  const AttentionExtras extras{.lengths = block_cases().get(name + ".lengths")};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Pass pass{.dtype = dtype};
    attention_case.check([&](const BlockInputs& in) { return attention(in[0], in[1], pass, extras); }, {"x", "context"},
                         dtype);
  }
}

TEST(CrossAttention, RefusesAnInProjectionOfInputsOfTwoWidths) {
  ParameterStore store;
  EXPECT_THROW(CrossAttention(Scope(store),
                              {.dim = 12, .context_dim = 8, .num_heads = 3, .names = AttentionNames{.in_proj = true}}),
               Error);
}

}  // namespace
}  // namespace vitrail::nn
