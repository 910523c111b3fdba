// Texts in one row: every model gives each what it gets alone, and the loss is the sum of their own losses.
#include <gtest/gtest.h>

#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/models/text/encoder_network.h"
#include "vitrail/models/text/sentence_model.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/models/text/translator.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::expect_close;
using test::golden_path;

// Sentences of unequal lengths.
std::vector<std::vector<std::int64_t>> sentences(std::int64_t vocab_size) {
  std::vector<std::vector<std::int64_t>> result;
  for (const std::int64_t length : {5, 1, 9, 2, 7}) {
    std::vector<std::int64_t>& ids = result.emplace_back();
    for (std::int64_t i = 0; i < length; ++i) {
      ids.push_back((7 + 13 * i + 5 * length) % vocab_size);
    }
  }
  return result;
}

Texts row_of(const std::vector<std::vector<std::int64_t>>& texts) {
  TextRow row;
  for (const std::vector<std::int64_t>& text : texts) {
    row.add(text);
  }
  return row.texts();
}

Texts alone(const std::vector<std::int64_t>& text) { return {Tensor::from(text, {1, std::ssize(text)})}; }

// Rows [N, V] of logits, of which each predicts the next token of its text (the first, for the last one).
Tensor loss_of(const Tensor& logits, const std::vector<std::vector<std::int64_t>>& texts) {
  std::vector<std::int64_t> targets;
  for (const std::vector<std::int64_t>& text : texts) {
    targets.insert(targets.end(), text.begin() + 1, text.end());
    targets.push_back(text.front());
  }
  const auto count = static_cast<float>(targets.size());
  return ops::cross_entropy(ops::reshape(logits, {-1, logits.size(-1)}), Tensor::from(targets, {std::ssize(targets)})) *
         count;
}

// The gradients of all parameters of a model.
std::vector<Tensor> gradients(const TextModel& model, const std::function<Tensor()>& loss) {
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    autograd::zero_grad(parameter.value);
  }
  autograd::Tape tape;
  tape.backward(loss());
  std::vector<Tensor> result;
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    const Tensor gradient = autograd::grad(parameter.value);
    result.push_back(gradient.defined() ? gradient.clone() : Tensor::zeros(parameter.value.shape()));
  }
  return result;
}

class PackedLanguage : public testing::TestWithParam<const char*> {};

TEST_P(PackedLanguage, GivesTextsInARowWhatTheyGetAlone) {
  const TextModel model = load_text_model(golden_path("models/text") / GetParam());
  const LanguageBody& body = language_of(model);
  const auto texts = sentences(40);
  nn::Pass pass;
  const Tensor logits = body.forward_texts(row_of(texts), pass);
  std::int64_t begin = 0;
  for (const std::vector<std::int64_t>& text : texts) {
    const auto length = std::ssize(text);
    expect_close(logits.narrow(1, begin, length), body.forward(alone(text).ids, pass), 2e-6);
    begin += length;
  }
}

