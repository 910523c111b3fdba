#include "vitrail/models/detection/detr_transformer.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "vitrail/models/base/adapt.h"
#include "vitrail/nn/checkpoint.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

nn::AttentionConfig detr_attention(const DetrTransformerConfig& config, std::int64_t heads) {
  return {.dim = config.d_model,
          .num_heads = heads,
          .fused = false,
          .qkv_bias = true,
          .attn_drop = config.attention_dropout,
          .proj_drop = config.dropout,
          .names = nn::AttentionNames{.q = "q_proj", .k = "k_proj", .v = "v_proj", .proj = "out_proj"}};
}

nn::MlpConfig detr_mlp(const DetrTransformerConfig& config, std::int64_t hidden) {
  return {.dim = config.d_model,
          .hidden = hidden,
          .activation = config.activation,
          .drop1 = config.activation_dropout,
          .drop2 = config.dropout};
}

constexpr nn::NormConfig detr_norm{.eps = 1e-5F};

// norm(x + attention), where queries and keys have had their positions added.
Tensor attend_and_norm(const nn::CrossAttention& attention, const nn::Norm& norm, const Tensor& x,
                       const Tensor& queries, const Tensor& keys, const Tensor& values, const Tensor& mask,
                       nn::Pass& pass) {
  const nn::Memory memory{(*attention.k)(keys), (*attention.v)(values)};
  return norm(attention.attend(queries, memory, pass, {.residual = x, .mask = mask}));
}

}  // namespace

nn::InitRule detr_init_rule() {
  return [](std::string_view name, const Shape& shape, const nn::Init& own) {
    const bool of_transformer = name.starts_with("encoder.") || name.starts_with("decoder.");
    if (!of_transformer) {
      return own;
    }
    if (shape.rank() > 1) {
      // nn.MultiheadAttention holds queries, keys and values as rows of one matrix.
      const bool joined =
          name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight") || name.ends_with("v_proj.weight");
      return nn::Init::xavier_uniform(joined ? Shape{3 * shape[0], shape[1]} : shape);
    }
    return name.find("_proj.bias") != std::string_view::npos ? nn::Init::zeros() : own;
  };
}

DetrEncoderLayer::DetrEncoderLayer(const nn::Scope& scope, const DetrTransformerConfig& config)
    : self_attn(scope / "self_attn", detr_attention(config, config.encoder_attention_heads)),
      self_attn_layer_norm(scope / "self_attn_layer_norm", config.d_model, detr_norm),
      mlp(scope, detr_mlp(config, config.encoder_ffn_dim)),
      final_layer_norm(scope / "final_layer_norm", config.d_model, detr_norm) {}

Tensor DetrEncoderLayer::operator()(const Tensor& x, const Tensor& positions, const Tensor& mask,
                                    nn::Pass& pass) const {
  const Tensor placed = positions.defined() ? x + positions : x;
  const Tensor y = attend_and_norm(self_attn, self_attn_layer_norm, x, placed, placed, x, mask, pass);
  return final_layer_norm(mlp(y, pass, y));
}

DetrDecoderLayer::DetrDecoderLayer(const nn::Scope& scope, const DetrTransformerConfig& config)
    : self_attn(scope / "self_attn", detr_attention(config, config.decoder_attention_heads)),
      self_attn_layer_norm(scope / "self_attn_layer_norm", config.d_model, detr_norm),
      encoder_attn(scope / "encoder_attn", detr_attention(config, config.decoder_attention_heads)),
      encoder_attn_layer_norm(scope / "encoder_attn_layer_norm", config.d_model, detr_norm),
      mlp(scope, detr_mlp(config, config.decoder_ffn_dim)),
      final_layer_norm(scope / "final_layer_norm", config.d_model, detr_norm) {}

Tensor DetrDecoderLayer::operator()(const Tensor& x, const Tensor& queries, const Memory& memory,
                                    nn::Pass& pass) const {
  const Tensor asking = x + queries;
  Tensor y = attend_and_norm(self_attn, self_attn_layer_norm, x, asking, asking, x, {}, pass);
  y = attend_and_norm(encoder_attn, encoder_attn_layer_norm, y, y + queries, memory.keys, memory.values, memory.mask,
                      pass);
  return final_layer_norm(mlp(y, pass, y));
}

