#include "vitrail/models/joint/clip.h"

#include <fstream>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/json.h"
#include "vitrail/models/joint/clip_folder.h"
#include "vitrail/models/model.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/normalize.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/products/matmul.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden_path;
using ::testing::HasSubstr;

// A folder that transformers wrote, and what it computes with it (tools/golden/clip.py, siglip.py).
class ClipVariant : public testing::TestWithParam<const char*> {
 protected:
  fs::path folder() const { return golden_path("models/joint") / GetParam(); }
  io::Safetensors expected() const { return io::Safetensors::open(folder() / "expected.safetensors"); }
};

TEST_P(ClipVariant, GivesTransformersEmbeddingsAndLogits) {
  const JointModel model = load_clip(folder());
  const io::Safetensors golden = expected();
  for (const auto& [dtype, tolerance] : {std::pair(DType::f32, 1e-5), {DType::bf16, 4e-2}}) {
    nn::Pass pass{.dtype = dtype};
    const Tensor images = model.net->image_embeds(golden.get("pixel_values"), pass);
    const Tensor texts = model.net->text_embeds({golden.get("input_ids")}, pass);
    expect_close(images, golden.get("image_embeds"), tolerance);
    expect_close(texts, golden.get("text_embeds"), tolerance);
    expect_close(model.net->logits_per_image(images, texts), golden.get("logits_per_image"), tolerance);
  }
}

TEST_P(ClipVariant, HasTransformersLossAndGradients) {
  const JointModel model = load_clip(folder());
  const io::Safetensors golden = expected();
  nn::Pass pass;
  autograd::Tape tape;
  const Tensor images = model.net->image_embeds(golden.get("pixel_values"), pass);
  const Tensor logits = model.net->logits_per_image(images, model.net->text_embeds({golden.get("input_ids")}, pass));
  const Tensor right = Tensor::from<std::int64_t>({0, 1, 2}, {3});
  const Tensor loss =
      model.net->is_siglip()
          ? ops::binary_cross_entropy_with_logits(logits, Tensor::from<float>({1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3})) *
                3.0F
          : (ops::cross_entropy(logits, right) + ops::cross_entropy(ops::transpose(logits, 0, 1), right)) * 0.5F;
  EXPECT_NEAR(loss.item(), golden.get("loss").item(), 1e-5 * std::max(1.0F, golden.get("loss").item()));
  tape.backward(loss);
  const io::NamedTensors gradients =
      clip_tensors(*model.net, [](const nn::Parameter& parameter) { return autograd::grad(parameter.value); });
  EXPECT_EQ(std::ssize(gradients), std::ssize(io::Safetensors::open(folder() / "model.safetensors").names()));
  for (const auto& [name, gradient] : gradients) {
    test::expect_gradient(gradient, golden.get("grad." + name), 1e-4, name);
  }
}

TEST_P(ClipVariant, IsSavedToTheSameBitsAndFields) {
  const test::TemporaryFolder written;
  write_clip(load_clip(folder()), written.path());
  const io::Safetensors before = io::Safetensors::open(folder() / "model.safetensors");
  const io::Safetensors after = io::Safetensors::open(written / "model.safetensors");
  ASSERT_EQ(std::set<std::string>(after.names().begin(), after.names().end()),
            std::set<std::string>(before.names().begin(), before.names().end()));
  for (const std::string& name : before.names()) {
    expect_close(after.get(name), before.get(name), 0, name);
  }
  EXPECT_EQ(io::read_json(written / "config.json"), io::read_json(folder() / "config.json"));
  EXPECT_TRUE(is_clip_folder(written.path()));
}

// What stands behind the end token is seen by no token before it; SigLIP's texts keep their padding.
TEST_P(ClipVariant, GivesTextsInARowWhatTheyGetWithPadding) {
  const JointModel model = load_clip(folder());
  const io::Safetensors golden = expected();
  const Tensor ids = golden.get("input_ids");
  TextRow row;
  for (std::int64_t b = 0; b < ids.size(0); ++b) {
    const std::span<const std::int64_t> all = ids.span<std::int64_t>().subspan(
        static_cast<std::size_t>(b * ids.size(1)), static_cast<std::size_t>(ids.size(1)));
    const auto end = std::ranges::max_element(all);  // CLIP's end token has the largest id
    row.add(model.net->is_siglip() ? all : all.first(static_cast<std::size_t>(end - all.begin()) + 1));
  }
  nn::Pass pass;
  expect_close(model.net->text_embeds(row.texts(), pass), golden.get("text_embeds"), 1e-5);
}

