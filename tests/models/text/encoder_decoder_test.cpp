#include "vitrail/models/text/encoder_decoder.h"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/json.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden_path;

Texts sources_of(const io::Safetensors& golden) { return {golden.get("input_ids"), golden.get("lengths")}; }

Tensor loss_of(const EncoderDecoder& model, const io::Safetensors& golden, nn::Pass& pass) {
  const Tensor logits = model.forward(sources_of(golden), {golden.get("decoder_input_ids")}, pass);
  return ops::cross_entropy(ops::reshape(logits, {-1, logits.size(2)}), golden.get("labels").reshape({-1}));
}

// A folder of the reference, and what it computes of two sources of unequal length (tools/golden/translation.py).
class Translator : public testing::TestWithParam<const char*> {
 protected:
  fs::path folder() const { return golden_path("models/text") / GetParam(); }
  io::Safetensors expected() const { return io::Safetensors::open(folder() / "expected.safetensors"); }
};

TEST_P(Translator, GivesTheReferencesLogits) {
  const TextModel model = load_text_model(folder());
  const EncoderDecoder& body = translator_of(model);
  const io::Safetensors golden = expected();
  nn::Pass pass;
  const Tensor memory = body.encode(sources_of(golden), pass);
  const auto first = [](const Tensor& x) { return x.narrow(0, 0, 1).contiguous(); };
  const auto second = [](const Tensor& x, std::int64_t n) { return x.narrow(0, 1, 1).narrow(1, 0, n).contiguous(); };
  expect_close(first(memory), first(golden.get("memory")), 1e-5);
  expect_close(second(memory, 4), second(golden.get("memory"), 4), 1e-5);
  const Tensor logits = body.forward(sources_of(golden), {golden.get("decoder_input_ids")}, pass);
  expect_close(logits, golden.get("logits"), 1e-5);
  nn::Pass half{.dtype = DType::bf16};
  expect_close(body.forward(sources_of(golden), {golden.get("decoder_input_ids")}, half), golden.get("logits"), 4e-2);
}

