#include "vitrail/models/recurrent/recurrent_language.h"

#include <array>

#include "vitrail/models/base/arguments.h"
#include "vitrail/models/recurrent/recurrent.h"
#include "vitrail/models/text/families.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/products/linear.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

constexpr float language_init = 0.1F;  // the bound of the embedding and the head in word_language_model

RecurrentLanguageConfig with_input(RecurrentLanguageConfig config) {
  config.network.input_size = config.embedding_size > 0 ? config.embedding_size : config.vocab_size;
  return config;
}

Tensor identity(std::int64_t size) {
  Tensor result = Tensor::zeros({size, size});
  for (std::int64_t i = 0; i < size; ++i) {
    result.data<float>()[i * size + i] = 1;
  }
  return result;
}

RecurrentLanguageConfig read_language(io::Fields& f) {
  RecurrentLanguageConfig c;
  c.vocab_size = f.get<std::int64_t>("vocab_size", {1, largest_size});
  read_cells(f, c.network);
  c.embedding_size = f.get<std::int64_t>("embedding_size", c.network.hidden_size, {0, largest_size});
  c.tied_head = f.get<bool>("tie_word_embeddings", false);
  return c;
}

}  // namespace

void RecurrentTextState::select(const std::vector<std::int64_t>& indices) {
  const Tensor chosen = Tensor::from(indices, {std::ssize(indices)});
  const auto select = [&](const Tensor& states) {
    return states.defined() ? ops::index_select(states, 1, chosen) : Tensor();
  };
  state = {select(state.h), select(state.c)};
}

std::size_t RecurrentTextState::bytes() const {
  const std::int64_t numbers = (state.h.defined() ? state.h.numel() : 0) + (state.c.defined() ? state.c.numel() : 0);
  return static_cast<std::size_t>(numbers) * sizeof(float);
}

RecurrentLanguage::RecurrentLanguage(const nn::Scope& scope, const RecurrentLanguageConfig& config)
    : config_(with_input(config)), drop_{config.network.dropout} {
  const std::int64_t width = config_.network.output_size();
  const nn::Init start = nn::Init::uniform(language_init);
  if (config_.embedding_size > 0) {
    encoder_.emplace(scope / "encoder", config_.vocab_size, config_.embedding_size, start);
  } else if (scope.options().fill != nn::Fill::meta) {
    one_hot_ = identity(config_.vocab_size);
  }
  network_.emplace(scope / "rnn", config_.network);
  if (config_.tied_head) {
    check(config_.embedding_size == width,
          "a head that is tied to the embedding wants embedding_size {} to be the size of the state, {}",
          config_.embedding_size, width);
    head_weight_ = encoder_->weight;
  } else {
    head_weight_ = (scope / "decoder").parameter("weight", {config_.vocab_size, width}, start);
  }
  head_bias_ = (scope / "decoder").parameter("bias", {config_.vocab_size}, nn::Init::zeros());
}

Tensor RecurrentLanguage::embed(const Tensor& ids, nn::Pass& pass) const {
  check_ids(ids, config_.vocab_size);
  const Tensor x = encoder_ ? (*encoder_)(ids) : ops::embedding(one_hot_, ids);
  return drop_(ops::cast(x, pass.dtype), pass);
}

Tensor RecurrentLanguage::head(const Tensor& output) const {
  return ops::cast(ops::linear(output, head_weight_, head_bias_), DType::f32);
}

Tensor RecurrentLanguage::outputs(const Tensor& ids, nn::Pass& pass, TextState* state) const {
  const Tensor x = embed(ids, pass);
  if (state == nullptr) {
    return drop_((*network_)(x, pass).output, pass);
  }
  auto& own = dynamic_cast<RecurrentTextState&>(*state);
  nn::RecurrentOutput result = (*network_)(x, own.state, {}, pass);
  own.state = result.state.detached();
  own.tokens += ids.size(1);
  return drop_(result.output, pass);
}

Tensor RecurrentLanguage::forward(const Tensor& ids, nn::Pass& pass, TextState* state) const {
  return head(outputs(ids, pass, state));
}

Tensor RecurrentLanguage::forward_last(const Tensor& ids, nn::Pass& pass, TextState& state) const {
  return head(ops::select(outputs(ids, pass, &state), 1, ids.size(1) - 1));
}

std::int64_t RecurrentLanguage::flops(std::int64_t tokens) const {
  return network_->flops(tokens) + tokens * head_weight_.numel();
}

TextShape RecurrentLanguageNetwork::shape() const {
  const RecurrentLanguageConfig& c = body.config();
  return {.vocab_size = c.vocab_size,
          .max_positions = unbounded_positions,
          .depth = c.network.num_layers,
          .dim = c.network.hidden_size};
}

std::int64_t RecurrentLanguageNetwork::layer_of(const std::string& parameter) const {
  if (is_head(parameter)) {
    return depth() + 1;
  }
  return parameter.starts_with("rnn.") ? layer_of_recurrent(parameter) : 0;
}

const RecurrentLanguage* as_recurrent(const LanguageBody& body) {
  return dynamic_cast<const RecurrentLanguage*>(&body);
}

namespace {

constexpr std::array<std::string_view, 1> recurrent_architectures = {"RecurrentForCausalLM"};
constexpr std::array<std::string_view, 1> recurrent_drop_rates = {"dropout"};

std::unique_ptr<TextNetwork> create_recurrent_language(io::Fields& config, std::string_view /*architecture*/,
                                                       const nn::StoreOptions& store) {
  return std::make_unique<RecurrentLanguageNetwork>(read_language(config), store);
}

std::vector<NameRule> recurrent_language_names(const TextNetwork& network) {
  const bool tied = dynamic_cast<const RecurrentLanguageNetwork&>(network).body.config().tied_head;
  return tied ? std::vector<NameRule>{{"", "decoder.weight"}, {"@", "@"}} : std::vector<NameRule>{};
}

}  // namespace

constinit const TextFamily recurrent_family = {.model_type = "recurrent",
                                               .architectures = recurrent_architectures,
                                               .prefix = "",
                                               .create = create_recurrent_language,
                                               .names = recurrent_language_names,
                                               .models = R"({
  "rnn": {"architecture": "rnn", "hidden_size": 256, "num_layers": 2},
  "lstm": {"architecture": "lstm", "hidden_size": 256, "num_layers": 2},
  "gru": {"architecture": "gru", "hidden_size": 256, "num_layers": 2},
  "mut1": {"architecture": "mut1", "hidden_size": 256, "num_layers": 2},
  "mut2": {"architecture": "mut2", "hidden_size": 256, "num_layers": 2},
  "mut3": {"architecture": "mut3", "hidden_size": 256, "num_layers": 2},
  "nas": {"architecture": "nas", "hidden_size": 256, "num_layers": 2}
})",
                                               .drop_rates = recurrent_drop_rates};

}  // namespace vitrail::models
