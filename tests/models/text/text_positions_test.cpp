// Text models whose positions are chosen by name, and what the order of tokens is to models without positions.
#include "vitrail/models/text/text_positions.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/models/text/golden_folder.h"
#include "tests/support/errors.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/json.h"
#include "vitrail/models/text/encoder_decoder.h"
#include "vitrail/models/text/encoder_network.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;

// A folder of a model with other positions, and what transformers' classes compute with them
// (tools/golden/text_positions.py).
class PositionsVariant : public testing::TestWithParam<const char*> {
 protected:
  std::string name() const { return GetParam(); }
  fs::path folder() const { return test::golden_path("models/text_positions") / name(); }
  io::Safetensors expected() const { return io::Safetensors::open(folder() / "expected.safetensors"); }
  bool is_gpt2() const { return name().starts_with("gpt2"); }
};

TextInputs inputs_of(const io::Safetensors& golden) {
  const auto get = [&](const char* name) { return golden.contains(name) ? golden.get(name) : Tensor(); };
  return {.input_ids = get("input_ids"),
          .attention_mask = get("attention_mask"),
          .decoder_input_ids = get("decoder_input_ids")};
}

// Of each text the rows that are real, of the logits [B, N, V] or labels [B, N], one after the other.
Tensor real_rows(const Tensor& x, const Tensor& mask) {
  const Tensor lengths = lengths_of(mask);
  std::vector<Tensor> parts;
  for (std::int64_t b = 0; b < x.size(0); ++b) {
    const std::int64_t length = lengths.defined() ? lengths.data<std::int64_t>()[b] : x.size(1);
    parts.push_back(ops::reshape(ops::narrow(ops::narrow(x, 0, b, 1), 1, 0, length), {length, -1}));
  }
  return ops::concat(parts, 0);
}

TEST_P(PositionsVariant, GivesTheReferencesLogitsLossAndGradients) {
  const TextModel model = load_text_model(folder());
  const io::Safetensors golden = expected();
  const TextInputs inputs = inputs_of(golden);
  for (const bool checkpoint : {false, true}) {
    model.net->parameters.zero_grad();
    nn::Pass pass{.checkpoint = checkpoint};
    autograd::Tape tape;
    const Tensor logits = model.net->run(inputs, pass).front().second;
    expect_close(is_gpt2() ? logits : real_rows(logits, inputs.attention_mask),
                 is_gpt2() ? golden.get("logits") : real_rows(golden.get("logits"), inputs.attention_mask), 1e-5);
    Tensor loss;
    if (is_gpt2()) {
      const std::int64_t length = logits.size(1) - 1;
      loss = ops::cross_entropy(ops::reshape(ops::narrow(logits, 1, 0, length), {-1, logits.size(2)}),
                                inputs.input_ids.narrow(1, 1, length).contiguous().reshape({-1}));
    } else {
      loss = ops::cross_entropy(real_rows(logits, inputs.attention_mask),
                                real_rows(golden.get("labels"), inputs.attention_mask).reshape({-1}));
    }
    EXPECT_NEAR(loss.item(), golden.get("loss").item(), 1e-5);
    tape.backward(loss);
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      if (!parameter.buffer) {
        test::expect_gradient(autograd::grad(parameter.value), golden.get("grad." + parameter.name), 1e-4,
                              parameter.name);
      }
    }
  }
  nn::Pass half{.dtype = DType::bf16};
  expect_close(real_rows(model.net->run(inputs, half).front().second, inputs.attention_mask),
               real_rows(golden.get("logits"), inputs.attention_mask), 4e-2);
}

// Encoders and encoder–decoders take texts in one row.
class RowVariant : public PositionsVariant {};

// Texts in one row without padding are told their places as texts by themselves are.
TEST_P(RowVariant, TakesTextsInOneRow) {
  const TextModel model = load_text_model(folder());
  const TextInputs inputs = inputs_of(expected());
  nn::Pass pass;
  const Tensor expected = real_rows(model.net->run(inputs, pass).front().second, inputs.attention_mask);
  const auto row = [&](const Tensor& ids) { return real_rows(ids, inputs.attention_mask).reshape({1, -1}); };
  const Tensor lengths = lengths_of(inputs.attention_mask);
  const std::int64_t first = lengths.data<std::int64_t>()[0];
  const Tensor offsets = Tensor::from<std::int64_t>({0, first, first + lengths.data<std::int64_t>()[1]}, {3});
  Tensor logits;
  if (name().starts_with("bert")) {
    const EncoderNetwork& bert = encoder_of(model);
    logits = bert.masked_logits(bert.body({.ids = row(inputs.input_ids), .offsets = offsets}, pass));
  } else {
    logits = translator_of(model).forward({.ids = row(inputs.input_ids), .offsets = offsets},
                                          {.ids = row(inputs.decoder_input_ids), .offsets = offsets}, pass);
  }
  expect_close(logits.reshape(expected.shape()), expected, 1e-5);
}

TEST_P(PositionsVariant, IsSavedToTheSameBitsAndFields) {
  test::expect_saved_alike(folder(), [](const fs::path&) {});
}

