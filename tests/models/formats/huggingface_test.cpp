#include "vitrail/models/formats/huggingface.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/layers.h"
#include "vitrail/autograd/tape.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/models/folder.h"
#include "vitrail/models/model.h"
#include "vitrail/models/vit/mae.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden_path;

NameMap names_in_folder(const fs::path& folder) {
  const FolderConfig config = read_folder(folder);
  return names_in(io::Safetensors::open(folder / "model.safetensors"), config.names, config.prefix);
}

// The parameters' gradients are those of `golden`, START + "grad." + the name that `map` has for each.
void expect_hub_gradients(const Model& model, const NameMap& map, const io::Safetensors& golden,
                          const std::string& start = "") {
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    std::vector<Tensor> parts;
    const std::vector<std::string> theirs = map.theirs_of(parameter.name);
    for (const std::string& name : theirs) {
      parts.push_back(golden.get(start + "grad." + name));
    }
    // The gradient of a sum is that of its first part.
    const bool sum = theirs.size() == 2;
    test::expect_gradient(autograd::grad(parameter.value), sum ? parts[0] : map.join(parameter.name, parts), 1e-3,
                          parameter.name);
  }
}

// A folder that transformers wrote, and what it computes with it (tools/golden/huggingface.py).
class HubVariant : public testing::TestWithParam<const char*> {
 protected:
  fs::path folder() const { return golden_path("models") / GetParam(); }
  io::Safetensors expected() const { return io::Safetensors::open(folder() / "expected.safetensors"); }
};

TEST_P(HubVariant, GivesTransformersLogits) {
  const Model model = open_model(folder().string());
  nn::Pass pass;
  expect_close(model.net->forward(expected().get("x"), pass), expected().get("logits"), 1e-4);
  nn::Pass half{.dtype = DType::bf16};
  expect_close(model.net->forward(expected().get("x"), half), expected().get("logits"), 2e-2);
}

TEST_P(HubVariant, HasTransformersGradients) {
  const Model model = load_model(folder());
  const io::Safetensors golden = expected();
  nn::Pass pass;
  autograd::Tape tape;
  tape.backward(model.net->forward(golden.get("x"), pass), golden.get("seed"));
  expect_hub_gradients(model, names_in_folder(folder()), golden);
}

// timm's layout and back: the same bits, but for what only transformers has (a pooler, a mask token, and a position
// that timm's class token has taken in).
TEST_P(HubVariant, IsConvertedThereAndBackToTheSameBits) {
  const test::TemporaryFolder temporary;
  save_model(load_model(folder()), temporary / "timm");
  const nlohmann::json timm = io::read_json(temporary / "timm/config.json");
  EXPECT_TRUE(timm.contains("architecture"));
  save_model(load_model(temporary / "timm"), temporary / "hub", Layout::huggingface);
  const io::Safetensors before = io::Safetensors::open(folder() / "model.safetensors");
  const io::Safetensors after = io::Safetensors::open(temporary / "hub/model.safetensors");
  const bool summed = std::string(GetParam()).find("registers") != std::string::npos;
  for (const std::string& name : before.names()) {
    if (name.find("pooler") != std::string::npos || name.find("mask_token") != std::string::npos ||
        (summed && (name.ends_with("cls_token") || name.ends_with("position_embeddings")))) {
      continue;
    }
    ASSERT_TRUE(after.contains(name)) << name;
    expect_close(after.get(name), before.get(name), 0, name);
  }
  for (const std::string& name : after.names()) {
    EXPECT_TRUE(before.contains(name)) << name;
  }
  const nlohmann::json config = io::read_json(temporary / "hub/config.json");
  const nlohmann::json original = io::read_json(folder() / "config.json");
  for (const char* key : {"architectures",
                          "model_type",
                          "hidden_size",
                          "num_hidden_layers",
                          "num_attention_heads",
                          "intermediate_size",
                          "mlp_ratio",
                          "hidden_act",
                          "layer_norm_eps",
                          "image_size",
                          "patch_size",
                          "num_channels",
                          "qkv_bias",
                          "id2label",
                          "label2id",
                          "use_swiglu_ffn",
                          "layerscale_value",
                          "num_register_tokens",
                          "rope_theta",
                          "query_bias",
                          "key_bias",
                          "value_bias",
                          "use_gated_mlp",
                          "use_absolute_position_embeddings",
                          "use_relative_position_bias",
                          "use_shared_relative_position_bias",
                          "use_mean_pooling",
                          "layer_scale_init_value",
                          "embed_dim",
                          "depths",
                          "num_heads",
                          "window_size",
                          "pretrained_window_sizes"}) {
    if (original.contains(key)) {
      EXPECT_EQ(config.value(key, nlohmann::json()), original[key]) << key;
      EXPECT_EQ(config[key].is_number_integer(), original[key].is_number_integer()) << key;  // transformers is strict
    }
  }
  const Model again = load_model(temporary / "hub");
  nn::Pass pass;
  expect_close(again.net->forward(expected().get("x"), pass), expected().get("logits"), 1e-4);
  const PretrainedConfig a = load_model(folder()).pretrained;
  EXPECT_EQ(again.pretrained.mean, a.mean);
  EXPECT_EQ(again.pretrained.std, a.std);
  EXPECT_EQ(again.pretrained.crop_mode, a.crop_mode);
  EXPECT_TRUE(again.pretrained.processor);  // as save_model() writes it for a folder that had none
  if (a.processor) {
    EXPECT_EQ(again.pretrained.processor, a.processor);
  }
  const auto longer = static_cast<double>(std::max(a.height, a.width));  // and its pixels before the crop:
  EXPECT_EQ(std::floor(longer / again.pretrained.crop_pct), std::floor(longer / a.crop_pct));
  EXPECT_EQ(again.pretrained.interpolation, a.interpolation);
  EXPECT_EQ(again.pretrained.label_names, a.label_names);
  EXPECT_EQ(again.pretrained.height, a.height);
}