TEST_P(Translator, HasTheReferencesLossAndGradients) {
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

TEST_P(Translator, HasTheSameLossAndGradientsOfTextsInARow) {
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

TEST_P(Translator, IsIndifferentToWhatPadsASource) {
  const TextModel model = load_text_model(folder());
  const EncoderDecoder& body = translator_of(model);
  const io::Safetensors golden = expected();
  nn::Pass pass;
  const Tensor sources = golden.get("input_ids").clone();
  const Tensor before = body.forward({sources, golden.get("lengths")}, {golden.get("decoder_input_ids")}, pass);
  for (std::int64_t n = 4; n < sources.size(1); ++n) {
    sources.data<std::int64_t>()[sources.size(1) + n] = n;
  }
  expect_close(body.forward({sources, golden.get("lengths")}, {golden.get("decoder_input_ids")}, pass), before, 0);
}

TEST_P(Translator, GoesOnFromItsStateAsFromTheWholeTarget) {
  const TextModel model = load_text_model(folder());
  const EncoderDecoder& body = translator_of(model);
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

TEST_P(Translator, KeepsSeveralTranslationsOfASource) {
  const TextModel model = load_text_model(folder());
  const EncoderDecoder& body = translator_of(model);
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

TEST_P(Translator, IsSavedToTheSameBitsAndFields) {
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

INSTANTIATE_TEST_SUITE_P(All, Translator,
                         testing::Values("marian", "marian_separate", "marian_free_head", "torch_post", "torch_pre"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST(EncoderDecoder, HasThePapersSizes) {
  const auto parameters = [](const std::string& name, const std::string& kwargs) {
    return create_text_model(name, {.model_kwargs = kwargs, .fill = nn::Fill::meta}).net->parameters.count();
  };
  // 65 and 213 million in the paper's table 3, with 37000 tokens
  EXPECT_EQ(parameters("transformer-base", "{}"), 63'082'496);
  EXPECT_EQ(parameters("transformer-big", "{}"), 214'245'376);
  EXPECT_EQ(parameters("transformer-small", "{}"), 7'577'600);
}

TEST(EncoderDecoder, ReadsOlderFiles) {
  const fs::path golden = golden_path("models/text/marian");
  const test::TemporaryFolder temporary;
  fs::copy(golden / "config.json", temporary / "config.json");
  const io::Safetensors file = io::Safetensors::open(golden / "model.safetensors");
  io::NamedTensors tensors;
  for (const std::string& name : file.names()) {
    tensors.emplace_back(name, file.get(name));
  }
  for (const char* copy :
       {"lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"}) {
    tensors.emplace_back(copy, file.get("model.shared.weight"));
  }
  for (const char* table : {"model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"}) {
    tensors.emplace_back(table, Tensor::zeros({32, 16}));
  }
  io::save_safetensors(temporary / "model.safetensors", tensors);
  const TextModel model = load_text_model(temporary.path());
  expect_close(model.net->parameters.at("model.shared.weight").value, file.get("model.shared.weight"), 0);
}

TEST(EncoderDecoder, NumbersItsLayers) {
  const TextModel model = create_text_model("transformer-small", {.fill = nn::Fill::meta});
  EXPECT_EQ(model.net->depth(), 6);
  EXPECT_EQ(model.net->layer_of("model.shared.weight"), 0);
  EXPECT_EQ(model.net->layer_of("model.encoder.layers.2.fc1.weight"), 3);
  EXPECT_EQ(model.net->layer_of("model.decoder.layers.0.encoder_attn.q_proj.bias"), 4);
  EXPECT_EQ(model.net->layer_of("lm_head.weight"), 7);
}

TEST(EncoderDecoder, SaysWhatIsWrongWithWhatItIsGiven) {
  const TextModel model = create_text_model(
      "transformer-small", {.model_kwargs = R"({"vocab_size": 9, "pad_token_id": 8, "max_position_embeddings": 4})"});
  const EncoderDecoder& body = translator_of(model);
  nn::Pass pass;
  const Tensor two = Tensor::from<std::int64_t>({1, 2}, {1, 2});
  const auto forward = [&](const Tensor& source, const Tensor& target) {
    return error_of([&] { body.forward({source}, {target}, pass); });
  };
  EXPECT_EQ(forward(Tensor::from<std::int64_t>({1, 9}, {1, 2}), two),
            "token 1 of text 0 is 9, but the vocabulary has the ids 0 … 8");
  EXPECT_EQ(forward(two, Tensor::from<std::int64_t>({1, -3}, {1, 2})),
            "token 1 of text 0 is -3, but the vocabulary has the ids 0 … 8");
  EXPECT_EQ(forward(Tensor::zeros({1, 5}, DType::i64), two),
            "the text has 5 tokens, but the model is made for at most 4");
  EXPECT_EQ(forward(two, Tensor::zeros({1, 5}, DType::i64)),
            "the translation has 5 tokens, but the model is made for at most 4");
  const std::unique_ptr<TextState> state = body.begin({Tensor::zeros({2, 2}, DType::i64)}, pass);
  state->select({0, 0, 1, 1});
  EXPECT_EQ(error_of([&] {
              state->select({0, 1, 1, 2});
            }),
            "translation 2 is one of source 0: all sources must have equally many translations, side by side");
  const TextModel gpt = create_text_model("gpt2", {.fill = nn::Fill::meta});
  EXPECT_EQ(error_of([&] { translator_of(gpt); }),
            "gpt2 (GPT2LMHeadModel) does not translate: it is no encoder–decoder");
  EXPECT_EQ(error_of([&] { language_of(model); }), "transformer-small (MarianMTModel) does not continue texts");
  const auto creating = [](const std::string& kwargs) {
    return error_of([&] { create_text_model("transformer-small", {.model_kwargs = kwargs, .fill = nn::Fill::meta}); });
  };
  EXPECT_EQ(creating(R"({"d_model": 250})"),
            "transformer-small with --model-kwargs: 'd_model' 250 cannot be divided among the 4 of "
            "'encoder_attention_heads'");
  EXPECT_EQ(creating(R"({"tie_word_embeddings": false})"),
            "transformer-small with --model-kwargs: 'tie_word_embeddings' cannot be false while "
            "'share_encoder_decoder_embeddings' is true");
  EXPECT_EQ(creating(R"({"pad_token_id": 8000})"),
            "transformer-small with --model-kwargs: 'pad_token_id' 8000 is none of the vocabulary's 8000 ids");
  EXPECT_EQ(creating(R"({"encoder_layerdrop": 0.1})"),
            "transformer-small with --model-kwargs: 'encoder_layerdrop' must be 0: no layers are dropped");
}

}  // namespace
}  // namespace vitrail::models