std::string name_of_variant(const testing::TestParamInfo<const char*>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Gpt2, PositionsVariant,
                         testing::Values("gpt2_none", "gpt2_learn", "gpt2_sincos", "gpt2_rope", "gpt2_alibi",
                                         "gpt2_alibi_learn", "gpt2_rel_bucket", "gpt2_rel_bias"),
                         name_of_variant);

const auto row_variants =
    testing::Values("bert_none", "bert_learn", "bert_sincos", "bert_rope", "bert_alibi_learn", "bert_rel_bucket",
                    "bert_rel_bias", "marian_none", "marian_learn", "marian_sincos", "marian_rope",
                    "marian_alibi_learn", "marian_rel_bucket", "marian_rel_bias");
INSTANTIATE_TEST_SUITE_P(Rows, PositionsVariant, row_variants, name_of_variant);
INSTANTIATE_TEST_SUITE_P(Rows, RowVariant, row_variants, name_of_variant);

// What every code does in every family, by the sizes of small models of random weights.
class PositionsByName : public testing::TestWithParam<const char*> {
 protected:
  TextModel decoder(const std::string& name) const {
    const std::string heads = name == "gpt2"         ? R"("n_embd": 24, "n_head": 3, "n_layer": 2, "n_positions": 40)"
                              : name == "bloom-560m" ? R"("hidden_size": 24, "n_head": 3, "n_layer": 2)"
                                                     : R"("hidden_size": 24, "num_attention_heads": 6,
                                                      "num_key_value_heads": 2, "num_hidden_layers": 2,
                                                      "intermediate_size": 40, "max_position_embeddings": 40)";
    return create_text_model(name, {.model_kwargs = R"({"vocab_size": 30, "pos_embed": ")" + std::string(GetParam()) +
                                                    "\", " + heads + "}"});
  }
};

TEST_P(PositionsByName, ContinuesATextAsIfItWereReadAtOnce) {
  for (const char* name : {"gpt2", "smollm2-135m", "bloom-560m"}) {
    if (std::string(GetParam()) == "learn" && name == std::string("bloom-560m")) {
      continue;  // it has no number of positions
    }
    const TextModel model = decoder(name);
    const Tensor ids = Tensor::empty({2, 33}, DType::i64);
    for (std::int64_t i = 0; i < ids.numel(); ++i) {
      ids.data<std::int64_t>()[i] = i * i % 29;
    }
    nn::Pass pass;
    const Tensor whole = language_of(model).forward(ids, pass);
    const std::unique_ptr<TextState> state = language_of(model).begin();
    std::int64_t begin = 0;
    for (const std::int64_t step : {7, 1, 1, 20, 1, 3}) {
      expect_close(language_of(model).forward(ids.narrow(1, begin, step), pass, state.get()),
                   whole.narrow(1, begin, step), 1e-5, name);
      begin += step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PositionsByName,
                         testing::Values("none", "learn", "sincos", "rope", "alibi", "alibi_learn", "rel_bucket",
                                         "rel_bias"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST(TextPositions, NumberTheirParametersWithTheEmbeddings) {
  const auto layer = [](const char* name, const std::string& kwargs, const char* parameter) {
    const TextModel model = create_text_model(name, {.model_kwargs = kwargs, .fill = nn::Fill::meta});
    EXPECT_NE(model.net->parameters.find(parameter), nullptr) << parameter;
    EXPECT_FALSE(model.net->is_head(parameter));
    return model.net->layer_of(parameter);
  };
  EXPECT_EQ(layer("gpt2", R"({"pos_embed": "alibi_learn"})", "transformer.wpe.alibi_slopes"), 0);
  EXPECT_EQ(layer("smollm2-135m", R"({"pos_embed": "learn"})", "model.embed_positions.weight"), 0);
  EXPECT_EQ(layer("bert-tiny", R"({"pos_embed": "rel_bias"})",
                  "embeddings.position_embeddings.relative_attention_bias.weight"),
            0);
  EXPECT_EQ(layer("transformer-small", R"({"pos_embed": "rel_bucket"})",
                  "model.decoder.embed_positions.relative_attention_bias.weight"),
            0);
}

TEST(TextPositions, SayWhatCannotBe) {
  const auto error = [](const char* name, const std::string& kwargs) {
    return error_of([&] { create_text_model(name, {.model_kwargs = kwargs, .fill = nn::Fill::meta}); });
  };
  EXPECT_EQ(error("gpt2", R"({"pos_embed": "alibi2d"})"),
            "gpt2 with --model-kwargs: 'pos_embed' must be 'none', 'learn', 'sincos', 'rope', 'alibi', 'alibi_learn', "
            "'rel_bucket' or 'rel_bias', but is 'alibi2d' (did you mean 'alibi'?)");
  EXPECT_EQ(error("gpt2", R"({"pos_embed": "rope", "n_embd": 36})"),
            "gpt2 with --model-kwargs: 'pos_embed' rope: rotary positions need heads of an even width, not 3");
  EXPECT_EQ(error("bloom-560m", R"({"pos_embed": "learn"})"),
            "bloom-560m with --model-kwargs: 'pos_embed' learn: the model says nowhere how many positions it has");
  EXPECT_EQ(error("gpt2", R"({"pos_embed": "alibi", "relative_attention_num_buckets": 4})"),
            "--model-kwargs: gpt2 has no field 'relative_attention_num_buckets'");
}

}  // namespace
}  // namespace vitrail::models