INSTANTIATE_TEST_SUITE_P(HuggingFace, HubVariant,
                         testing::Values("hf_vit", "hf_vit_unusual", "hf_vit_model", "hf_deit", "hf_deit_teacher",
                                         "hf_dinov2", "hf_dinov2_gated", "hf_dinov2_registers",
                                         "hf_dinov2_registers_gated", "hf_dinov3", "hf_dinov3_gated", "hf_dinov3_bias",
                                         "hf_dinov3_bare", "hf_beit", "hf_beit_unusual", "hf_beit_model", "hf_swin",
                                         "hf_swin_model", "hf_swin_padded", "hf_swinv2", "hf_swinv2_unusual",
                                         "hf_swinv2_padded"),
                         [](const auto& info) { return info.param; });

// A vision tower in a folder of its own, which is read and not written.
class HubTower : public HubVariant {};

TEST_P(HubTower, GivesWhatTransformersPoolsAndItsGradients) {
  const Model model = load_model(folder());
  const io::Safetensors golden = expected();
  nn::Pass pass;
  autograd::Tape tape;
  const Tensor pooled = model.net->forward(golden.get("x"), pass);
  expect_close(pooled, golden.get("logits"), 1e-4);
  tape.backward(pooled, golden.get("seed"));
  expect_hub_gradients(model, names_in_folder(folder()), golden);
}

INSTANTIATE_TEST_SUITE_P(HuggingFace, HubTower, testing::Values("hf_clip_vision", "hf_siglip_vision"),
                         [](const auto& info) { return info.param; });

// Images of another size than the model's, whose positions are resized or whose windows do not divide them
// (hf_sizes.safetensors, which has cases NAME.HEIGHTxWIDTH). DINOv2 and Swin take them as they come; the others are
// loaded for that size, as with transformers' interpolate_pos_encoding.
TEST(HuggingFace, ImagesOfOtherSizesGetTransformersLogitsAndGradients) {
  const io::Safetensors golden = test::golden("models/hf_sizes.safetensors");
  const std::string logits = ".logits";
  int cases = 0;
  for (const std::string& key : golden.names()) {
    if (!key.ends_with(logits) || !key.starts_with("hf_")) {
      continue;
    }
    ++cases;
    SCOPED_TRACE(key);
    const std::string start = key.substr(0, key.size() - logits.size());
    const std::size_t dot = start.find('.');
    const std::size_t times = start.find('x', dot);
    const std::int64_t height = std::stoll(start.substr(dot + 1, times - dot - 1));
    const std::int64_t width = std::stoll(start.substr(times + 1));
    const fs::path folder = golden_path("models") / start.substr(0, dot);
    Model model = load_model(folder);
    if (!model.net->takes_any_size()) {
      CreateOptions options;
      options.model_kwargs = nlohmann::json{{"img_size", {height, width}}}.dump();
      model = load_model(folder, options);
    }
    const Tensor x = golden.get("x").narrow(2, 0, height).narrow(3, 0, width).contiguous();
    nn::Pass pass;
    autograd::Tape tape;
    const Tensor y = model.net->forward(x, pass);
    expect_close(y, golden.get(key), 1e-4);
    if (!golden.contains(start + ".seed")) {
      continue;
    }
    tape.backward(y, golden.get(start + ".seed"));
    const NameMap names = names_in_folder(folder);
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      const std::vector<std::string> theirs = names.theirs_of(parameter.name);
      const std::string name = start + ".grad." + theirs.front();
      if (theirs.size() == 1 && golden.contains(name)) {
        const Tensor joined = names.join(parameter.name, {golden.get(name)});
        test::expect_gradient(autograd::grad(parameter.value), joined, 1e-3, parameter.name);
      }
    }
  }
  EXPECT_EQ(cases, 24);
}

