#include "vitrail/models/quantize.h"

#include <tuple>

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/safetensors.h"

namespace vitrail::models {
namespace {

Model small_model() {
  CreateOptions options;
  options.num_classes = 10;
  options.model_kwargs = R"({"img_size": 32, "patch_size": 8, "embed_dim": 64, "depth": 2, "num_heads": 2})";
  Model model = create_model("vit_tiny_patch16_224", options);
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    parameter.value.copy_from(test::random_tensor(parameter.value.shape(), hash(parameter.name), 0.15F));
    parameter.value.touch();
  }
  model.pretrained.label_names = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  return model;
}

Tensor logits(const Model& model, const Tensor& x) {
  nn::Pass pass;
  return model.net->forward(x, pass);
}

TEST(Quantize, HoldsTheBlocksInInt8AndAnswersAlike) {
  const Model model = small_model();
  const Tensor x = test::random_tensor({6, 3, 32, 32}, 9);
  const Tensor wanted = logits(model, x);
  const Model small = quantize(model);
  EXPECT_FALSE(is_quantized(*model.net));
  EXPECT_TRUE(is_quantized(*small.net));
  EXPECT_EQ(small.net->parameters.count(), model.net->parameters.count());
  EXPECT_EQ(small.net->parameters.at("blocks.1.mlp.fc2.weight").value.dtype(), DType::i8);
  EXPECT_EQ(small.net->parameters.at("blocks.1.mlp.fc2.weight_scale").value.shape(), Shape{64});
  EXPECT_EQ(small.net->parameters.find("blocks.1.mlp.fc2.input_scale"), nullptr);
  EXPECT_EQ(small.net->parameters.at("head.weight").value.dtype(), DType::f32);
  const double error = test::relative_error(logits(small, x), wanted);
  EXPECT_LT(error, 0.05);
  EXPECT_GT(error, 1e-5);
}

TEST(Quantize, HoldsLanguageModelsInInt8) {
  for (const auto& [name, kwargs, weight] :
       {std::tuple{"gpt2", R"({"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 50, "n_positions": 40})",
                   "transformer.h.1.attn.c_proj.weight"},
        std::tuple{"llama-3.2-1b",
                   R"({"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                       "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 50})",
                   "model.layers.1.mlp.down_proj.weight"}}) {
    const TextModel model = create_text_model(name, {.model_kwargs = kwargs});
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      parameter.value.copy_from(test::random_tensor(parameter.value.shape(), hash(parameter.name), 0.15F));
      parameter.value.touch();
    }
    const TextModel small = quantize(model);
    EXPECT_TRUE(is_quantized(*small.net));
    EXPECT_EQ(small.net->parameters.at(weight).value.dtype(), DType::i8);
    const std::string embedding = name == std::string("gpt2") ? "transformer.wte" : "model.embed_tokens";
    EXPECT_EQ(small.net->parameters.at(embedding + ".weight").value.dtype(), DType::i8);
    EXPECT_EQ(small.net->parameters.at(embedding + ".weight_scale").value.shape(), Shape{50});
    EXPECT_EQ(small.net->parameters.find("lm_head.weight"), nullptr) << "the head is the embedding";
    const auto logits = [](const TextModel& of, std::int64_t tokens) {
      nn::Pass pass;
      Tensor ids = Tensor::empty({1, tokens}, DType::i64);
      for (std::int64_t i = 0; i < tokens; ++i) {
        ids.data<std::int64_t>()[i] = i * 7 % 50;
      }
      const autograd::NoGrad no_grad;
      return language_of(of).forward(ids, pass);
    };
    for (const std::int64_t tokens : {1, 30}) {
      const double error = test::relative_error(logits(small, tokens), logits(model, tokens));
      EXPECT_LT(error, 0.05) << name << " " << tokens;
      EXPECT_GT(error, 1e-5) << name << " " << tokens;
    }
    EXPECT_EQ(test::error_of([&] { quantize(small); }), std::string("the model '") + name + "' is quantized already");
  }
}