DetrTransformer::DetrTransformer(const nn::Scope& scope, const DetrTransformerConfig& config)
    : num_queries_(config.num_queries),
      dim_(config.d_model),
      feeds_normed_(config.auxiliary_loss),
      queries_(scope / "query_position_embeddings", config.num_queries, config.d_model) {
  for (std::int64_t i = 0; i < config.encoder_layers; ++i) {
    encoder_.emplace_back(scope / "encoder" / "layers" / i, config);
  }
  for (std::int64_t i = 0; i < config.decoder_layers; ++i) {
    decoder_.emplace_back(scope / "decoder" / "layers" / i, config);
  }
  norm_.emplace(scope / "decoder" / "layernorm", config.d_model, detr_norm);
}

std::vector<Tensor> DetrTransformer::operator()(const Input& input, nn::Pass& pass, bool all_layers) const {
  Tensor memory = input.x;
  for (const DetrEncoderLayer& layer : encoder_) {
    memory = nn::run_block([&layer, positions = input.positions, mask = input.mask](
                               const Tensor& x, nn::Pass& own) { return layer(x, positions, mask, own); },
                           std::move(memory), pass);
  }
  const DetrDecoderLayer::Memory seen{memory, input.positions.defined() ? memory + input.positions : memory,
                                      input.mask};
  const Tensor queries = ops::cast(ops::unsqueeze(queries_.weight, 0), pass.dtype);
  Tensor x = Tensor::zeros({memory.size(0), num_queries_, dim_}, pass.dtype);
  std::vector<Tensor> states;
  for (std::size_t i = 0; i < decoder_.size(); ++i) {
    const Tensor own = decoder_[i](x, queries, seen, pass);
    x = feeds_normed_ ? (*norm_)(own) : own;
    const bool last = i + 1 == decoder_.size();
    const Tensor normed = last || (all_layers && !feeds_normed_) ? (*norm_)(x) : all_layers ? x : Tensor();
    if (normed.defined()) {
      states.push_back(normed);
    }
    if (pass.wants_features()) {  // as transformers has them, of the last layer behind the final norm
      pass.recorder->feature(fmt::format("model.decoder.layers.{}", i), last ? normed : own);
    }
  }
  return states;
}

std::int64_t DetrTransformer::flops(std::int64_t tokens) const {
  std::int64_t total = 5 * num_queries_ * dim_;
  for (const DetrEncoderLayer& layer : encoder_) {
    total += layer.self_attn.flops(tokens, tokens) + layer.mlp.flops(tokens) + 2 * 5 * tokens * dim_;
  }
  for (const DetrDecoderLayer& layer : decoder_) {
    total += layer.self_attn.flops(num_queries_, num_queries_) + layer.encoder_attn.flops(num_queries_, tokens) +
             layer.mlp.flops(num_queries_) + 3 * 5 * num_queries_ * dim_;
  }
  return total;
}

std::int64_t DetrTransformer::layer_of(const std::string& parameter) const {
  if (const auto encoder = index_after(parameter, "model.encoder.layers.")) {
    return 1 + *encoder;
  }
  if (const auto decoder = index_after(parameter, "model.decoder.layers.")) {
    return std::ssize(encoder_) + 1 + *decoder;
  }
  const bool before = parameter.starts_with("model.") && !parameter.starts_with("model.decoder.");
  return before ? 0 : depth() + 1;  // projection and positions; norm and heads
}

DetrHeads::DetrHeads(const nn::Scope& scope, const std::string& name, const DetrTransformerConfig& config,
                     std::int64_t numbers)
    : classifier_(scope / "class_labels_classifier", config.d_model, config.num_labels + 1) {
  for (const std::int64_t i : {0, 1, 2}) {
    layers_.emplace_back(scope / name / "layers" / i, config.d_model, i < 2 ? config.d_model : numbers);
  }
}

SetOutputs DetrHeads::operator()(const Tensor& states) const {
  Tensor values = ops::cast(states, DType::f32);  // the heads run in f32
  const Tensor logits = classifier_(values);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    values = layers_[i](values, i + 1 < layers_.size() ? ops::Activation::relu : ops::Activation::identity);
  }
  return {logits, values};
}

std::int64_t DetrHeads::flops(std::int64_t queries) const {
  std::int64_t total = classifier_.flops(queries);
  for (const nn::Linear& layer : layers_) {
    total += layer.flops(queries);
  }
  return total;
}

}  // namespace vitrail::models
