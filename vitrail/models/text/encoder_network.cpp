#include "vitrail/models/text/encoder_network.h"

#include <algorithm>

#include "vitrail/models/text/families.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

nn::Scope with_bert_init(nn::ParameterStore& store, float std) {
  return nn::Scope(store).with_init([std](std::string_view name, const Shape& shape, const nn::Init& own) {
    if (shape.rank() >= 2) {
      return nn::Init::normal(std);
    }
    return name.ends_with("bias") ? nn::Init::zeros() : own;
  });
}

}  // namespace

EncoderNetwork::EncoderNetwork(const EncoderConfig& config, const EncoderHeads& own_heads, float init_std,
                               const nn::StoreOptions& store)
    : TextNetwork(store), heads(own_heads), body(with_bert_init(parameters, init_std), config) {
  const nn::Scope root = with_bert_init(parameters, init_std);
  if (heads.pooler) {
    pooler_.emplace(root / heads.pooler->dense, config.dim, config.dim);
  }
  if (heads.masked) {
    transform_.emplace(root / heads.masked->dense, config.dim, config.dim);
    transform_norm_.emplace(root / heads.masked->norm, config.dim,
                            nn::NormConfig{.kind = nn::NormKind::layer, .eps = heads.masked->eps});
    masked_bias_ = root.parameter(heads.masked->bias, {config.vocab_size}, nn::Init::zeros());
  }
  if (!heads.next_sentence.empty()) {
    next_sentence_.emplace(root / heads.next_sentence, config.dim, 2);
  }
  if (heads.classifier) {
    classifier_.emplace(root / heads.classifier->linear, config.dim, heads.classifier->num_labels);
  }
}

Tensor EncoderNetwork::pooled(const Tensor& states, const Texts& texts, nn::Pass& pass) const {
  check(pooler_.has_value(), "the model has no pooler");
  const Tensor first = first_states(states, texts);
  return (*pooler_)(nn::Dropout{heads.pooler->drop}(first, pass), heads.pooler->activation);
}

Tensor EncoderNetwork::masked_logits(const Tensor& states) const {
  check(transform_.has_value(), "the model does not predict masked tokens");
  const Tensor x = (*transform_norm_)((*transform_)(states, heads.masked->activation));
  return ops::cast(ops::linear(x, body.embedding(), masked_bias_), DType::f32);
}

Tensor EncoderNetwork::next_sentence_logits(const Tensor& states, const Texts& texts, nn::Pass& pass) const {
  check(next_sentence_.has_value(), "the model does not predict whether a text follows another");
  return ops::cast((*next_sentence_)(pooled(states, texts, pass)), DType::f32);
}

Tensor EncoderNetwork::class_logits(const Tensor& states, const Texts& texts, nn::Pass& pass) const {
  check(classifier_.has_value(), "the model has no classes");
  const Tensor x = heads.classifier->each_token ? states : pooled(states, texts, pass);
  return ops::cast((*classifier_)(nn::Dropout{heads.classifier->drop}(x, pass)), DType::f32);
}

TextOutputs EncoderNetwork::run(const TextInputs& inputs, nn::Pass& pass) const {
  const EncoderInput input = encoder_input(inputs);
  const Tensor states = body(input, pass);
  const Texts texts = input.texts();
  if (heads.classifier) {
    return {{"logits", class_logits(states, texts, pass)}};
  }
  if (heads.masked && !heads.next_sentence.empty()) {
    return {{"prediction_logits", masked_logits(states)},
            {"seq_relationship_logits", next_sentence_logits(states, texts, pass)}};
  }
  if (heads.masked) {
    return {{"logits", masked_logits(states)}};
  }
  TextOutputs result = {{"last_hidden_state", states}};
  if (heads.pooler) {
    result.emplace_back("pooler_output", pooled(states, texts, pass));
  }
  return result;
}

TextShape EncoderNetwork::shape() const {
  const EncoderConfig& c = body.config();
  return {.vocab_size = c.vocab_size,
          .max_positions = c.max_positions > 0 ? c.max_positions : unbounded_positions,
          .depth = c.depth,
          .dim = c.dim,
          .num_heads = c.block.attention.num_heads,
          .num_kv_heads = c.block.attention.num_heads};
}

std::int64_t EncoderNetwork::flops(std::int64_t tokens) const {
  std::int64_t total = body.flops(tokens) + (pooler_ ? pooler_->flops(1) : 0);
  if (transform_) {
    total += transform_->flops(tokens) + transform_norm_->flops(tokens) + tokens * body.embedding().numel();
  }
  total += next_sentence_ ? next_sentence_->flops(1) : 0;
  return total + (classifier_ ? classifier_->flops(heads.classifier->each_token ? tokens : 1) : 0);
}

bool EncoderNetwork::is_head(const std::string& parameter) const {
  const std::string& norm = body.config().names.norm;
  return layer_of(parameter) > depth() && (norm.empty() || !parameter.starts_with(norm + "."));
}

std::vector<NameRule> encoder_names(const TextNetwork& network, std::span<const NameRule> heads, const NameRule& body) {
  const std::vector<nn::Parameter>& parameters = network.parameters.all();
  const auto has = [&](std::string_view start) {
    return std::ranges::any_of(parameters, [&](const nn::Parameter& p) { return p.name.starts_with(start); });
  };
  std::vector<NameRule> rules;
  for (NameRule rule : heads) {
    const bool present = !rule.own.empty() && has(rule.own.substr(0, rule.own.find('@')));
    rules.push_back({present ? rule.own : "", rule.theirs});
  }
  const bool bare = !has(body.own.substr(0, body.own.find('@')));
  const auto is_pooler = [](const nn::Parameter& p) { return p.name.find("pooler.") != std::string::npos; };
  if (std::ranges::none_of(parameters, is_pooler)) {
    rules.push_back({"", "~pooler.@"});
  }
  rules.push_back({"", "~embeddings.position_ids"});  // older versions wrote 0, 1, 2 …
  rules.push_back(bare ? NameRule{"@", body.theirs} : body);
  return rules;
}

const EncoderNetwork& encoder_of(const TextModel& model) {
  const auto* network = dynamic_cast<const EncoderNetwork*>(model.net.get());
  check(network != nullptr, "{} ({}) is no encoder such as BERT", model.name, model.architecture);
  return *network;
}

}  // namespace vitrail::models