// Scores of ±100 see through a mask of -100, but transformers' Swin V2 adds its mask twice.
TEST(HuggingFace, SwinV2sMaskCountsTwice) {
  CreateOptions options;
  options.model_kwargs = R"({"window_size": 2})";
  const Model model = load_model(golden_path("models/hf_swinv2_padded"), options);
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    if (parameter.name.ends_with("logit_scale")) {
      Tensor scale = parameter.value;
      scale.fill(5);
      scale.touch();
    }
  }
  const io::Safetensors golden = test::golden("models/hf_sizes.safetensors");
  nn::Pass pass;
  expect_close(model.net->forward(golden.get("x"), pass), golden.get("largest_scale.logits"), 1e-3);
}

// What timm has no word for is kept beside its own arguments, so that a model goes on to compute as transformers does.
TEST(HuggingFace, ItsWaysOfWindowsAndPositionsStayInTimmsLayout) {
  const io::Safetensors golden = test::golden("models/hf_sizes.safetensors");
  for (const std::string start : {"hf_dinov2.37x52", "hf_swin.43x37", "hf_swinv2.25x64"}) {
    const test::TemporaryFolder temporary;
    const std::string name = start.substr(0, start.find('.'));
    const std::int64_t height = std::stoll(start.substr(name.size() + 1, 2));
    const std::int64_t width = std::stoll(start.substr(name.size() + 4));
    save_model(load_model(golden_path("models") / name), temporary / "timm");
    const nlohmann::json config = io::read_json(temporary / "timm/config.json");
    for (const char* key : {"window_fit", "pos_embed_resize", "dynamic_img_crop"}) {
      EXPECT_FALSE(config.at("model_args").contains(key)) << key;
    }
    const Model model = load_model(temporary / "timm");
    const Tensor x = golden.get("x").narrow(2, 0, height).narrow(3, 0, width).contiguous();
    nn::Pass pass;
    expect_close(model.net->forward(x, pass), golden.get(start + ".logits"), 1e-4, start);
  }
}

TEST(HuggingFace, ImagesArePreparedAsThePreprocessorSays) {
  const PretrainedConfig vit = load_model(golden_path("models/hf_vit")).pretrained;
  EXPECT_EQ(vit.crop_mode, "squash");
  EXPECT_EQ(vit.crop_pct, 1);
  EXPECT_EQ(vit.interpolation, "bilinear");
  EXPECT_EQ(vit.mean, (std::vector<double>{0.5, 0.5, 0.5}));
  EXPECT_EQ(vit.label_names, (std::vector<std::string>{"ant", "bee", "cat", "dog", "elk", "fox", "gnu"}));
  const PretrainedConfig bit = load_model(golden_path("models/hf_vit_model")).pretrained;
  EXPECT_EQ(bit.crop_mode, "center");
  EXPECT_EQ(std::floor(32 / bit.crop_pct), 36);
  EXPECT_EQ(bit.mean, (std::vector<double>{0.1, 0.2, 0.3}));
  const PretrainedConfig deit = load_model(golden_path("models/hf_deit")).pretrained;
  EXPECT_EQ(deit.crop_mode, "squash");
  EXPECT_EQ(std::floor(32 / deit.crop_pct), 36);
  EXPECT_EQ(deit.interpolation, "bicubic");
  EXPECT_TRUE(load_model(golden_path("models/hf_vit_unusual")).pretrained.label_names.empty());  // LABEL_0 …
}

