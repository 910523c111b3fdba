#include "vitrail/models/joint/vision_encoder_decoder.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/io/safetensors.h"
#include "vitrail/models/model.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/embedding.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden_path;
using ::testing::HasSubstr;

// A folder that transformers wrote, and what it computes with it (tools/golden/captioner.py).
class VisionEncoderDecoderVariant : public testing::TestWithParam<const char*> {
 protected:
  fs::path folder() const { return golden_path("models/joint/captioner") / GetParam(); }
  io::Safetensors expected() const { return io::Safetensors::open(folder() / "expected.safetensors"); }
};

// The texts of labels [B, N], in a row: the first token, and what stands before each end at -100.
Texts texts_of(const Tensor& labels, std::int64_t start, std::vector<std::int64_t>& next) {
  TextRow row;
  for (std::int64_t b = 0; b < labels.size(0); ++b) {
    std::vector<std::int64_t> text = {start};
    for (std::int64_t n = 0; n < labels.size(1); ++n) {
      const std::int64_t label = labels.data<std::int64_t>()[b * labels.size(1) + n];
      if (label >= 0) {
        text.push_back(label);
        next.push_back(label);
      }
    }
    text.pop_back();
    row.add(text);
  }
  return row.texts();
}

TEST_P(VisionEncoderDecoderVariant, GivesTransformersLogits) {
  const std::unique_ptr<Captioner> model = load_captioner(folder());
  const io::Safetensors golden = expected();
  for (const auto& [dtype, tolerance] : {std::pair(DType::f32, 2e-5), {DType::bf16, 0.15}}) {
    nn::Pass pass{.dtype = dtype};
    expect_close(model->logits(golden.get("pixel_values"), {golden.get("decoder_input_ids")}, pass),
                 golden.get("logits"), tolerance);
  }
  nn::Pass pass;
  const Tensor states = golden.get("encoder_last_hidden_state");
  expect_close(model->image_model.net->forward_features(golden.get("pixel_values"), pass).reshape(states.shape()),
               states, 1e-5);
}

TEST_P(VisionEncoderDecoderVariant, LooksWhereTransformersDoes) {
  const std::unique_ptr<Captioner> model = load_captioner(folder());
  const io::Safetensors golden = expected();
  nn::Recorder recorder(false, true);
  nn::Pass pass{.recorder = &recorder};
  model->logits(golden.get("pixel_values"), {golden.get("decoder_input_ids")}, pass);
  ASSERT_EQ(model->cross_attention().size(), 2);
  for (const std::size_t i : {0, 1}) {
    expect_close(recorder.attention().at(model->cross_attention()[i]).value,
                 golden.get(fmt::format("cross_attention.{}", i)), 2e-5);
  }
}

