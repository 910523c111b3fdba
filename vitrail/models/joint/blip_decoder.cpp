#include "vitrail/models/joint/blip_decoder.h"

#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/tensor/error.h"

namespace vitrail::models {

BlipDecoder::BlipDecoder(const nn::Scope& scope, const BlipTextConfig& config) {
  text_.emplace(scope / "bert", config);
  const float std = config.init_std;
  const nn::Scope head =
      (scope / "cls" / "predictions").with_init([std](std::string_view, const Shape& shape, const nn::Init& own) {
        return shape.rank() >= 2 ? nn::Init::normal(std) : own;
      });
  transform_.emplace(head / "transform" / "dense", config.dim, config.dim);
  transform_norm_.emplace(head / "transform" / "LayerNorm", config.dim,
                          nn::NormConfig{.kind = nn::NormKind::layer, .eps = config.eps});
  bias_ = head.parameter("bias", {config.vocab_size}, nn::Init::zeros());
}

Tensor BlipDecoder::head(const Tensor& states) const {
  const Tensor x = (*transform_norm_)((*transform_)(states, text_->config().activation));
  return ops::cast(text_->embedding().scores(x, bias_), DType::f32);
}

Tensor BlipDecoder::logits(const Texts& texts, const BlipText::Sources& sources, nn::Pass& pass) const {
  return head((*text_)(texts, sources, true, pass));
}

Tensor BlipDecoder::forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const {
  auto* const own = dynamic_cast<CrossDecoderState*>(&state);
  check(own != nullptr, "a text about a picture goes on from its own state alone");
  const Tensor states = (*text_)({ids}, own->sources, true, pass, own);
  return head(states.narrow(1, states.size(1) - 1, 1)).reshape({ids.size(0), text_->config().vocab_size});
}

std::size_t BlipDecoder::state_bytes(std::int64_t context, std::int64_t tokens, DType dtype) const {
  const BlipTextConfig& c = text_->config();
  return static_cast<std::size_t>(2 * c.depth * c.dim * (context + tokens)) * size_of(dtype);
}

std::int64_t BlipDecoder::flops() const {
  const BlipTextConfig& c = text_->config();
  return text_->flops(1, 0) + c.dim * c.dim + c.dim * c.vocab_size;
}

}  // namespace vitrail::models
