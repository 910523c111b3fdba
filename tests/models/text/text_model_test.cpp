#include "vitrail/models/text/text_model.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/models/text/golden_folder.h"
#include "tests/support/errors.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/models/text/families.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden_path;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A folder that transformers wrote, and what it computes with it (tools/golden/language_models.py).
class LanguageVariant : public test::GoldenFolder {};

TEST_P(LanguageVariant, GivesTransformersLogits) {
  const TextModel model = load_text_model(folder());
  nn::Pass pass;
  expect_close(language_of(model).forward(expected().get("input_ids"), pass), expected().get("logits"), 1e-5);
  nn::Pass half{.dtype = DType::bf16};
  expect_close(language_of(model).forward(expected().get("input_ids"), half), expected().get("logits"), 4e-2);
}

// What each layer says of itself counts, whatever max_window_layers is.
TEST(LanguageVariants, SlideInTheLayersThatSaySo) {
  const fs::path folder = golden_path("models/text/qwen2");
  const io::Safetensors expected = io::Safetensors::open(folder / "expected.safetensors");
  nn::Pass pass;
  const auto error = [&](const std::string& kwargs) {
    const TextModel model = load_text_model(folder, {.model_kwargs = kwargs});
    return test::relative_error(language_of(model).forward(expected.get("input_ids"), pass), expected.get("logits"));
  };
  EXPECT_LT(error(R"({"max_window_layers": 0})"), 1e-5);
  EXPECT_GT(error(R"({"layer_types": ["sliding_attention", "full_attention"]})"), 1e-3);
}

TEST_P(LanguageVariant, HasTransformersLossAndGradients) {
  test::expect_golden_loss(load_text_model(folder()), expected());
}

TEST_P(LanguageVariant, GoesOnFromItsStateAsFromTheWholeText) {
  const TextModel model = load_text_model(folder());
  const Tensor ids = expected().get("input_ids");
  nn::Pass pass;
  const Tensor whole = language_of(model).forward(ids, pass);
  for (const std::vector<std::int64_t>& steps : {std::vector<std::int64_t>(11, 1), {5, 1, 5}, {2, 9}}) {
    const std::unique_ptr<TextState> state = language_of(model).begin();
    std::int64_t begin = 0;
    for (const std::int64_t step : steps) {
      const Tensor logits = language_of(model).forward(ids.narrow(1, begin, step), pass, state.get());
      expect_close(logits, whole.narrow(1, begin, step), 1e-5);
      begin += step;
      EXPECT_EQ(state->length(), begin);
    }
  }
}

TEST_P(LanguageVariant, DependsOnNoLaterToken) {
  const TextModel model = load_text_model(folder());
  const Tensor ids = expected().get("input_ids");
  nn::Pass pass;
  const Tensor before = language_of(model).forward(ids, pass);
  const Tensor changed = ids.clone();
  for (std::int64_t b = 0; b < ids.size(0); ++b) {
    for (std::int64_t n = 6; n < ids.size(1); ++n) {
      std::int64_t& id = changed.data<std::int64_t>()[b * ids.size(1) + n];
      id = (id + 7) % 50;
    }
  }
  const Tensor after = language_of(model).forward(changed, pass);
  expect_close(after.narrow(1, 0, 6), before.narrow(1, 0, 6), 0);
  EXPECT_GT(test::relative_error(after, before), 0.01);
}

// What a text gets, Bloom's biases too, does not depend on padding behind it, nor on texts beside it in a row.
TEST_P(LanguageVariant, GivesTransformersLogitsOfTextsWithPadding) {
  const io::Safetensors golden = expected();
  const TextModel model = load_text_model(folder());
  const TextInputs inputs{.input_ids = golden.get("input_ids"), .attention_mask = golden.get("attention_mask")};
  nn::Pass pass;
  const Tensor logits = model.net->run(inputs, pass).front().second;
  const Tensor lengths = lengths_of(inputs.attention_mask);
  EXPECT_EQ(lengths.span<std::int64_t>()[1], 7);
  TextRow row;
  for (std::int64_t b = 0; b < 2; ++b) {
    row.add(inputs.input_ids.select(0, b).contiguous().span<std::int64_t>().first(
        static_cast<std::size_t>(lengths.span<std::int64_t>()[static_cast<std::size_t>(b)])));
  }
  const Tensor packed = language_of(model).forward_texts(row.texts(), pass);
  std::int64_t begin = 0;
  for (std::int64_t b = 0; b < 2; ++b) {
    const std::int64_t length = lengths.span<std::int64_t>()[static_cast<std::size_t>(b)];
    const auto real = [&](const Tensor& x) { return x.narrow(0, b, 1).narrow(1, 0, length); };
    expect_close(real(logits), real(golden.get("masked.logits")), 1e-5);
    expect_close(packed.narrow(1, begin, length), real(golden.get("masked.logits")), 1e-5);
    begin += length;
  }
}

