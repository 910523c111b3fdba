#include "vitrail/models/text/translator.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/json.h"
#include "vitrail/models/text/encoder_decoder.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::expect_close;
using test::golden_path;

Texts sources_of(const io::Safetensors& golden) { return {golden.get("input_ids"), golden.get("lengths")}; }

Tensor loss_of(const Translator& model, const io::Safetensors& golden, nn::Pass& pass) {
  const Tensor logits = model.forward(sources_of(golden), {golden.get("decoder_input_ids")}, pass);
  return ops::cross_entropy(ops::reshape(logits, {-1, logits.size(2)}), golden.get("labels").reshape({-1}));
}

// A folder of the reference, and what it computes of two sources of unequal length (tools/golden/translation.py), for
// all kinds of networks that translate.
class Translating : public testing::TestWithParam<const char*> {
 protected:
  fs::path folder() const { return golden_path("models/text") / GetParam(); }
  io::Safetensors expected() const { return io::Safetensors::open(folder() / "expected.safetensors"); }
};

TEST_P(Translating, GivesTheReferencesLogits) {
  const TextModel model = load_text_model(folder());
  const Translator& body = translator_of(model);
  const io::Safetensors golden = expected();
  nn::Pass pass;
  if (const auto* transformer = dynamic_cast<const EncoderDecoder*>(&body)) {
    const Tensor memory = transformer->encode(sources_of(golden), pass);
    const auto first = [](const Tensor& x) { return x.narrow(0, 0, 1).contiguous(); };
    const auto second = [](const Tensor& x, std::int64_t n) { return x.narrow(0, 1, 1).narrow(1, 0, n).contiguous(); };
    expect_close(first(memory), first(golden.get("memory")), 1e-5);
    expect_close(second(memory, 4), second(golden.get("memory"), 4), 1e-5);
  }
  const Tensor logits = body.forward(sources_of(golden), {golden.get("decoder_input_ids")}, pass);
  expect_close(logits, golden.get("logits"), 1e-5);
  nn::Pass half{.dtype = DType::bf16};
  expect_close(body.forward(sources_of(golden), {golden.get("decoder_input_ids")}, half), golden.get("logits"), 4e-2);
}

TEST_P(Translating, HasTheReferencesLossAndGradients) {
  const TextModel model = load_text_model(folder());
  const io::Safetensors golden = expected();
  nn::Pass pass;
  autograd::Tape tape;
  const Tensor loss = loss_of(translator_of(model), golden, pass);
  EXPECT_NEAR(loss.item(), golden.get("loss").item(), 1e-5);
  tape.backward(loss);
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    if (!parameter.buffer) {
      test::expect_gradient(autograd::grad(parameter.value), golden.get("grad." + parameter.name), 1e-4,
                            parameter.name);
    }
  }
}

// The texts of a batch one after the other, without what pads them.
Texts in_a_row(const Tensor& ids, const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> row;
  std::vector<std::int64_t> offsets = {0};
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    const auto text = ids.span<std::int64_t>().subspan(s * static_cast<std::size_t>(ids.size(1)));
    row.insert(row.end(), text.begin(), text.begin() + lengths[s]);
    offsets.push_back(std::ssize(row));
  }
  return {Tensor::from(row, {1, std::ssize(row)}), {}, Tensor::from(offsets, {std::ssize(offsets)})};
}

TEST_P(Translating, HasTheSameLossAndGradientsOfTextsInARow) {
  const TextModel model = load_text_model(folder());
  const io::Safetensors golden = expected();
  nn::Pass pass;
  autograd::Tape tape;
  const Tensor logits = translator_of(model).forward(in_a_row(golden.get("input_ids"), {7, 4}),
                                                     in_a_row(golden.get("decoder_input_ids"), {4, 6}), pass);
  const Tensor labels = in_a_row(golden.get("labels"), {4, 6}).ids.reshape({-1});
  const Tensor loss = ops::cross_entropy(ops::reshape(logits, {-1, logits.size(2)}), labels);
  EXPECT_NEAR(loss.item(), golden.get("loss").item(), 1e-5);
  tape.backward(loss);
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    if (!parameter.buffer) {
      test::expect_gradient(autograd::grad(parameter.value), golden.get("grad." + parameter.name), 1e-4,
                            parameter.name);
    }
  }
}

