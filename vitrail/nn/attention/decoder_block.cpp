#include "vitrail/nn/attention/decoder_block.h"

#include "vitrail/ops/shape/shape.h"

namespace vitrail::nn {
namespace {

Scope decoder_part(const Scope& scope, const std::string& name) { return name.empty() ? scope : scope / name; }

NormPlace in_front_or_behind(const Scope& scope, NormPlace place) {
  check(place == NormPlace::pre || place == NormPlace::post,
        "{}: a decoder's block has its norms in front of its parts or behind them", scope.path());
  return place;
}

// Adds layer(input, residual) to x, with the norm in front or behind.
template <class Layer>
Tensor normed_branch(NormPlace place, const Norm& norm, const Tensor& x, Layer&& layer) {
  return place == NormPlace::pre ? layer(norm(x), x) : norm(layer(x, x));
}

AttentionNames marian_projections() { return {.proj = "out_proj"}; }

}  // namespace

DecoderBlockConfig named_as_torch(DecoderBlockConfig config) {
  config.names = {};
  for (AttentionConfig* attention : {&config.attention, &config.cross}) {
    attention->fused = true;
    attention->names = AttentionNames{.proj = "out_proj", .in_proj = true};
  }
  config.mlp.names = {.fc1 = "linear1", .fc2 = "linear2"};
  return config;
}

DecoderBlockConfig named_as_marian(DecoderBlockConfig config) {
  config.names = {.norm1 = "self_attn_layer_norm",
                  .cross = "encoder_attn",
                  .norm2 = "encoder_attn_layer_norm",
                  .norm3 = "final_layer_norm"};
  for (AttentionConfig* attention : {&config.attention, &config.cross}) {
    attention->fused = false;
    attention->names = marian_projections();
  }
  config.cross.names = AttentionNames{.q = "q_proj", .k = "k_proj", .v = "v_proj", .proj = "out_proj"};
  config.mlp.names = {};
  return config;
}

DecoderBlockConfig named_as_gpt2(DecoderBlockConfig config) {
  config.names = {.attn = "attn",
                  .norm1 = "ln_1",
                  .cross = "crossattention",
                  .norm2 = "ln_cross_attn",
                  .mlp = "mlp",
                  .norm3 = "ln_2"};
  for (AttentionConfig* attention : {&config.attention, &config.cross}) {
    attention->fused = true;
    attention->layout = WeightLayout::in_out;
  }
  config.attention.names = AttentionNames{.qkv = "c_attn", .proj = "c_proj"};
  config.cross.names = AttentionNames{.qkv = "c_attn", .q = "q_attn", .proj = "c_proj"};
  config.mlp.names = {.fc1 = "c_fc", .fc2 = "c_proj"};
  config.mlp.layout = WeightLayout::in_out;
  return config;
}

DecoderBlockConfig named_as_bert(DecoderBlockConfig config) {
  config.names = {.attn = "attention",
                  .norm1 = "attention.output.LayerNorm",
                  .cross = "crossattention",
                  .norm2 = "crossattention.output.LayerNorm",
                  .norm3 = "output.LayerNorm"};
  for (AttentionConfig* attention : {&config.attention, &config.cross}) {
    attention->fused = false;
    attention->names = AttentionNames{.q = "self.query", .k = "self.key", .v = "self.value", .proj = "output.dense"};
  }
  config.mlp.names = {.fc1 = "intermediate.dense", .fc2 = "output.dense"};
  return config;
}

BlockConfig named_as_marian(BlockConfig config) {
  config.names = {.norm1 = "self_attn_layer_norm", .attn = "self_attn", .norm2 = "final_layer_norm", .mlp = ""};
  config.attention.fused = false;
  config.attention.names = marian_projections();
  config.mlp.names = {};
  return config;
}

DecoderBlock::DecoderBlock(const Scope& scope, const DecoderBlockConfig& config)
    : norm_place(in_front_or_behind(scope, config.norm_place)),
      attn(decoder_part(scope, config.names.attn), config.attention),
      norm1(decoder_part(scope, config.names.norm1), config.mlp.dim, config.norm),
      cross(decoder_part(scope, config.names.cross), config.cross),
      norm2(decoder_part(scope, config.names.norm2), config.mlp.dim, config.norm),
      mlp(decoder_part(scope, config.names.mlp), config.mlp_kind, config.mlp),
      norm3(decoder_part(scope, config.names.norm3), config.mlp.dim, config.norm) {}

Tensor DecoderBlock::operator()(const Tensor& x, const Source& source, Pass& pass, const AttentionExtras& own) const {
  check(!own.residual.defined(), "a block adds its own residual, and takes no other");
  const Tensor read = normed_branch(norm_place, norm1, x, [&](const Tensor& input, const Tensor& residual) {
    AttentionExtras extras = own;
    extras.residual = residual;
    return attn(input, pass, extras);
  });
  // Tokens do not see each other here: those of all samples of a source are queries of one sample.
  const std::int64_t sources = source.memory.keys.size(0);
  const Shape together{sources, x.size(0) / sources * x.size(1), x.size(2)};
  const Tensor seen = normed_branch(norm_place, norm2, read, [&](const Tensor& input, const Tensor& residual) {
    AttentionExtras extras;
    extras.lengths = source.lengths;
    extras.query_offsets = own.query_offsets;
    extras.key_offsets = source.offsets;
    extras.bias = source.bias;
    extras.residual = ops::reshape(residual, together);
    return ops::reshape(cross.attend(ops::reshape(input, together), source.memory, pass, extras), x.shape());
  });
  return normed_branch(norm_place, norm3, seen,
                       [&](const Tensor& input, const Tensor& residual) { return mlp(input, pass, residual); });
}

std::int64_t DecoderBlock::flops(std::int64_t tokens, std::int64_t memory) const {
  return attn.flops(tokens) + norm1.flops(tokens) + cross.flops(tokens, memory) + norm2.flops(tokens) +
         mlp.flops(tokens) + norm3.flops(tokens);
}

}  // namespace vitrail::nn