TEST_P(LanguageVariant, IsSavedToTheSameBitsAndFields) {
  test::expect_saved_alike(folder(), [](const fs::path& written) { EXPECT_TRUE(names_text_model(written.string())); });
  EXPECT_FALSE(names_text_model(golden_path("models/hf_vit").string()));
}

INSTANTIATE_TEST_SUITE_P(All, LanguageVariant,
                         testing::Values("bloom", "bloom_unusual", "gpt2", "gpt2_unusual", "imagegpt",
                                         "imagegpt_unusual", "llama", "llama3", "llama_linear", "mistral", "qwen2"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST(Bloom, ReadsTheFieldsOfOlderFolders) {
  const auto parameters = [](const std::string& kwargs) {
    return create_text_model("bloom-560m", {.model_kwargs = kwargs, .fill = nn::Fill::meta}).net->parameters.count();
  };
  EXPECT_EQ(parameters("{}"), 559'214'592);
  EXPECT_EQ(parameters(R"({"n_embed": 1024, "num_attention_heads": 16, "num_hidden_layers": 24})"), 559'214'592);
}

TEST(TextModel, HasThePublishedSizes) {
  const auto parameters = [](const std::string& name) {
    return create_text_model(name, {.fill = nn::Fill::meta}).net->parameters.count();
  };
  EXPECT_EQ(parameters("gpt2"), 124'439'808);
  EXPECT_EQ(parameters("gpt2-medium"), 354'823'168);
  EXPECT_EQ(parameters("gpt2-large"), 774'030'080);
  EXPECT_EQ(parameters("gpt2-xl"), 1'557'611'200);
  EXPECT_EQ(parameters("imagegpt-small"), 76'682'240);
  EXPECT_EQ(parameters("smollm2-135m"), 134'515'008);
  EXPECT_EQ(parameters("tinyllama-1.1b"), 1'100'048'384);
  EXPECT_EQ(parameters("llama-3.2-1b"), 1'235'814'400);
  EXPECT_EQ(parameters("qwen2-0.5b"), 494'032'768);
}

TextModel small_gpt2(const std::string& kwargs = R"({"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 11})") {
  return create_text_model("gpt2", {.model_kwargs = kwargs});
}

TEST(TextModel, StartsAsGpt2Does) {
  const TextModel model = small_gpt2(R"({"n_layer": 8, "n_head": 2, "n_embd": 128, "vocab_size": 200})");
  const auto deviation = [&](const std::string& name) {
    double squares = 0;
    const std::vector<float> values = model.net->parameters.at(name).value.values();
    for (const float value : values) {
      squares += static_cast<double>(value) * value;
    }
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  EXPECT_NEAR(deviation("transformer.wte.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("transformer.h.3.attn.c_attn.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("transformer.h.3.attn.c_proj.weight"), 0.02 / 4, 0.0003);
  EXPECT_NEAR(deviation("transformer.h.7.mlp.c_proj.weight"), 0.02 / 4, 0.0003);
  EXPECT_EQ(deviation("transformer.h.0.mlp.c_fc.bias"), 0);
  EXPECT_EQ(deviation("transformer.ln_f.weight"), 1);
}

TEST(TextModel, NumbersItsLayers) {
  const TextModel model = small_gpt2();
  EXPECT_EQ(model.net->layer_of("transformer.wpe.weight"), 0);
  EXPECT_EQ(model.net->layer_of("transformer.h.1.ln_1.bias"), 2);
  EXPECT_EQ(model.net->layer_of("transformer.ln_f.bias"), 3);
}

TEST(TextModel, ReadsBareFilesAndOldOnes) {
  const fs::path golden = golden_path("models/text/gpt2");
  const test::TemporaryFolder temporary;
  fs::copy(golden / "config.json", temporary / "config.json");
  const io::Safetensors file = io::Safetensors::open(golden / "model.safetensors");
  io::NamedTensors bare;
  for (const std::string& name : file.names()) {
    bare.emplace_back(name.substr(std::string("transformer.").size()), file.get(name));
  }
  bare.emplace_back("h.0.attn.bias", Tensor::zeros({1, 1, 24, 24}));
  bare.emplace_back("lm_head.weight", file.get("transformer.wte.weight"));  // the second copy of a tied head
  io::save_safetensors(temporary / "model.safetensors", bare);
  const io::Safetensors expected = io::Safetensors::open(golden / "expected.safetensors");
  nn::Pass pass;
  expect_close(language_of(load_text_model(temporary.path())).forward(expected.get("input_ids"), pass),
               expected.get("logits"), 1e-5);
}

// Transformers before version 5 wrote "rope_theta" and "rope_scaling", whose kind was the "type" before 4.45.
TEST(TextModel, ReadsOlderRotaryPositions) {
  for (const char* name : {"llama", "llama_linear", "llama3"}) {
    const fs::path golden = golden_path("models/text") / name;
    nlohmann::json config = io::read_json(golden / "config.json");
    nlohmann::json rope = config.at("rope_parameters");
    config.erase("rope_parameters");
    config["rope_theta"] = rope.at("rope_theta");
    rope.erase("rope_theta");
    const bool plain = rope.at("rope_type") == "default";
    config["rope_scaling"] = plain ? nlohmann::json() : rope;
    if (rope.at("rope_type") == "linear") {
      config["rope_scaling"]["type"] = "linear";
      config["rope_scaling"].erase("rope_type");
    }
    const test::TemporaryFolder temporary;
    std::ofstream(temporary / "config.json") << config;
    fs::copy(golden / "model.safetensors", temporary / "model.safetensors");
    const io::Safetensors expected = io::Safetensors::open(golden / "expected.safetensors");
    nn::Pass pass;
    expect_close(language_of(load_text_model(temporary.path())).forward(expected.get("input_ids"), pass),
                 expected.get("logits"), 1e-5, name);
  }
}

TEST(TextModel, ReadsShards) {
  const fs::path golden = golden_path("models/text/llama");
  const io::Safetensors file = io::Safetensors::open(golden / "model.safetensors");
  const test::TemporaryFolder temporary;
  fs::copy(golden / "config.json", temporary / "config.json");
  std::array<io::NamedTensors, 2> shards;
  nlohmann::json index = {{"metadata", {{"total_size", 1}}}};
  for (const std::string& name : file.names()) {
    const std::size_t shard = name.find("layers.1.") == std::string::npos ? 0 : 1;
    shards[shard].emplace_back(name, file.get(name));
    index["weight_map"][name] = fmt::format("model-0000{}-of-00002.safetensors", shard + 1);
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    io::save_safetensors(temporary / fmt::format("model-0000{}-of-00002.safetensors", i + 1), shards[i]);
  }
  std::ofstream(temporary / "model.safetensors.index.json") << index;
  const io::Safetensors expected = io::Safetensors::open(golden / "expected.safetensors");
  nn::Pass pass;
  expect_close(language_of(load_text_model(temporary.path())).forward(expected.get("input_ids"), pass),
               expected.get("logits"), 1e-5);
}

TEST(TextModel, SaysWhatIsWrongWithWhatItIsGiven) {
  const TextModel model = small_gpt2();
  nn::Pass pass;
  const auto forward = [&](const Tensor& ids) { return error_of([&] { language_of(model).forward(ids, pass); }); };
  EXPECT_EQ(forward(Tensor::from<std::int64_t>({1, 2, 11, 3}, {1, 4})),
            "token 2 of text 0 is 11, but the vocabulary has the ids 0 … 10");
  EXPECT_EQ(forward(Tensor::from<std::int64_t>({1, 2, 3, -1}, {2, 2})),
            "token 1 of text 1 is -1, but the vocabulary has the ids 0 … 10");
  EXPECT_EQ(forward(Tensor::zeros({1, 1025}, DType::i64)),
            "the text has 1025 tokens, but the model is made for at most 1024");
  EXPECT_EQ(forward(Tensor::zeros({3})), "the model takes token ids [B, N] i64, not [3] f32");
  EXPECT_EQ(error_of([] { create_text_model("gpt3"); }), "there is no text model 'gpt3' (did you mean 'gpt2'?)");
  EXPECT_EQ(error_of([] { create_text_model("gpt2", {.model_kwargs = R"({"n_layers": 2})"}); }),
            "--model-kwargs: gpt2 has no field 'n_layers' (did you mean 'n_layer'?)");
  EXPECT_EQ(error_of([] { create_text_model("llama-3.2-1b", {.model_kwargs = R"({"num_key_value_heads": 5})"}); }),
            "llama-3.2-1b with --model-kwargs: 'num_key_value_heads' 5 does not divide 'num_attention_heads' 32");
}

// LlamaConfig's, MistralConfig's and Qwen2Config's defaults differ.
TEST(TextModel, HasAsManyHeadsOfKeysAsTransformersTakes) {
  const test::TemporaryFolder temporary;
  const auto loads = [&](const std::string& type, int heads_of_keys, const nlohmann::json& said) {
    const TextModel model = create_text_model(
        "llama-3.2-1b", {.model_kwargs = fmt::format(R"({{"hidden_size": 80, "num_attention_heads": 40, "head_dim": 2,
                            "num_key_value_heads": {}, "num_hidden_layers": 1, "vocab_size": 20, "intermediate_size": 8}})",
                                                     heads_of_keys)});
    std::filesystem::create_directories(temporary / "model");
    write_text_model(model, temporary / "model");
    nlohmann::json config = nlohmann::json::parse(io::read_text(temporary / "model/config.json"));
    config["model_type"] = type;
    config.erase("architectures");
    config.erase("num_key_value_heads");
    config.update(said);
    io::write_atomically(temporary / "model/config.json", config.dump());
    return error_of([&] { load_text_model(temporary / "model"); });
  };
  const nlohmann::json null = {{"num_key_value_heads", nullptr}};
  EXPECT_EQ(loads("llama", 40, nlohmann::json::object()), "no error");
  EXPECT_EQ(loads("llama", 40, null), "no error");
  EXPECT_EQ(loads("llama", 8, {{"num_key_value_heads", 8}}), "no error");
  EXPECT_EQ(loads("mistral", 8, nlohmann::json::object()), "no error");
  EXPECT_EQ(loads("mistral", 40, null), "no error");
  EXPECT_THAT(loads("qwen2", 40, null), AllOf(HasSubstr("q_proj.bias"), Not(HasSubstr("has the shape"))));
  EXPECT_THAT(loads("qwen2", 40, nlohmann::json::object()), HasSubstr("32 does not divide 'num_attention_heads' 40"));
  EXPECT_THAT(loads("llama", 8, nlohmann::json::object()), HasSubstr("k_proj"));
}

TEST(TextModel, SaysWhatIsWrongWithAConfig) {
  const auto reading = [](const std::string& config) {
    const test::TemporaryFolder temporary;
    std::ofstream(temporary / "config.json") << config;
    const std::string error = error_of([&] { load_text_model(temporary.path(), {.fill = nn::Fill::meta}); });
    const std::size_t at = error.find("config.json");
    return at == std::string::npos ? error : error.substr(at);
  };
  EXPECT_THAT(reading(R"({"model_type": "gpt3"})"),
              AllOf(StartsWith("config.json: 'model_type' is 'gpt3', expected 'bert', 'bloom', 'distilbert', 'gpt2', "),
                    EndsWith(" (did you mean 'gpt2'?)")));
  EXPECT_EQ(reading(R"({"model_type": "llama", "rope_scaling": {"type": "yarn", "factor": 2}})"),
            "config.json, 'rope_scaling': 'type' must be 'default', 'linear' or 'llama3', but is 'yarn'");
  EXPECT_EQ(
      reading(R"({"model_type": "llama", "num_attention_heads": 6, "num_key_value_heads": 4, "hidden_size": 60})"),
      "config.json: 'num_key_value_heads' 4 does not divide 'num_attention_heads' 6");
  EXPECT_EQ(reading(R"({"model_type": "gpt2", "add_cross_attention": true})"),
            "config.json: 'add_cross_attention': GPT-2 as a decoder of another model's states is one part of a "
            "VisionEncoderDecoderModel, and not alone");
  EXPECT_EQ(reading(R"({"model_type": "qwen2", "num_hidden_layers": 2, "layer_types": ["sliding_attention"]})"),
            "config.json: 'layer_types' has 1 entries for 2 layers");
  EXPECT_EQ(reading(R"({"model_type": "qwen2", "num_hidden_layers": 1, "layer_types": ["sliding_attention"]})"),
            "config.json: 'layer_types': layer 0 is 'sliding_attention', but 'use_sliding_window' and "
            "'sliding_window' give it no window");
  EXPECT_EQ(reading(R"({"model_type": "qwen2", "num_hidden_layers": 1, "layer_types": ["linear_attention"]})"),
            "config.json: 'layer_types': layer 0 is 'linear_attention', expected 'full_attention' or "
            "'sliding_attention'");
}

}  // namespace
}  // namespace vitrail::models