// The vision tower is a model of images of its own, whose features are what is projected.
TEST_P(ClipVariant, HasAVisionTowerOfItsOwn) {
  const JointModel joint = load_clip(folder());
  const Model tower = load_model(folder());
  const io::Safetensors golden = expected();
  nn::Pass pass;
  EXPECT_EQ(tower.net->num_classes(), 0);
  EXPECT_EQ(tower.pretrained.mean, joint.pretrained.mean);
  EXPECT_EQ(tower.pretrained.crop_mode, joint.pretrained.crop_mode);
  const Tensor features = tower.net->forward(golden.get("pixel_values"), pass);
  const nn::Parameter* const projection = joint.net->parameters.find("visual_projection.weight");
  expect_close(
      ops::normalize(projection == nullptr ? features : ops::matmul(features, ops::transpose(projection->value, 0, 1))),
      golden.get("image_embeds"), 1e-5);
  const test::TemporaryFolder timm;
  save_model(tower, timm / "timm");
  expect_close(load_model(timm / "timm").net->forward(golden.get("pixel_values"), pass), features, 0);
}

INSTANTIATE_TEST_SUITE_P(All, ClipVariant, testing::Values("clip", "clip_gelu", "siglip", "siglip_json"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST(Clip, TakesTheActivationOfItsConfig) {
  const io::Safetensors golden = test::golden("models/joint/clip/expected.safetensors");
  const test::TemporaryFolder other;
  fs::copy(golden_path("models/joint/clip"), other.path(), fs::copy_options::recursive);
  nlohmann::json config = io::read_json(other / "config.json");
  config["vision_config"]["hidden_act"] = "gelu";
  std::ofstream(other / "config.json") << config;
  const JointModel model = load_clip(other.path());
  nn::Pass pass;
  EXPECT_GT(test::relative_error(model.net->image_embeds(golden.get("pixel_values"), pass), golden.get("image_embeds")),
            1e-3);
  expect_close(model.net->text_embeds({golden.get("input_ids")}, pass), golden.get("text_embeds"), 1e-5);
}

TEST(Clip, ReadsTheFieldsOfOlderFolders) {
  const nlohmann::json config = {{"projection_dim", 10},
                                 {"text_config", {{"hidden_size", 64}}},
                                 {"text_config_dict", {{"hidden_size", 32}, {"num_hidden_layers", 1}}},
                                 {"vision_config", {{"num_hidden_layers", 1}, {"image_size", 64}}},
                                 {"vision_config_dict", nullptr}};
  const JointModel model = create_clip(config.dump(), "it", {.fill = nn::Fill::meta});
  EXPECT_EQ(model.net->config().text.dim, 32);
  EXPECT_EQ(model.net->config().text.block.mlp.hidden, 2048);
  EXPECT_EQ(model.net->parameters.at("vision_model.pos_embed").value.shape(), (Shape{1, 5, 768}));
  EXPECT_EQ(model.pretrained.height, 64);
}

// The standard deviations of transformers' _init_weights.
TEST(Clip, StartsAsTransformers) {
  const nlohmann::json tower = {
      {"hidden_size", 64}, {"intermediate_size", 128}, {"num_attention_heads", 2}, {"num_hidden_layers", 2}};
  nlohmann::json config = {{"projection_dim", 96}, {"vision_config", tower}, {"text_config", tower}};
  config["vision_config"]["image_size"] = 256;
  const JointModel model = create_clip(config.dump(), "it", {.seed = 3});
  const auto deviation = [&](const std::string& name) {
    double squares = 0;
    const std::vector<float> values = model.net->parameters.at(name).value.values();
    for (const float value : values) {
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  for (const std::string block : {"vision_model.blocks.1.", "text_model.encoder.layers.1."}) {
    EXPECT_NEAR(deviation(block + "attn.qkv.weight"), 0.125 / 2, 0.003);
    EXPECT_NEAR(deviation(block + "attn.proj.weight"), 0.125, 0.006);
    EXPECT_NEAR(deviation(block + "mlp.fc1.weight"), 0.125 / std::sqrt(2.0), 0.004);
    EXPECT_NEAR(deviation(block + "mlp.fc2.weight"), 0.125 / 2, 0.003);
    EXPECT_EQ(deviation(block + "mlp.fc2.bias"), 0);
    EXPECT_EQ(deviation(block + "norm1.weight"), 1);
  }
  EXPECT_NEAR(deviation("vision_model.cls_token"), 0.125, 0.04);
  EXPECT_NEAR(deviation("vision_model.patch_embed.proj.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("vision_model.pos_embed"), 0.02, 0.001);
  EXPECT_NEAR(deviation("text_model.embeddings.token_embedding.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("text_projection.weight"), 0.125, 0.006);
  EXPECT_FLOAT_EQ(static_cast<float>(deviation("logit_scale")), 2.6592F);
}

// And those of SigLIP's, of uniform and truncated draws.
TEST(Siglip, StartsAsTransformers) {
  const nlohmann::json tower = {
      {"hidden_size", 64}, {"intermediate_size", 192}, {"num_attention_heads", 2}, {"num_hidden_layers", 2}};
  const nlohmann::json config = {{"model_type", "siglip"}, {"vision_config", tower}, {"text_config", tower}};
  const JointModel model = create_clip(config.dump(), "it", {.seed = 3});
  const auto deviation = [&](const std::string& name) {
    double squares = 0;
    const std::vector<float> values = model.net->parameters.at(name).value.values();
    for (const float value : values) {
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  const double square = std::sqrt(2.0 / 128);  // of xavier_uniform_ for [64, 64]
  for (const std::string block : {"vision_model.blocks.1.", "text_model.encoder.layers.1."}) {
    EXPECT_NEAR(deviation(block + "attn.qkv.weight"), square, 0.003);
    EXPECT_NEAR(deviation(block + "attn.proj.weight"), square, 0.004);
    EXPECT_NEAR(deviation(block + "mlp.fc1.weight"), std::sqrt(2.0 / 256), 0.003);
    EXPECT_LT(deviation(block + "mlp.fc2.bias"), 2e-6);
    EXPECT_GT(deviation(block + "mlp.fc2.bias"), 5e-7);
    EXPECT_EQ(deviation(block + "attn.qkv.bias"), 0);
  }
  EXPECT_NEAR(deviation("vision_model.attn_pool.latent"), square, 0.03);
  EXPECT_NEAR(deviation("vision_model.attn_pool.q.weight"), std::sqrt(2.0 / 256), 0.004);
  EXPECT_NEAR(deviation("vision_model.attn_pool.kv.weight"), std::sqrt(2.0 / 256), 0.004);
  EXPECT_NEAR(deviation("vision_model.attn_pool.proj.weight"), 0.125, 0.006);
  EXPECT_NEAR(deviation("vision_model.pos_embed"), 0.125, 0.006);
  EXPECT_NEAR(deviation("vision_model.patch_embed.proj.weight"), 1 / std::sqrt(768.0), 0.001);
  EXPECT_NEAR(deviation("text_model.embeddings.token_embedding.weight"), 0.125, 0.002);
  EXPECT_NEAR(deviation("text_model.head.weight"), 0.125, 0.006);
  EXPECT_EQ(deviation("logit_scale"), 0);
  EXPECT_EQ(deviation("logit_bias"), 0);
}

TEST(Siglip, HasASigmoidOfEachPair) {
  const JointModel model = load_clip(golden_path("models/joint/siglip"));
  expect_close(model.net->probabilities(Tensor::from<float>({0, 2, -1, 0}, {2, 2})),
               Tensor::from<float>({0.5F, 0.8807971F, 0.2689414F, 0.5F}, {2, 2}), 1e-6);
  EXPECT_TRUE(model.net->is_head("text_model.head.weight"));
  EXPECT_FALSE(model.net->is_head("vision_model.attn_pool.proj.weight"));
  EXPECT_EQ(model.pretrained.mean, (std::vector<double>{0.5, 0.5, 0.5}));
}

TEST(Siglip, SaysWhatIsWrong) {
  const fs::path folder = golden_path("models/joint/siglip");
  const test::TemporaryFolder other;
  fs::copy(folder, other.path(), fs::copy_options::recursive);
  const nlohmann::json config = io::read_json(folder / "config.json");
  const auto error_with = [&](const char* tower, const char* key, const nlohmann::json& value) {
    nlohmann::json changed = config;
    changed[tower][key] = value;
    std::ofstream(other / "config.json") << changed;
    return error_of([&] { load_clip(other.path()); });
  };
  nlohmann::json classifier = config;
  classifier["architectures"] = {"SiglipForImageClassification"};
  std::ofstream(other / "config.json") << classifier;
  EXPECT_THAT(error_of([&] { load_clip(other.path()); }),
              HasSubstr("is transformers' SiglipForImageClassification, a classifier without texts"));
  EXPECT_THAT(error_with("vision_config", "vision_use_head", false),
              HasSubstr("'vision_config': without its head ('vision_use_head') the tower gives no vector"));
  EXPECT_THAT(error_with("text_config", "projection_size", 12),
              HasSubstr("'text_config': vectors of texts have 12 numbers ('projection_size'), those of images 16"));
  EXPECT_THAT(error_with("vision_config", "intermediate_size", 21),
              HasSubstr("'vision_model.head.mlp.fc1.weight' has the shape [20, 16], but the model's is [21, 16]"));
}

TEST(Clip, CountsLayersFromAbove) {
  nlohmann::json config;
  config["vision_config"] = {{"num_hidden_layers", 3}};
  config["text_config"] = {{"num_hidden_layers", 1}};
  const JointModel model = create_clip(config.dump(), "it", {.fill = nn::Fill::meta});
  EXPECT_EQ(model.net->depth(), 3);
  EXPECT_EQ(model.net->layer_of("vision_model.patch_embed.proj.weight"), 0);
  EXPECT_EQ(model.net->layer_of("text_model.embeddings.token_embedding.weight"), 0);
  EXPECT_EQ(model.net->layer_of("vision_model.blocks.0.norm1.bias"), 1);
  EXPECT_EQ(model.net->layer_of("text_model.encoder.layers.0.norm1.bias"), 3);
  EXPECT_EQ(model.net->layer_of("text_model.final_layer_norm.bias"), 4);
  EXPECT_EQ(model.net->layer_of("logit_scale"), 4);
}

// The bias of SigLIP's loss has no place in a CLIPModel, but is kept.
TEST(Clip, KeepsABiasOfItsLogits) {
  const fs::path folder = golden_path("models/joint/clip");
  const test::TemporaryFolder with_bias;
  nlohmann::json config = io::read_json(folder / "config.json");
  config["vitrail"] = {{"logit_bias", -7.3}};
  JointModel model = create_clip(config.dump(), "it");
  write_clip(model, with_bias.path());
  EXPECT_FALSE(io::Safetensors::open(with_bias / "model.safetensors").contains("logit_bias"));
  const JointModel again = load_clip(with_bias.path());
  EXPECT_EQ(again.net->logit_bias().item(), -7.3F);
  const Tensor one = Tensor::from<float>({1, 0}, {1, 2});
  EXPECT_FLOAT_EQ(again.net->logits_per_image(one, one).item(), std::exp(2.6592F) - 7.3F);
}

TEST(Clip, SaysWhatIsWrong) {
  const fs::path folder = golden_path("models/joint/clip");
  const JointModel model = load_clip(folder);
  nn::Pass pass;
  EXPECT_EQ(error_of([&] {
              model.net->text_embeds({Tensor::from<std::int64_t>({110, 111, 110, 5}, {2, 2})}, pass);
            }),
            "text 1 has no end token 111");
  EXPECT_EQ(error_of([&] {
              model.net->text_embeds({Tensor::zeros({1, 17}, DType::i64)}, pass);
            }),
            "the text has 17 tokens, but the model is made for at most 16");
  EXPECT_EQ(
      error_of([&] { load_clip(golden_path("models/hf_vit")); }),
      fmt::format(
          "'{}' is no model of images and texts: the \"model_type\" in its config.json is neither 'clip' nor 'siglip'",
          golden_path("models/hf_vit").string()));

  const test::TemporaryFolder other;
  fs::copy(folder, other.path(), fs::copy_options::recursive);
  nlohmann::json config = io::read_json(folder / "config.json");
  config["text_config"]["num_attention_heads"] = 5;
  std::ofstream(other / "config.json") << config;
  EXPECT_THAT(error_of([&] { load_clip(other.path()); }),
              HasSubstr("config.json: 'text_config': the width 12 cannot be divided among 5 heads"));
  config["text_config"]["num_attention_heads"] = 3;
  config["projection_dim"] = 11;
  std::ofstream(other / "config.json") << config;
  EXPECT_THAT(error_of([&] { load_clip(other.path()); }),
              HasSubstr("'visual_projection.weight' has the shape [10, 16], but the model's is [11, 16]"));
  config["projection_dim"] = 10;
  config["vision_config"]["image_size"] = 16;
  std::ofstream(other / "config.json") << config;
  EXPECT_THAT(error_of([&] { load_clip(other.path()); }),
              HasSubstr("its preprocessor_config.json makes images of 12 x 12 pixels, but the model takes 16 x 16"));
}

}  // namespace
}  // namespace vitrail::models
