#include "vitrail/models/recurrent/recurrent_translator.h"

#include <algorithm>
#include <utility>

#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

// Each text from its end.
Tensor reversed(const Tensor& ids, const Tensor& lengths) {
  const Tensor result = ids.clone();
  const std::int64_t width = ids.size(1);
  for (std::int64_t s = 0; s < ids.size(0); ++s) {
    std::int64_t* text = result.data<std::int64_t>() + s * width;
    std::reverse(text, text + (lengths.defined() ? lengths.data<std::int64_t>()[s] : width));
  }
  return result;
}

}  // namespace

RecurrentTranslator::RecurrentTranslator(const nn::Scope& scope, const RecurrentTranslatorConfig& config)
    : config_(config) {
  check(!config_.shared_embedding || config_.source_vocab_size == config_.target_vocab_size,
        "an embedding cannot be shared by vocabularies of {} and {} tokens", config_.source_vocab_size,
        config_.target_vocab_size);
  nn::RecurrentConfig reader = config_.network;
  reader.input_size = config_.embedding_size;
  const std::int64_t width = reader.output_size();
  const std::int64_t read = reader.directions() * width;
  vectors_.emplace(scope / "encoder" / "embedding", RecurrentLanguageConfig{.network = reader,
                                                                            .vocab_size = config_.source_vocab_size,
                                                                            .embedding_size = config_.embedding_size});
  encoder_.emplace(scope / "encoder" / "rnn", reader);
  for (std::int64_t layer = 0; reader.bidirectional && layer < reader.num_layers; ++layer) {
    bridge_h_.emplace_back(scope / "bridge" / "h" / layer, read, width);
    if (reader.has_memory()) {
      bridge_c_.emplace_back(scope / "bridge" / "c" / layer, 2 * reader.hidden_size, reader.hidden_size);
    }
  }
  nn::RecurrentConfig writer = config_.network;
  writer.bidirectional = false;
  const RecurrentDecoderConfig decoder{.network = writer,
                                       .vocab_size = config_.target_vocab_size,
                                       .embedding_size = config_.embedding_size,
                                       .tied_head = config_.tied_head,
                                       .memory_size = read,
                                       .attention_size = config_.attention_size};
  decoder_.emplace(scope / "decoder", decoder, config_.shared_embedding ? vectors_ : std::nullopt);
}

nn::RecurrentState RecurrentTranslator::bridged(const nn::RecurrentState& state) const {
  if (bridge_h_.empty()) {
    return state;
  }
  const auto of_both = [](const Tensor& states, std::size_t layer) {
    const auto forward = static_cast<std::int64_t>(2 * layer);
    return ops::concat({ops::select(states, 0, forward), ops::select(states, 0, forward + 1)}, 1);
  };
  std::vector<Tensor> h;
  std::vector<Tensor> c;
  for (std::size_t layer = 0; layer < bridge_h_.size(); ++layer) {
    h.push_back(ops::tanh(bridge_h_[layer](of_both(state.h, layer))));
    if (!bridge_c_.empty()) {
      c.push_back(bridge_c_[layer](of_both(state.c, layer)));
    }
  }
  return {ops::stack(h, 0), c.empty() ? Tensor() : ops::stack(c, 0)};
}

RecurrentDecoder::Start RecurrentTranslator::read(const Texts& sources, nn::Pass& pass) const {
  check_token_ids(sources.ids, config_.source_vocab_size);
  const Tensor lengths = lengths_side_by_side(sources);
  Tensor ids = ids_side_by_side(sources);
  if (config_.reverse_source) {
    ids = reversed(ids, lengths);
  }
  const nn::RecurrentOutput result = (*encoder_)((*vectors_)(ids, pass), {}, lengths, pass);
  return {bridged(result.state), decoder_->remember(result.output, lengths)};
}

std::int64_t RecurrentTranslator::flops(std::int64_t source, std::int64_t target) const {
  std::int64_t total = encoder_->flops(source) + decoder_->flops(target, source);
  if (source == 0) {
    return total;
  }
  for (const std::vector<nn::Linear>* bridge : {&bridge_h_, &bridge_c_}) {
    for (const nn::Linear& layer : *bridge) {
      total += layer.flops(1);
    }
  }
  return total;
}

TextShape RecurrentTranslatorNetwork::shape() const {
  const RecurrentTranslatorConfig& c = body.config();
  const std::int64_t heads = body.has_attention() ? 1 : 0;
  return {.vocab_size = c.target_vocab_size,
          .max_positions = unbounded_positions,
          .depth = 2 * c.network.num_layers,
          .dim = c.network.hidden_size,
          .num_heads = heads,
          .num_kv_heads = heads};
}

std::int64_t RecurrentTranslatorNetwork::layer_of(const std::string& parameter) const {
  const std::int64_t layers = body.config().network.num_layers;
  if (parameter.starts_with("encoder.embedding.") || parameter.starts_with("decoder.embedding.")) {
    return 0;
  }
  if (parameter.starts_with("encoder.rnn.")) {
    return layer_of_recurrent(parameter);
  }
  if (parameter.starts_with("decoder.rnn.")) {
    return layers + layer_of_recurrent(parameter);
  }
  return parameter.starts_with("decoder.readout.") || is_head(parameter) ? 2 * layers + 1 : layers + 1;
}

}  // namespace vitrail::models
