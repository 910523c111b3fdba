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
  check(config_.text.dim == config_.vision.embed_dim,
        "the decoder looks at questions of width {} by layers for a picture's {}: the two must be equal",
        config_.text.dim, config_.vision.embed_dim);
  vision_.emplace(root / "vision_model", config_.vision);
  question_.emplace(root / "text_encoder", config_.text);
  decoder_.emplace(root / "text_decoder", config_.text);
}

Tensor Blip::image_states(const Tensor& x, nn::Pass& pass) const { return vision_->forward_features(x, pass); }

Blip::Context Blip::question_states(const Texts& questions, const Tensor& image_states, nn::Pass& pass,
                                    const Tensor& rows) const {
  return {question()(questions, question().remember(image_states, {}, rows), false, pass), questions.lengths};
}

Blip::Context Blip::context(const Tensor& x, const Texts& questions, nn::Pass& pass) const {
  check(questions.ids.defined(), "the model answers questions, but none are given");
  return question_states(questions, image_states(x, pass), pass);
}

Tensor Blip::logits(const Texts& texts, const Context& context, nn::Pass& pass) const {
  return decoder_->logits(texts, decoder_->text().remember(context.states, context.lengths), pass);
}

std::int64_t Blip::depth() const { return config_.vision.depth + 2 * config_.text.depth; }

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
      model_.decoder().text().remember(ops::cast(context_.states, dtype_), context_.lengths), cache);
}

Tensor BlipWriting::forward(const Tensor& ids, nn::Pass& pass, TextState* state) const {
  check(state == nullptr, "a text about a picture goes on by forward_last()");
  return model_.logits({ids}, context_, pass);
}

Tensor BlipWriting::forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const {
  return model_.decoder().forward_last(ids, pass, state);
}

std::size_t BlipWriting::state_bytes(std::int64_t tokens, DType dtype) const {
  return model_.decoder().state_bytes(context_.states.size(1), tokens, dtype);
}

}  // namespace vitrail::models