// Texts lie in a row here, without transformers' padding. Gradients are compared by the names of a file.
TEST_P(VisionEncoderDecoderVariant, HasTransformersLossAndGradients) {
  const std::unique_ptr<Captioner> model = load_captioner(folder());
  const io::Safetensors golden = expected();
  autograd::Tape tape;
  nn::Pass pass;
  std::vector<std::int64_t> next;
  const Texts texts = texts_of(golden.get("labels"), model->start, next);
  const Tensor logits = model->logits(golden.get("pixel_values"), texts, pass);
  const Tensor loss =
      ops::cross_entropy(ops::reshape(logits, {-1, logits.size(2)}), Tensor::from(next, {std::ssize(next)}));
  expect_close(loss, golden.get("loss"), 1e-5);
  tape.backward(loss);
  for (const nn::Parameter& parameter : model->parameters.all()) {
    ASSERT_TRUE(autograd::grad(parameter.value).defined()) << parameter.name;
    model->parameters.set(parameter, autograd::grad(parameter.value));
  }
  const test::TemporaryFolder written;
  model->write(written.path());
  const io::Safetensors gradients = io::Safetensors::open(written / "model.safetensors");
  int compared = 0;
  for (const std::string& name : golden.names()) {
    if (name.starts_with("grad.")) {
      expect_close(gradients.get(name.substr(5)), golden.get(name), 1e-4, name);
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
}

TEST_P(VisionEncoderDecoderVariant, IsWrittenAsItWasRead) {
  const std::unique_ptr<Captioner> model = load_captioner(folder());
  const test::TemporaryFolder written;
  model->write(written.path());
  const io::Safetensors theirs = io::Safetensors::open(folder() / "model.safetensors");
  const io::Safetensors ours = io::Safetensors::open(written / "model.safetensors");
  for (const std::string& name : theirs.names()) {
    if (name.find("pooler") == std::string::npos) {
      expect_close(ours.get(name), theirs.get(name), 0, name);
    }
  }
  const std::unique_ptr<Captioner> again = load_captioner(written.path());
  EXPECT_EQ(again->start, model->start);
  EXPECT_EQ(again->end, model->end);
  const Tensor x = expected().get("pixel_values");
  nn::Pass pass;
  const Texts texts{expected().get("decoder_input_ids")};
  expect_close(again->logits(x, texts, pass), model->logits(x, texts, pass), 0);
}

INSTANTIATE_TEST_SUITE_P(All, VisionEncoderDecoderVariant, testing::Values("vit", "deit", "swin"));

// A folder with what `change` makes of its config.json.
std::string error_of_config(const std::function<void(nlohmann::json&)>& change) {
  const test::TemporaryFolder folder;
  const fs::path from = golden_path("models/joint/captioner/vit");
  fs::copy(from, folder.path(), fs::copy_options::recursive);
  nlohmann::json config = io::read_json(from / "config.json");
  change(config);
  io::write_atomically(folder / "config.json", config.dump());
  return error_of([&] { load_captioner(folder.path()); });
}

TEST(VisionEncoderDecoder, SaysWhatIsWrongWithAFolder) {
  EXPECT_THAT(error_of_config([](auto& c) { c["decoder"]["model_type"] = "bert"; }),
              HasSubstr("the decoder is a 'bert', expected 'gpt2'"));
  EXPECT_THAT(error_of_config([](auto& c) { c["encoder"]["model_type"] = "vilt"; }),
              HasSubstr("'model_type' is 'vilt', expected "));
  EXPECT_THAT(error_of_config([](auto& c) { c.erase("decoder"); }), HasSubstr("'decoder'"));
  const test::TemporaryFolder folder;
  fs::copy(golden_path("models/joint/captioner/vit"), folder.path(), fs::copy_options::recursive);
  io::write_atomically(folder / "generation_config.json", R"({"decoder_start_token_id": 60})");
  EXPECT_THAT(error_of([&] { load_captioner(folder.path()); }),
              HasSubstr("the token that begins a text, 60, is none of the decoder's 60"));
  EXPECT_THAT(error_of_config([](auto& c) { c["decoder"]["cross_attention_hidden_size"] = 7; }),
              HasSubstr("'cross_attention_hidden_size' 7 is neither the encoder's width, 24, nor the decoder's, 32"));
  EXPECT_THAT(error_of_config([](auto& c) { c["decoder"]["n_layer"] = 3; }), HasSubstr("decoder.transformer.h.2."));
}

// Rates of dropout of a timm model have no field of transformers': a run that is resumed needs them.
TEST(VisionEncoderDecoder, KeepsTheRatesOfItsImageModel) {
  const test::TemporaryFolder folder;
  const fs::path from = folder / "from";
  fs::copy(golden_path("models/joint/captioner/vit"), from, fs::copy_options::recursive);
  nlohmann::json config = io::read_json(from / "config.json");
  config["encoder"]["vitrail"]["drop_rates"] = {{"proj_drop_rate", 0.3}};
  io::write_atomically(from / "config.json", config.dump());
  const auto rate_in = [](const fs::path& path) {
    return nlohmann::json::parse(load_captioner(path)->image_model.arguments).value("proj_drop_rate", 0.0);
  };
  EXPECT_EQ(rate_in(from), 0.3);
  fs::create_directory(folder / "written");
  load_captioner(from)->write(folder / "written");
  EXPECT_EQ(rate_in(folder / "written"), 0.3);
  EXPECT_THAT(error_of_config([](auto& c) {
                c["encoder"]["vitrail"]["drop_rates"] = {{"depth", 7}};
              }),
              HasSubstr("'encoder': 'drop_rates': there is no rate 'depth'"));
}

TEST(VisionEncoderDecoder, TakesTextsOfItsPositionsAlone) {
  const std::unique_ptr<Captioner> model = load_captioner(golden_path("models/joint/captioner/vit"));
  nn::Pass pass;
  EXPECT_EQ(error_of([&] {
              model->logits(Tensor::zeros({1, 3, 16, 16}), {Tensor::zeros({1, 25}, DType::i64)}, pass);
            }),
            "the caption has 25 tokens, but the model is made for at most 24");
}

// With a network that transformers does not have, whose map gets positions: a mirrored image gives other logits,
// although what the pooled features say is the same up to the borders.
TEST(VisionEncoderDecoder, TakesMapsOfConvolutionalNetworks) {
  CreateOptions options;
  options.num_classes = 0;
  options.model_kwargs = R"({"layers": [1, 1], "channels": [8, 16], "img_size": 32})";
  const VisionEncoderDecoder model(
      create_model("resnet18", options),
      R"({"vocab_size": 9, "n_embd": 8, "n_layer": 1, "n_head": 2, "bos_token_id": 8, "eos_token_id": 8})",
      "the decoder");
  EXPECT_FALSE(model.in_transformers());
  nn::Pass pass;
  const Tensor x = test::random_tensor({2, 3, 32, 32}, 1);
  EXPECT_EQ(model.look(x, pass).shape().str(), "[2, 16, 8]");
  const Texts row{Tensor::from<std::int64_t>({8, 1, 2, 8, 4}, {1, 5}), {}, Tensor::from<std::int64_t>({0, 3, 5}, {3})};
  const Texts side_by_side{Tensor::from<std::int64_t>({8, 1, 2, 8, 4, 0}, {2, 3})};
  const Tensor in_a_row = model.logits(x, row, pass);
  const Tensor padded = model.logits(x, side_by_side, pass);
  expect_close(in_a_row.narrow(1, 0, 3), padded.narrow(0, 0, 1), 1e-5);
  expect_close(in_a_row.narrow(1, 3, 2), padded.narrow(0, 1, 1).narrow(1, 0, 2), 1e-5);

  const test::TemporaryFolder folder;
  model.write(folder.path(), DType::f32);
  EXPECT_TRUE(is_captioner_folder(folder.path()));
  const std::unique_ptr<Captioner> again = load_captioner(folder.path());
  EXPECT_EQ(again->start, 8);
  expect_close(again->logits(x, row, pass), in_a_row, 0);
}

// Behind a convolutional network, layers of a transformer let places see each other.
std::unique_ptr<VisionEncoderDecoder> with_map_encoder() {
  CreateOptions options;
  options.num_classes = 0;
  options.model_kwargs = R"({"layers": [1, 1], "channels": [8, 16], "img_size": 32})";
  return std::make_unique<VisionEncoderDecoder>(
      create_model("resnet18", options),
      R"({"vocab_size": 9, "n_embd": 8, "n_layer": 2, "n_head": 2, "bos_token_id": 8, "eos_token_id": 8})",
      "the decoder", 2);
}

TEST(VisionEncoderDecoder, HasLayersOverTheMap) {
  const std::unique_ptr<VisionEncoderDecoder> model = with_map_encoder();
  nn::Pass pass;
  const Tensor x = test::random_tensor({2, 3, 32, 32}, 1);
  const Tensor memory = model->look(x, pass);
  EXPECT_EQ(memory.shape().str(), "[2, 16, 8]");
  // The corner that is changed is seen from the opposite one.
  Tensor changed = x.clone();
  changed.narrow(2, 0, 4).narrow(3, 0, 4).fill(3);
  const Tensor other = model->look(changed, pass);
  double apart = 0;
  for (std::int64_t i = 0; i < 8; ++i) {
    apart = std::max(apart, std::abs(static_cast<double>(memory.values()[static_cast<std::size_t>(15 * 8 + i)] -
                                                         other.values()[static_cast<std::size_t>(15 * 8 + i)])));
  }
  EXPECT_GT(apart, 1e-4);
  EXPECT_EQ(model->layer_of("map_encoder.blocks.1.attn.qkv.weight"), model->image_model.net->depth());

  const test::TemporaryFolder folder;
  model->write(folder.path(), DType::f32);
  const std::unique_ptr<Captioner> again = load_captioner(folder.path());
  const Texts texts{Tensor::from<std::int64_t>({8, 1, 2, 8, 4, 0}, {2, 3})};
  expect_close(again->logits(x, texts, pass), model->logits(x, texts, pass), 0);
}

// Several texts about an image give what they give about copies of it, and its gradients add up.
TEST(VisionEncoderDecoder, LooksOnceForSeveralTexts) {
  const std::unique_ptr<VisionEncoderDecoder> model = with_map_encoder();
  const Tensor x = test::random_tensor({2, 3, 32, 32}, 1);
  const Tensor copies = ops::index_select(x, 0, repeated_rows(2, 2));
  const Texts row{Tensor::from<std::int64_t>({8, 1, 2, 8, 4, 8, 5, 6, 8}, {1, 9}),
                  {},
                  Tensor::from<std::int64_t>({0, 3, 5, 8, 9}, {5})};
  const Tensor next = Tensor::from<std::int64_t>({1, 2, 8, 4, 8, 5, 6, 8, 8}, {9});
  const auto learn = [&](const Tensor& images) {
    model->parameters.zero_grad();
    autograd::Tape tape;
    nn::Pass pass;
    const Tensor logits = model->logits(images, row, pass);
    tape.backward(ops::cross_entropy(ops::reshape(logits, {-1, 9}), next));
    std::vector<Tensor> result = {logits.detach()};
    for (const nn::Parameter& parameter : model->parameters.all()) {
      if (!parameter.buffer) {
        result.push_back(autograd::grad(parameter.value).clone());
      }
    }
    return result;
  };
  const std::vector<Tensor> once = learn(x);
  const std::vector<Tensor> copied = learn(copies);
  ASSERT_EQ(once.size(), copied.size());
  for (std::size_t i = 0; i < once.size(); ++i) {
    expect_close(once[i], copied[i], 1e-4);
  }
  nn::Pass pass;
  EXPECT_THAT(error_of([&] {
                model->logits(test::random_tensor({3, 3, 32, 32}, 1), row, pass);
              }),
              HasSubstr("4 texts cannot be about 3 images, equally many about each"));
}

}  // namespace
}  // namespace vitrail::models