TEST(HuggingFace, AnotherNumberOfClassesGivesANewHead) {
  for (const char* name : {"hf_vit", "hf_vit_model", "hf_dinov2", "hf_deit_teacher", "hf_mae"}) {
    const Model model = load_model(golden_path("models") / name, {.num_classes = 3});
    nn::Pass pass;
    EXPECT_EQ(model.net->forward(test::random_tensor({1, 3, 32, 32}), pass).shape(), (Shape{1, 3})) << name;
    EXPECT_TRUE(model.pretrained.label_names.empty()) << name;
  }
  EXPECT_EQ(load_model(golden_path("models/hf_vit"), {.num_classes = 0}).net->num_classes(), 0);
}

TEST(HuggingFace, AMaskedAutoencoderOpensAsItsEncoder) {
  const io::Safetensors expected = test::golden("models/hf_mae/encoder.safetensors");
  const Model model = load_model(golden_path("models/hf_mae"));
  nn::Pass pass;
  expect_close(model.net->forward(expected.get("x"), pass), expected.get("logits"), 1e-4);
  EXPECT_TRUE(model.net->parameters.at("pos_embed").trainable);
}

// With a head behind it, by the class token as transformers' ViTForImageClassification, or by the mean of the patches
// as He et al. do and timm's VisionTransformer.
TEST(HuggingFace, AMaskedAutoencoderIsFineTunedByTheClassTokenOrTheMeanOfThePatches) {
  const fs::path folder = golden_path("models/hf_mae");
  const io::Safetensors golden = io::Safetensors::open(folder / "encoder.safetensors");
  for (const std::string pool : {"token", "avg"}) {
    SCOPED_TRACE(pool);
    CreateOptions options{.num_classes = 5};
    options.model_kwargs = nlohmann::json{{"global_pool", pool}}.dump();
    const Model model = load_model(folder, options);
    for (const char* name : {"head.weight", "head.bias"}) {
      const nn::Parameter& parameter = model.net->parameters.at(name);
      parameter.value.copy_from(golden.get(name));
      parameter.value.touch();
    }
    nn::Pass pass;
    autograd::Tape tape;
    const Tensor logits = model.net->forward(golden.get("x"), pass);
    expect_close(logits, golden.get(pool + ".logits"), 1e-4);
    tape.backward(logits, golden.get("seed"));
    expect_hub_gradients(model, pool == "token" ? names_in_folder(folder) : NameMap(), golden, pool + ".");
  }
}

// As `vitrail convert` does: its encoder in timm's layout, and that one as transformers' ViTModel, all with the same
// bits. The decoder stays behind.
TEST(HuggingFace, AMaskedAutoencodersEncoderIsConverted) {
  const test::TemporaryFolder temporary;
  const fs::path folder = golden_path("models/hf_mae");
  const Model encoder = load_model(folder);
  save_model(encoder, temporary / "timm");
  const nlohmann::json timm = io::read_json(temporary / "timm/config.json");
  EXPECT_EQ(timm.at("architecture"), encoder.architecture);
  EXPECT_EQ(timm.at("num_classes"), 0);
  save_model(load_model(temporary / "timm"), temporary / "again", Layout::huggingface);
  save_model(encoder, temporary / "at_once", Layout::huggingface);
  const io::Safetensors before = io::Safetensors::open(folder / "model.safetensors");
  const std::string prefix = "vit.";
  const auto of_encoder =
      std::ranges::count_if(before.names(), [&](const std::string& name) { return name.starts_with(prefix); });
  for (const char* way : {"again", "at_once"}) {
    const nlohmann::json config = io::read_json(temporary / way / "config.json");
    EXPECT_EQ(config.at("model_type"), "vit");
    EXPECT_EQ(config.at("architectures"), nlohmann::json::array({"ViTModel"}));
    const io::Safetensors after = io::Safetensors::open(temporary / way / "model.safetensors");
    EXPECT_EQ(std::ssize(after.names()), of_encoder);
    for (const std::string& name : after.names()) {
      expect_close(after.get(name), before.get(prefix + name), 0, name);
    }
    const Model model = load_model(temporary / way);
    const Tensor x = test::random_tensor({2, 3, 32, 32});
    nn::Pass pass;
    expect_close(model.net->forward(x, pass), encoder.net->forward(x, pass), 0);
    EXPECT_EQ(model.pretrained.mean, encoder.pretrained.mean);
    EXPECT_EQ(model.pretrained.crop_mode, encoder.pretrained.crop_mode);
    EXPECT_EQ(model.pretrained.interpolation, encoder.pretrained.interpolation);
  }
}

}  // namespace
}  // namespace vitrail::models