TEST_P(PackedLanguage, HasTheSumOfTheirLossesAndGradients) {
  const TextModel model = load_text_model(golden_path("models/text") / GetParam());
  const LanguageBody& body = language_of(model);
  const auto texts = sentences(40);
  nn::Pass pass;
  Tensor packed;
  const std::vector<Tensor> of_row = gradients(model, [&] {
    packed = loss_of(body.forward_texts(row_of(texts), pass), texts);
    return packed;
  });
  Tensor sum;
  const std::vector<Tensor> of_each = gradients(model, [&] {
    for (const std::vector<std::int64_t>& text : texts) {
      const Tensor own = loss_of(body.forward(alone(text).ids, pass), {text});
      sum = sum.defined() ? sum + own : own;
    }
    return sum;
  });
  EXPECT_NEAR(packed.item(), sum.item(), 2e-6 * sum.item());
  for (std::size_t i = 0; i < of_row.size(); ++i) {
    test::expect_gradient(of_row[i], of_each[i], 1e-5, model.net->parameters.all()[i].name);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PackedLanguage,
                         testing::Values("bloom", "bloom_unusual", "gpt2", "gpt2_unusual", "llama", "llama3",
                                         "llama_linear", "mistral", "qwen2"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST(PackedLanguage, IsOfRecurrentNetworksToo) {
  const TextModel model =
      create_text_model("gru", {.model_kwargs = R"({"hidden_size": 12, "num_layers": 2, "vocab_size": 40})"});
  const LanguageBody& body = language_of(model);
  const auto texts = sentences(40);
  nn::Pass pass;
  const Tensor logits = body.forward_texts(row_of(texts), pass);
  std::int64_t begin = 0;
  for (const std::vector<std::int64_t>& text : texts) {
    expect_close(logits.narrow(1, begin, std::ssize(text)), body.forward(alone(text).ids, pass), 2e-6);
    begin += std::ssize(text);
  }
}

// Mistral's windows are shorter than the longest text, so that a mask is needed, which texts in a row have not.
TEST(PackedLanguage, HasSlidingWindows) {
  const TextModel model =
      load_text_model(golden_path("models/text/mistral"), {.model_kwargs = R"({"sliding_window": 3})"});
  const auto texts = sentences(40);
  nn::Pass pass;
  const Tensor logits = language_of(model).forward_texts(row_of(texts), pass);
  expect_close(logits.narrow(1, 6, 9), language_of(model).forward(alone(texts[2]).ids, pass), 2e-6);
}

class PackedEncoder : public testing::TestWithParam<const char*> {};

TEST_P(PackedEncoder, GivesTextsInARowWhatTheyGetAlone) {
  const TextModel model = load_text_model(golden_path("models/text") / GetParam());
  const auto texts = sentences(20);
  const Texts row = row_of(texts);
  nn::Pass pass;
  const TextClassifier* const classifier = model.net->classifier();
  const auto run = [&](const EncoderInput& input) {
    return classifier != nullptr ? classifier->classify(input, pass) : encoder_of(model).body(input, pass);
  };
  const Tensor packed = run({.ids = row.ids, .offsets = row.offsets});
  const bool of_texts = packed.rank() == 2;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const auto length = std::ssize(texts[i]);
    const Tensor own = of_texts ? packed.narrow(0, at, 1) : packed.narrow(1, begin, length);
    expect_close(own, run({.ids = alone(texts[i]).ids}), 2e-6);
    begin += length;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PackedEncoder,
                         testing::Values("bert_classes", "bert_masked", "bert_tokens", "distilbert_bare",
                                         "gpt2_classes", "roberta_classes"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST(PackedSentences, ArePooledAsTextsWithPadding) {
  const auto texts = sentences(20);
  const Texts row = row_of(texts);
  const Texts padded{ids_side_by_side(row), lengths_side_by_side(row)};
  const Tensor states = test::random_tensor({1, row.ids.size(1), 6}, 3);
  const Tensor side_by_side = states_side_by_side(states, row);
  expect_close(in_own_form(side_by_side, row), states, 0);
  for (const char* name : {"cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"}) {
    const SentencePooling pooling = sentence_pooling_named(name);
    const Tensor pooled = pool_tokens(states, row, pooling);
    expect_close(pooled, pool_tokens(side_by_side, padded, pooling), 1e-6, name);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto length = std::ssize(texts[i]);
      expect_close(pooled.narrow(0, static_cast<std::int64_t>(i), 1),
                   pool_tokens(states.narrow(1, begin, length), {}, pooling), 1e-6, name);
      begin += length;
    }
  }
}

TEST(PackedTranslator, ReadsSourcesInARow) {
  const TextModel model = create_text_model(
      "transformer-small",
      {.model_kwargs = R"({"d_model": 16, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "vocab_size": 40,
                           "pad_token_id": 39, "decoder_start_token_id": 39})"});
  const Translator& translator = translator_of(model);
  const auto texts = sentences(38);
  nn::Pass pass;
  const std::unique_ptr<TextState> state = translator.begin(row_of(texts), pass);
  const auto count = std::ssize(texts);
  const Tensor start = Tensor::full({count, 1}, 39, DType::i64);
  const Tensor logits = translator.forward_last(start, pass, *state);
  state->select({0, 0, 2, 2});
  const Tensor next = Tensor::from<std::int64_t>({3, 4, 3, 4}, {4, 1});
  const Tensor second = translator.forward_last(next, pass, *state);
  for (std::int64_t i = 0; i < count; ++i) {
    const Texts source = alone(texts[static_cast<std::size_t>(i)]);
    expect_close(logits.narrow(0, i, 1), translator.forward(source, {start.narrow(0, 0, 1)}, pass).select(1, 0), 5e-6);
    if (i == 2) {
      const Tensor both = translator.forward(source, {Tensor::from<std::int64_t>({39, 4}, {1, 2})}, pass);
      expect_close(second.narrow(0, 3, 1), both.select(1, 1), 5e-6);
    }
  }
}

}  // namespace
}  // namespace vitrail::models
