#include "vitrail/models/text/encoder_decoder.h"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/layers.h"
#include "vitrail/io/json.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden_path;

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

// Files of transformers 3 have no final_logits_bias, which is then 0; the config has fields that are no more.
TEST(EncoderDecoder, ReadsFilesWithoutBiasOfLogits) {
  const fs::path golden = golden_path("models/text/marian");
  const test::TemporaryFolder temporary;
  nlohmann::json config = io::read_json(golden / "config.json");
  config.update(nlohmann::json::parse(R"({"_num_labels": 3, "add_bias_logits": false, "add_final_layer_norm": false,
      "classif_dropout": 0.0, "normalize_before": false, "normalize_embedding": false, "num_beams": 6,
      "max_length": 512, "num_hidden_layers": 6, "static_position_embeddings": true, "bad_words_ids": [[49]]})"));
  for (const char* newer : {"share_encoder_decoder_embeddings", "decoder_vocab_size", "tie_word_embeddings"}) {
    config.erase(newer);
  }
  std::ofstream(temporary / "config.json") << config;
  const io::Safetensors file = io::Safetensors::open(golden / "model.safetensors");
  io::NamedTensors tensors;
  for (const std::string& name : file.names()) {
    if (name != "final_logits_bias") {
      tensors.emplace_back(name, file.get(name));
    }
  }
  io::save_safetensors(temporary / "model.safetensors", tensors);
  const TextModel model = load_text_model(temporary.path());
  const Tensor bias = model.net->parameters.at("final_logits_bias").value;
  EXPECT_EQ(bias.values(), std::vector<float>(50, 0.0F));
  const io::Safetensors expected = io::Safetensors::open(golden / "expected.safetensors");
  nn::Pass pass;
  expect_close(translator_of(model).forward({expected.get("input_ids"), expected.get("lengths")},
                                            {expected.get("decoder_input_ids")}, pass),
               expected.get("logits") - file.get("final_logits_bias"), 1e-5);
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
  const Translator& body = translator_of(model);
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
            "gpt2 (GPT2LMHeadModel) does not translate: it continues texts: `vitrail generate` takes it");
  EXPECT_EQ(error_of([&] { language_of(model); }),
            "transformer-small (MarianMTModel) does not continue texts: it translates: `vitrail translate` takes it");
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
