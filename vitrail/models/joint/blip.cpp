#include "vitrail/models/joint/blip.h"

#include <utility>

#include "vitrail/models/base/adapt.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/tensor/error.h"

namespace vitrail::models {

Blip::Blip(const BlipConfig& config, const nn::StoreOptions& store) : nn::Network(store), config_(config) {
  const nn::Scope root(parameters);
  check(config_.text.context_dim == config_.vision.embed_dim, "texts look at states of {} numbers, a picture's have {}",
        config_.text.context_dim, config_.vision.embed_dim);
  vision_.emplace(root / "vision_model", config_.vision);
  if (config_.answers) {
    check(config_.text.dim == config_.vision.embed_dim,
          "the decoder looks at questions of width {} by layers for a picture's {}: the two must be equal",
          config_.text.dim, config_.vision.embed_dim);
    question_.emplace(root / "text_encoder", config_.text);
  }
  const nn::Scope decoder = root / "text_decoder";
  decoder_.emplace(decoder / "bert", config_.text);
  const float std = config_.text.init_std;
  const nn::Scope head =
      (decoder / "cls" / "predictions").with_init([std](std::string_view, const Shape& shape, const nn::Init& own) {
        return shape.rank() >= 2 ? nn::Init::normal(std) : own;
      });
  transform_.emplace(head / "transform" / "dense", config_.text.dim, config_.text.dim);
  transform_norm_.emplace(head / "transform" / "LayerNorm", config_.text.dim,
                          nn::NormConfig{.kind = nn::NormKind::layer, .eps = config_.text.eps});
  bias_ = head.parameter("bias", {config_.text.vocab_size}, nn::Init::zeros());
}

Tensor Blip::image_states(const Tensor& x, nn::Pass& pass) const { return vision_->forward_features(x, pass); }

const BlipText& Blip::question() const {
  check(question_.has_value(), "the model says what is in pictures, and reads no questions");
  return *question_;
}

Blip::Context Blip::question_states(const Texts& questions, const Tensor& image_states, nn::Pass& pass) const {
  return {question()(questions, question().remember(image_states), false, pass), questions.lengths};
}

Blip::Context Blip::context(const Tensor& x, const Texts& questions, nn::Pass& pass) const {
  check(questions.ids.defined() == config_.answers, "{}",
        config_.answers ? "the model answers questions, but none are given"
                        : "the model says what is in pictures, and reads no questions");
  const Tensor image = image_states(x, pass);
  return config_.answers ? question_states(questions, image, pass) : Context{image};
}

Tensor Blip::head(const Tensor& states) const {
  const Tensor x = (*transform_norm_)((*transform_)(states, config_.text.activation));
  return ops::cast(decoder_->embedding().scores(x, bias_), DType::f32);
}

Tensor Blip::logits(const Texts& texts, const Context& context, nn::Pass& pass) const {
  return head((*decoder_)(texts, decoder_->remember(context.states, context.lengths), true, pass));
}

std::int64_t Blip::depth() const { return config_.vision.depth + (config_.answers ? 2 : 1) * config_.text.depth; }

std::int64_t Blip::layer_of(const std::string& parameter) const {
  const std::string vision = "vision_model.";
  const std::string encoder = "text_encoder.encoder.layer.";
  const std::string decoder = "text_decoder.bert.encoder.layer.";
  if (parameter.starts_with(vision)) {
    return std::min(vision_->layer_of(parameter.substr(vision.size())), vision_->depth());
  }
  if (const auto block = index_after(parameter, encoder)) {
    return config_.vision.depth + *block + 1;
  }
  if (const auto block = index_after(parameter, decoder)) {
    return depth() - config_.text.depth + *block + 1;
  }
  return is_head(parameter) ? depth() + 1 : 0;
}

bool Blip::is_head(const std::string& parameter) const { return parameter.starts_with("text_decoder.cls."); }

std::unique_ptr<TextState> BlipWriting::begin(std::optional<DType> cache) const {
  return std::make_unique<CrossDecoderState>(
      model_.decoder().remember(ops::cast(context_.states, dtype_), context_.lengths), cache);
}

Tensor BlipWriting::forward(const Tensor& ids, nn::Pass& pass, TextState* state) const {
  check(state == nullptr, "a text about a picture goes on by forward_last()");
  return model_.logits({ids}, context_, pass);
}

Tensor BlipWriting::forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const {
  auto* const own = dynamic_cast<CrossDecoderState*>(&state);
  check(own != nullptr, "a text about a picture goes on from its own state alone");
  const Tensor states = model_.decoder()({ids}, own->sources, true, pass, own);
  return model_.head(states.narrow(1, states.size(1) - 1, 1)).reshape({ids.size(0), vocab_size()});
}

std::size_t BlipWriting::state_bytes(std::int64_t tokens, DType dtype) const {
  const BlipTextConfig& c = model_.config().text;
  return static_cast<std::size_t>(2 * c.depth * c.dim * (context_.states.size(1) + tokens)) * size_of(dtype);
}

}  // namespace vitrail::models
