#include "vitrail/models/recurrent/recurrent_decoder.h"

#include <utility>
#include <vector>

#include "vitrail/models/text/translator.h"
#include "vitrail/nn/drop.h"
#include "vitrail/ops/math/activation.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

// What a RecurrentDecoder keeps of texts: its state, and of each start what it looks at.
struct RecurrentWritingState final : TextState {
  std::int64_t length() const override { return tokens; }
  void select(const std::vector<std::int64_t>& indices) override;
  std::size_t bytes() const override;

  RecurrentDecoder::Start now;
  std::int64_t translations = 1;  // of each start
  std::int64_t tokens = 0;
};

Tensor indices_of(const std::vector<std::int64_t>& numbers) { return Tensor::from(numbers, {std::ssize(numbers)}); }

Tensor selected(const Tensor& x, int dim, const Tensor& indices) {
  return x.defined() ? ops::index_select(x, dim, indices) : x;
}

nn::RecurrentState selected(const nn::RecurrentState& state, const Tensor& indices) {
  return {selected(state.h, 1, indices), selected(state.c, 1, indices)};
}

// The state of the first `count` texts.
nn::RecurrentState first_of(const nn::RecurrentState& state, std::int64_t count) {
  const auto first = [&](const Tensor& x) {
    return !x.defined() || x.size(1) == count ? x : ops::narrow(x, 1, 0, count);
  };
  return {first(state.h), first(state.c)};
}

void RecurrentWritingState::select(const std::vector<std::int64_t>& indices) {
  const SourcesLeft left = sources_left(indices, translations);
  now.state = selected(now.state, indices_of(indices));
  translations = left.each;
  const Tensor sources = indices_of(left.sources);
  nn::AdditiveAttention::Memory& memory = now.memory;
  if (memory.keys.defined() && memory.keys.size(0) != sources.size(0)) {
    memory = {selected(memory.keys, 0, sources), selected(memory.values, 0, sources),
              selected(memory.lengths, 0, sources)};
  }
}

std::size_t RecurrentWritingState::bytes() const {
  std::size_t total = 0;
  for (const Tensor* held : {&now.state.h, &now.state.c, &now.memory.keys, &now.memory.values}) {
    total += held->defined() ? held->bytes() : 0;
  }
  return total;
}

}  // namespace

RecurrentDecoder::RecurrentDecoder(const nn::Scope& scope, const RecurrentDecoderConfig& config,
                                   const std::optional<TokenVectors>& shared)
    : config_(config), vectors_(shared) {
  const std::int64_t width = config_.network.output_size();
  const bool attends = config_.attention_size > 0;
  const std::int64_t found = attends ? config_.memory_size : 0;
  config_.network.input_size = config_.embedding_size + found;
  if (!vectors_) {
    vectors_.emplace(scope / "embedding", RecurrentLanguageConfig{.network = config_.network,
                                                                  .vocab_size = config_.vocab_size,
                                                                  .embedding_size = config_.embedding_size});
  }
  if (attends) {
    attention_.emplace(scope / "attention", width, found, config_.attention_size);
  }
  network_.emplace(scope / "rnn", config_.network);
  std::int64_t out = width;
  if (attends) {
    out = config_.embedding_size;
    readout_.emplace(scope / "readout", width + found + config_.embedding_size, out);
  }
  const nn::Scope head = scope / "out";
  if (config_.tied_head) {
    check(config_.embedding_size == out,
          "a head that is tied to the embedding wants embedding_size {} to be the size of the state, {}",
          config_.embedding_size, out);
    head_weight_ = vectors_->table;
  } else {
    head_weight_ = head.parameter("weight", {config_.vocab_size, out}, nn::Init::uniform(language_init));
  }
  head_bias_ = head.parameter("bias", {config_.vocab_size}, nn::Init::zeros());
}

nn::AdditiveAttention::Memory RecurrentDecoder::remember(const Tensor& states, const Tensor& lengths) const {
  return attention_ ? attention_->remember(states, lengths) : nn::AdditiveAttention::Memory();
}

