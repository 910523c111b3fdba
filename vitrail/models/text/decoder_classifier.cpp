#include "vitrail/models/text/decoder_classifier.h"

#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::models {

DecoderClassifier::DecoderClassifier(const DecoderConfig& config, std::int64_t num_labels,
                                     const nn::StoreOptions& store)
    : TextNetwork(store),
      body(nn::Scope(parameters), config),
      score(nn::Scope(parameters).with_init([std = config.init_std](std::string_view, const Shape&, const nn::Init&) {
        return nn::Init::normal(std);
      }) / "score",
            config.dim, num_labels, false) {
  check(config.tied_head, "a classifier has no head that predicts tokens: the decoder's must be tied");
}

Tensor DecoderClassifier::classify(const EncoderInput& input, nn::Pass& pass) const {
  check(!input.types.defined() && input.ids.defined(), "a decoder takes token ids without types");
  const Tensor states = body.forward_features(input.texts(), pass);
  return ops::cast(score(last_states(states, input.texts())), DType::f32);
}

TextOutputs DecoderClassifier::run(const TextInputs& inputs, nn::Pass& pass) const {
  return {{"logits", classify(encoder_input(inputs), pass)}};
}

std::int64_t DecoderClassifier::flops(std::int64_t tokens) const {
  return body.flops(tokens) - tokens * body.config().dim * body.config().vocab_size + score.flops(1);
}

}  // namespace vitrail::models