TEST_P(Translating, IsIndifferentToWhatPadsASource) {
  const TextModel model = load_text_model(folder());
  const Translator& body = translator_of(model);
  const io::Safetensors golden = expected();
  nn::Pass pass;
  const Tensor sources = golden.get("input_ids").clone();
  const Tensor before = body.forward({sources, golden.get("lengths")}, {golden.get("decoder_input_ids")}, pass);
  for (std::int64_t n = 4; n < sources.size(1); ++n) {
    sources.data<std::int64_t>()[sources.size(1) + n] = n;
  }
  expect_close(body.forward({sources, golden.get("lengths")}, {golden.get("decoder_input_ids")}, pass), before, 0);
}

TEST_P(Translating, GoesOnFromItsStateAsFromTheWholeTarget) {
  const TextModel model = load_text_model(folder());
  const Translator& body = translator_of(model);
  const io::Safetensors golden = expected();
  const Tensor targets = golden.get("decoder_input_ids");
  nn::Pass pass;
  const Translation translation(body, sources_of(golden), DType::f32);
  const std::unique_ptr<TextState> state = translation.begin();
  for (std::int64_t n = 0; n < targets.size(1); ++n) {
    expect_close(translation.forward_last(targets.narrow(1, n, 1), pass, *state),
                 golden.get("logits").select(1, n).contiguous(), 1e-5);
    EXPECT_EQ(state->length(), n + 1);
  }
}

TEST_P(Translating, KeepsSeveralTranslationsOfASource) {
  const TextModel model = load_text_model(folder());
  const Translator& body = translator_of(model);
  const io::Safetensors golden = expected();
  nn::Pass pass;
  const auto logits_of = [&](const std::vector<std::vector<std::int64_t>>& targets, const Tensor& sources,
                             const Tensor& lengths) {
    std::vector<std::int64_t> all;
    for (const auto& target : targets) {
      all.insert(all.end(), target.begin(), target.end());
    }
    const std::int64_t count = std::ssize(targets);
    const Tensor logits = body.forward({sources, lengths}, {Tensor::from(all, {count, std::ssize(all) / count})}, pass);
    return logits.select(1, logits.size(1) - 1).contiguous();
  };
  const Tensor sources = golden.get("input_ids");
  const Tensor lengths = golden.get("lengths");
  const std::unique_ptr<TextState> state = body.begin({sources, lengths}, pass);
  body.forward_last(Tensor::from<std::int64_t>({5, 6}, {2, 1}), pass, *state);
  state->select({0, 0, 0, 1, 1, 1});
  const Tensor second = body.forward_last(Tensor::from<std::int64_t>({7, 8, 9, 10, 11, 12}, {6, 1}), pass, *state);
  const auto repeated = [](const Tensor& x, std::initializer_list<std::int64_t> rows) {
    return ops::index_select(x, 0, Tensor::from(std::vector(rows), {std::ssize(rows)}));
  };
  expect_close(second,
               logits_of({{5, 7}, {5, 8}, {5, 9}, {6, 10}, {6, 11}, {6, 12}}, repeated(sources, {0, 0, 0, 1, 1, 1}),
                         repeated(lengths, {0, 0, 0, 1, 1, 1})),
               1e-5);
  state->select({4, 4, 3});  // the first source has ended
  const Tensor third = body.forward_last(Tensor::from<std::int64_t>({1, 2, 3}, {3, 1}), pass, *state);
  expect_close(
      third,
      logits_of({{6, 11, 1}, {6, 11, 2}, {6, 10, 3}}, repeated(sources, {1, 1, 1}), repeated(lengths, {1, 1, 1})),
      1e-5);
  EXPECT_GT(state->bytes(), 0U);
}

TEST_P(Translating, IsSavedToTheSameBitsAndFields) {
  const test::TemporaryFolder temporary;
  write_text_model(load_text_model(folder()), temporary.path());
  const io::Safetensors before = io::Safetensors::open(folder() / "model.safetensors");
  const io::Safetensors after = io::Safetensors::open(temporary / "model.safetensors");
  for (const std::string& name : after.names()) {
    expect_close(after.get(name), before.get(name), 0, name);
  }
  const bool has_table = std::string(GetParam()).starts_with("torch");  // of positions, which follows from its size
  EXPECT_EQ(after.names().size() + (has_table ? 1 : 0), before.names().size());
  EXPECT_EQ(io::read_json(temporary / "config.json"), io::read_json(folder() / "config.json"));
}

INSTANTIATE_TEST_SUITE_P(All, Translating,
                         testing::Values("marian", "marian_separate", "marian_free_head", "torch_post", "torch_pre",
                                         "seq2seq_lstm", "seq2seq_rnn", "seq2seq_gru_bahdanau",
                                         "seq2seq_lstm_bahdanau"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

}  // namespace
}  // namespace vitrail::models