// vectors [B, N, E] of texts of which `each` follow what one start is for.
RecurrentDecoder::Written RecurrentDecoder::write(const Tensor& vectors, const Tensor& lengths, Start from,
                                                  std::int64_t each, nn::Pass& pass) const {
  const auto steps = ops::steps_of(vectors.size(0), vectors.size(1), lengths);
  if (!attention_) {
    nn::RecurrentOutput result = (*network_)(vectors, from.state, lengths, pass);
    return {ops::pack(result.output, steps), result.state};
  }
  if (!steps->equal()) {  // sorted as the steps are, so that texts which have ended are the last ones
    const Tensor order = steps->sorting();
    from = {selected(from.state, order),
            {selected(from.memory.keys, 0, order), selected(from.memory.values, 0, order),
             selected(from.memory.lengths, 0, order)}};
  }
  const Tensor embedded = ops::pack(vectors, steps);
  nn::RecurrentState state = from.state;
  std::vector<Tensor> states;
  std::vector<Tensor> contexts;
  std::vector<Tensor> probabilities;
  for (std::int64_t i = 0; i < steps->count(); ++i) {
    const std::int64_t count = steps->size(i);
    state = first_of(state, count);
    const Tensor last = ops::select(state.h, 0, state.h.size(0) - 1);
    const ops::Attended found = (*attention_)(last, from.memory, pass, each);
    const Tensor context = ops::cast(found.context, pass.dtype);
    const Tensor x = ops::concat({ops::narrow(embedded, 0, steps->offset(i), count), context}, 1);
    nn::RecurrentOutput step = (*network_)(ops::unsqueeze(x, 1), state, {}, pass);
    state = std::move(step.state);
    states.push_back(ops::squeeze(step.output, 1));
    contexts.push_back(context);
    if (pass.wants_attention() && steps->equal()) {
      probabilities.push_back(found.probabilities);
    }
  }
  const Tensor all = ops::concat({ops::concat(states, 0), ops::concat(contexts, 0), embedded}, 1);
  return {(*readout_)(all, ops::Activation::tanh), state,
          probabilities.empty() ? Tensor() : ops::stack(probabilities, 1)};
}

Tensor RecurrentDecoder::head(const Tensor& out, nn::Pass& pass) const {
  return ops::linear(nn::Dropout{config_.network.dropout}(out, pass), head_weight_, head_bias_);
}

Tensor RecurrentDecoder::logits(const Texts& texts, const Start& from, nn::Pass& pass) const {
  check_token_ids(texts.ids, config_.vocab_size);
  const Tensor vectors = (*vectors_)(ids_side_by_side(texts), pass);
  const bool in_a_row = texts.offsets.defined();
  const Tensor lengths = in_a_row ? lengths_side_by_side(texts) : Tensor();
  const Written written = write(vectors, lengths, from, 1, pass);
  if (written.probabilities.defined()) {
    pass.recorder->attention("decoder.attention", ops::unsqueeze(written.probabilities, 1));
  }
  Tensor out = ops::unpack(written.out, ops::steps_of(vectors.size(0), vectors.size(1), lengths));
  if (in_a_row) {
    out = ops::index_select(ops::reshape(out, {-1, out.size(2)}), 0, places_side_by_side(texts));
    out = ops::unsqueeze(out, 0);
  }
  return head(out, pass);
}

std::unique_ptr<TextState> RecurrentDecoder::begin(Start from) const {
  auto state = std::make_unique<RecurrentWritingState>();
  state->now = std::move(from);
  return state;
}

Tensor RecurrentDecoder::forward_last(const Tensor& texts, nn::Pass& pass, TextState& state) const {
  auto* const own = dynamic_cast<RecurrentWritingState*>(&state);
  check(own != nullptr, "a recurrent decoder goes on from its own state alone");
  check_token_ids(texts, config_.vocab_size);
  Written written = write((*vectors_)(texts, pass), {}, own->now, own->translations, pass);
  own->now.state = std::move(written.state);
  own->tokens += texts.size(1);
  const Tensor last = ops::narrow(written.out, 0, written.out.size(0) - texts.size(0), texts.size(0));
  return ops::cast(head(last, pass), DType::f32);
}

std::size_t RecurrentDecoder::state_bytes(std::int64_t memory, DType dtype) const {
  const nn::RecurrentConfig& c = config_.network;
  const std::int64_t looked_at = has_attention() ? memory * (config_.memory_size + config_.attention_size) : 0;
  return static_cast<std::size_t>(c.num_layers * (c.output_size() + c.hidden_size)) * sizeof(float) +
         static_cast<std::size_t>(looked_at) * size_of(dtype);
}

std::int64_t RecurrentDecoder::flops(std::int64_t text, std::int64_t memory) const {
  const std::int64_t attended = attention_ ? attention_->flops(memory, text) + readout_->flops(text) : 0;
  return network_->flops(text) + text * head_weight_.numel() + attended;
}

}  // namespace vitrail::models