// A folder that is loaded into int8 has the values of one that is quantized after it has been loaded, and what is
// written of either loads as it is.
TEST(Quantize, LoadsLanguageModelsIntoTheFormTheyAreHeldIn) {
  for (const auto& [name, kwargs, head] :
       {std::tuple{"gpt2", R"({"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 50, "n_positions": 40})",
                   "transformer.wte.weight"},
        std::tuple{"tinyllama-1.1b",
                   R"({"hidden_size": 32, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
                       "num_key_value_heads": 2, "vocab_size": 50})",
                   "lm_head.weight"},
        std::tuple{"bert-tiny", R"({"vocab_size": 50})", ""}}) {
    const TextModel model = create_text_model(name, {.model_kwargs = kwargs});
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      parameter.value.copy_from(test::random_tensor(parameter.value.shape(), hash(parameter.name), 0.15F));
    }
    const test::TemporaryFolder folder;
    write_text_model(model, folder.path());
    const TextModel held = load_text_model(folder.path(), {.weights = DType::i8});
    const TextModel small = quantize(model);
    const test::TemporaryFolder written;
    write_text_model(small, written.path());
    const TextModel again = load_text_model(written.path());
    EXPECT_EQ(held.net->parameters.count(), model.net->parameters.count()) << name;
    for (const nn::Parameter& parameter : small.net->parameters.all()) {
      for (const TextModel* other : {&held, &again}) {
        const Tensor& value = other->net->parameters.at(parameter.name).value;
        EXPECT_EQ(value.dtype(), parameter.value.dtype()) << name << " " << parameter.name;
        EXPECT_EQ(value.values(), parameter.value.values()) << name << " " << parameter.name;
      }
    }
    std::size_t bytes = 0, wide = 0;
    const TextModel half = load_text_model(folder.path(), {.weights = DType::bf16});
    for (const nn::Parameter& parameter : half.net->parameters.all()) {
      EXPECT_EQ(parameter.value.dtype() == DType::bf16, parameter.held.has_value()) << name << " " << parameter.name;
      const Tensor& value = model.net->parameters.at(parameter.name).value;
      test::expect_close(parameter.value, value, 4e-3, parameter.name);
      bytes += parameter.value.bytes();
      wide += value.bytes();
    }
    EXPECT_LT(bytes, wide * 2 / 3) << name;
    if (*head == '\0') {
      continue;
    }
    EXPECT_TRUE(held.net->parameters.at(head).held) << name;
    const Tensor ids = Tensor::from(std::vector<std::int64_t>{7, 3, 49, 0}, {1, 4});
    const auto logits = [&](const TextModel& of, DType dtype) {
      nn::Pass pass{.dtype = dtype};
      const autograd::NoGrad no_grad;
      return language_of(of).forward(ids, pass);
    };
    const TextModel same = load_text_model(folder.path(), {.weights = DType::f32});
    test::expect_close(logits(same, DType::f32), logits(model, DType::f32), 1e-6, name);
    test::expect_close(logits(half, DType::bf16), logits(model, DType::bf16), 3e-2, name);
    EXPECT_NE(test::error_of([&] { logits(half, DType::f32); }).find("the weight must be f32, or bf16 as x"),
              std::string::npos);
  }
}

// Weights that are made at random are those that a model for training begins with.
TEST(Quantize, CreatesModelsInTheFormTheyAreHeldIn) {
  const TextModelOptions options = {
      .model_kwargs = R"({"n_embd": 32, "n_layer": 1, "n_head": 2, "vocab_size": 50, "n_positions": 40})"};
  TextModelOptions held = options;
  held.weights = DType::i8;
  const TextModel small = create_text_model("gpt2", held);
  const TextModel wanted = quantize(create_text_model("gpt2", options));
  for (const nn::Parameter& parameter : wanted.net->parameters.all()) {
    EXPECT_EQ(small.net->parameters.at(parameter.name).value.values(), parameter.value.values()) << parameter.name;
  }
}

TEST(Quantize, TakesFixedScalesFromImages) {
  const Model model = small_model();
  const Tensor x = test::random_tensor({6, 3, 32, 32}, 9);
  InputRanges ranges;
  EXPECT_NE(test::error_of([&] { quantize(model, &ranges); }).find("its range is not known"), std::string::npos);
  const Tensor wanted = logits(model, x);
  const Model small = quantize(model, &ranges);
  const nn::Parameter& weight = model.net->parameters.at("blocks.0.mlp.fc2.weight");
  EXPECT_NEAR(small.net->parameters.at("blocks.0.mlp.fc2.input_scale").value.item(), ranges.of(weight) / 127, 1e-6);
  EXPECT_LT(test::relative_error(logits(small, x), wanted), 0.08);
}

TEST(Quantize, LoadsLikeAnyOtherFolder) {
  const test::TemporaryFolder folder;
  const Model model = small_model();
  const Tensor x = test::random_tensor({2, 3, 32, 32}, 9);
  const Tensor before = logits(model, x);
  InputRanges ranges;
  logits(model, x);
  for (const InputRanges* fixed :
       {static_cast<const InputRanges*>(nullptr), static_cast<const InputRanges*>(&ranges)}) {
    const Model small = quantize(model, fixed);
    save_model(small, folder / "small");
    const Model again = open_model((folder / "small").string());
    EXPECT_TRUE(is_quantized(*again.net));
    EXPECT_EQ(again.pretrained.label_names, model.pretrained.label_names);
    test::expect_close(logits(again, x), logits(small, x), 0);
    EXPECT_LT(std::filesystem::file_size(folder / "small/model.safetensors"), 400'000U) << "of 100,000 weights";
    const Model other = load_model(folder / "small", {.num_classes = 3});
    EXPECT_EQ(logits(other, x).shape(), (Shape{2, 3}));
  }
  EXPECT_NE(test::error_of([&] { quantize(open_model((folder / "small").string())); }).find("already"),
            std::string::npos);
}

}  // namespace
}  // namespace vitrail::models
