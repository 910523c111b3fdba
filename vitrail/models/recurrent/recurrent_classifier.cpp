#include "vitrail/models/recurrent/recurrent_classifier.h"

#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

// The states of the last layer behind the text's end: [B, D · P].
Tensor end_states(const Tensor& h, const nn::RecurrentConfig& network) {
  const std::int64_t first = (network.num_layers - 1) * network.directions();
  return network.bidirectional ? ops::concat({ops::select(h, 0, first), ops::select(h, 0, first + 1)}, 1)
                               : ops::select(h, 0, first);
}

}  // namespace

RecurrentClassifier::RecurrentClassifier(const RecurrentLanguageConfig& made_by, std::int64_t num_labels,
                                         bool each_token, const nn::StoreOptions& store)
    : TextNetwork(store),
      config(with_input(made_by)),
      of_tokens(each_token),
      vectors(nn::Scope(parameters) / "encoder", config),
      network(nn::Scope(parameters) / "rnn", config.network),
      head(nn::Scope(parameters) / "classifier", config.network.directions() * config.network.output_size(),
           num_labels) {}

Tensor RecurrentClassifier::classify(const EncoderInput& input, nn::Pass& pass) const {
  check(!input.types.defined() && input.ids.defined(), "a recurrent network takes token ids without types");
  const Texts texts = input.texts();
  const nn::RecurrentOutput result =
      network(vectors(ids_side_by_side(texts), pass), {}, lengths_side_by_side(texts), pass);
  const Tensor states =
      of_tokens ? in_own_form(result.output, texts) : ops::cast(end_states(result.state.h, network.config), pass.dtype);
  return ops::cast(head(nn::Dropout{network.config.dropout}(states, pass)), DType::f32);
}

TextOutputs RecurrentClassifier::run(const TextInputs& inputs, nn::Pass& pass) const {
  return {{"logits", classify(encoder_input(inputs), pass)}};
}

std::int64_t RecurrentClassifier::flops(std::int64_t tokens) const {
  return network.flops(tokens) + head.flops(of_tokens ? tokens : 1);
}

std::int64_t RecurrentClassifier::layer_of(const std::string& parameter) const {
  if (is_head(parameter)) {
    return depth() + 1;
  }
  return parameter.starts_with("rnn.") ? layer_of_recurrent(parameter) : 0;
}

}  // namespace vitrail::models
