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
  const auto shorter = static_cast<double>(std::min(a.height, a.width));  // and its pixels before the crop:
  EXPECT_EQ(std::floor(shorter / again.pretrained.crop_pct), std::floor(shorter / a.crop_pct));
  EXPECT_EQ(again.pretrained.interpolation, a.interpolation);
  EXPECT_EQ(again.pretrained.label_names, a.label_names);
  EXPECT_EQ(again.pretrained.height, a.height);
}

INSTANTIATE_TEST_SUITE_P(HuggingFace, HubVariant,
                         testing::Values("hf_vit", "hf_vit_unusual", "hf_vit_model", "hf_deit", "hf_deit_teacher",
                                         "hf_dinov2", "hf_dinov2_gated", "hf_dinov2_registers",
                                         "hf_dinov2_registers_gated", "hf_dinov3", "hf_dinov3_gated", "hf_dinov3_bias",
                                         "hf_beit", "hf_beit_unusual", "hf_beit_model", "hf_swin", "hf_swin_model",
                                         "hf_swin_padded", "hf_swinv2", "hf_swinv2_unusual", "hf_swinv2_padded"),
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

// A copy of a folder that may be spoilt.
class HubFolder : public testing::Test {
 protected:
  HubFolder() : folder_(temporary_ / "model") {
    fs::create_directories(folder_);
    for (const char* file : {"config.json", "model.safetensors", "preprocessor_config.json"}) {
      fs::copy_file(golden_path("models/hf_vit") / file, folder_ / file);
    }
  }
  void change(const std::string& file, const std::function<void(nlohmann::json&)>& edit) const {
    nlohmann::json json = io::read_json(folder_ / file);
    edit(json);
    io::write_atomically(folder_ / file, json.dump());
  }
  void change_weights(const std::function<void(io::NamedTensors&)>& edit) const {
    io::NamedTensors tensors;
    {
      const io::Safetensors file = io::Safetensors::open(folder_ / "model.safetensors");
      for (const std::string& name : file.names()) {
        tensors.emplace_back(name, file.get(name).clone());
      }
    }
    edit(tensors);
    io::save_safetensors(folder_ / "model.safetensors", tensors);
  }
  void expect_refusal(const std::string& part) const {
    const std::string error = error_of([&] { load_model(folder_); });
    EXPECT_NE(error.find(part), std::string::npos) << "'" << error << "' does not say " << part;
  }

  test::TemporaryFolder temporary_;
  fs::path folder_;
};

TEST_F(HubFolder, NamesTheTensorThatIsMissingOrDoesNotFit) {
  const std::string key = "vit.encoder.layer.1.attention.attention.key.weight";
  change_weights([&](io::NamedTensors& tensors) {
    std::erase_if(tensors, [&](const auto& entry) { return entry.first == key; });
  });
  expect_refusal("there is no tensor '" + key + "'");
  change_weights([&](io::NamedTensors& tensors) {
    tensors.emplace_back(key, Tensor::zeros({24, 20}));
    tensors.emplace_back("vit.encoder.layer.1.attention.output.gate", Tensor::zeros({24}));
  });
  expect_refusal("query.weight', '" + key);
  expect_refusal("the model has no parameter 'vit.encoder.layer.1.attention.output.gate'");
}

TEST_F(HubFolder, SaysWhichShapeItExpects) {
  change("config.json", [](nlohmann::json& config) { config["intermediate_size"] = 72; });
  expect_refusal("'vit.encoder.layer.0.intermediate.dense.weight' has the shape [60, 24], but the model's is [72, 24]");
}

TEST_F(HubFolder, ListsTheModelsThatItReads) {
  change("config.json", [](nlohmann::json& config) { config["model_type"] = "vitt"; });
  expect_refusal("'model_type' is 'vitt', expected 'vit', 'deit', 'dinov2'");
  change("config.json", [](nlohmann::json& config) {
    config["model_type"] = "vit";
    config["architectures"] = {"ViTForObjects"};
  });
  expect_refusal("'architectures' is 'ViTForObjects', expected 'ViTForImageClassification'");
}

TEST_F(HubFolder, RefusesWhatItCannotCompute) {
  change("config.json", [](nlohmann::json& config) { config["hidden_act"] = "mish"; });
  expect_refusal("'hidden_act'");
  change("config.json", [](nlohmann::json& config) {
    config["hidden_act"] = "gelu";
    config["hidden_size"] = "24";
  });
  expect_refusal("'hidden_size'");
  change("config.json", [](nlohmann::json& config) {
    config["hidden_size"] = 24;
    config["id2label"].erase("3");
  });
  expect_refusal("none that names class 3");
  change("config.json", [](nlohmann::json& config) { config["id2label"] = {{"0", "a"}}; });
  expect_refusal("'classifier.weight' has the shape [7, 24], but the model's is [1, 24]");
}

TEST(HuggingFace, RefusesASwinThatTransformersOrVitrailCannotCompute) {
  for (const char* name : {"hf_swin", "hf_swinv2"}) {
    const test::TemporaryFolder temporary;
    nlohmann::json config = io::read_json(golden_path("models") / name / "config.json");
    config["use_absolute_embeddings"] = true;
    io::write_atomically(temporary / "config.json", config.dump());
    fs::copy_file(golden_path("models") / name / "model.safetensors", temporary / "model.safetensors");
    EXPECT_NE(error_of([&] { load_model(temporary.path()); }).find("'use_absolute_embeddings'"), std::string::npos);
  }
  // The first version's positions are for whole windows alone: 24 pixels are 12, 6 and 3 patches, and windows have 4.
  const Model model = load_model(golden_path("models/hf_swin"));
  nn::Pass pass;
  const std::string error = error_of([&] { model.net->forward(test::random_tensor({1, 3, 24, 40}), pass); });
  EXPECT_NE(error.find("3x5 patches, fewer than a window of 4x4"), std::string::npos) << error;
  EXPECT_NE(error.find("must be of 25 pixels or more"), std::string::npos) << error;
  EXPECT_EQ(error_of([&] { model.net->forward(test::random_tensor({1, 3, 25, 40}), pass); }), "no error");
  CreateOptions small;
  small.model_kwargs = R"({"img_size": 4})";
  const std::string v2 = error_of([&] { load_model(golden_path("models/hf_swinv2"), small); });
  EXPECT_NE(v2.find("no row of whole patches to stage 2, as 8 rows of pixels would"), std::string::npos) << v2;
}

TEST(HuggingFace, TakesDinov2sPositionsForThoseOfASquare) {
  const test::TemporaryFolder temporary;
  nlohmann::json config = io::read_json(golden_path("models/hf_dinov2/config.json"));
  fs::copy_file(golden_path("models/hf_dinov2/model.safetensors"), temporary / "model.safetensors");
  config["image_size"] = {16, 64};  // 2 x 8 patches, as many as the 4 x 4 of the folder
  io::write_atomically(temporary / "config.json", config.dump());
  const io::Safetensors golden = test::golden("models/hf_sizes.safetensors");
  const Model model = load_model(temporary.path());
  EXPECT_EQ(model.pretrained.height, 16);
  EXPECT_EQ(model.pretrained.width, 64);
  nn::Pass pass;
  const Tensor x = golden.get("x").narrow(2, 0, 16).contiguous();
  expect_close(model.net->forward(x, pass), golden.get("hf_dinov2.16x64.logits"), 1e-4);
  config["image_size"] = {24, 64};
  io::write_atomically(temporary / "config.json", config.dump());
  EXPECT_NE(error_of([&] { load_model(temporary.path()); }).find("'image_size' 24x64 has 3x8 patches"),
            std::string::npos);
}

TEST_F(HubFolder, RefusesAPreprocessorThatItCannotFollow) {
  change("preprocessor_config.json", [](nlohmann::json& config) { config["resample"] = 9; });
  expect_refusal("'resample'");
}

TEST_F(HubFolder, ReadsOldPreprocessors) {
  change("preprocessor_config.json", [](nlohmann::json& config) {
    config["size"] = 32;
    config["resample"] = 3;
    config.erase("do_rescale");
    config.erase("rescale_factor");
  });
  const PretrainedConfig pretrained = load_model(folder_).pretrained;
  EXPECT_EQ(pretrained.interpolation, "bicubic");
  EXPECT_EQ(pretrained.crop_mode, "squash");
  fs::remove(folder_ / "preprocessor_config.json");
  EXPECT_EQ(load_model(folder_).pretrained.interpolation, "bilinear");
}

TEST_F(HubFolder, ReadsHalfPrecision) {
  const Model full = load_model(folder_);
  change_weights([](io::NamedTensors& tensors) {
    for (auto& [name, tensor] : tensors) {
      tensor = ops::cast(tensor, DType::bf16);
    }
  });
  const Model half = load_model(folder_);
  expect_close(half.net->parameters.at("blocks.0.attn.qkv.weight").value,
               full.net->parameters.at("blocks.0.attn.qkv.weight").value, 1e-2);
}

void expect_equal_weights(const Model& actual, const Model& expected) {
  for (const nn::Parameter& parameter : expected.net->parameters.all()) {
    EXPECT_EQ(actual.net->parameters.at(parameter.name).value.values(), parameter.value.values()) << parameter.name;
  }
}

TEST_F(HubFolder, ReadsAFileOfTorchSave) {
  const Model expected = load_model(folder_);
  fs::copy_file(golden_path("io/torch/hf_vit.bin"), folder_ / "pytorch_model.bin");
  fs::remove(folder_ / "model.safetensors");
  expect_equal_weights(load_model(folder_), expected);
  fs::copy_file(golden_path("io/torch/command.bin"), folder_ / "pytorch_model.bin",
                fs::copy_options::overwrite_existing);
  expect_refusal("pytorch_model.bin: the pickle asks for Python's posix.system");
  fs::copy_file(golden_path("models/hf_vit/model.safetensors"), folder_ / "model.safetensors");
  expect_equal_weights(load_model(folder_), expected);  // of several, the safest is taken
}

TEST_F(HubFolder, ReadsWeightsInSeveralFiles) {
  const Model expected = load_model(folder_);
  nlohmann::json index;
  {
    const io::Safetensors file = io::Safetensors::open(folder_ / "model.safetensors");
    io::NamedTensors shards[2];
    for (const std::string& name : file.names()) {
      const std::size_t shard = name.find("layer.1.") == std::string::npos ? 0 : 1;
      shards[shard].emplace_back(name, file.get(name));
      index["weight_map"][name] = fmt::format("model-0000{}-of-00002.safetensors", shard + 1);
    }
    io::save_safetensors(folder_ / "model-00001-of-00002.safetensors", shards[0]);
    io::save_safetensors(folder_ / "model-00002-of-00002.safetensors", shards[1]);
  }
  fs::remove(folder_ / "model.safetensors");
  io::write_atomically(folder_ / "model.safetensors.index.json", index.dump());
  expect_equal_weights(load_model(folder_), expected);
  fs::remove(folder_ / "model-00002-of-00002.safetensors");
  expect_refusal("the file 'model-00002-of-00002.safetensors' is missing, which has the tensor 'vit.encoder.layer.1.");
  fs::remove(folder_ / "model.safetensors.index.json");
  fs::copy_file(golden_path("io/torch/hf_vit.bin"), folder_ / "pytorch_model-00001-of-00001.bin");
  for (auto& [name, file] : index["weight_map"].items()) {
    file = "pytorch_model-00001-of-00001.bin";
  }
  io::write_atomically(folder_ / "pytorch_model.bin.index.json", index.dump());
  expect_equal_weights(load_model(folder_), expected);
}

TEST_F(HubFolder, SaysWhereOtherFilesHoldTheWeights) {
  fs::rename(folder_ / "model.safetensors", folder_ / "tf_model.h5");
  expect_refusal("tf_model.h5: vitrail reads model.safetensors and pytorch_model.bin");
  fs::remove(folder_ / "tf_model.h5");
  expect_refusal("has no weights: neither model.safetensors nor pytorch_model.bin");
}

TEST(HuggingFace, KeepsTheNameOfAnArchitectureWhateverItsSizes) {
  const test::TemporaryFolder temporary;
  CreateOptions options;
  options.model_kwargs = R"({"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 1, "num_heads": 3})";
  save_model(create_model("vit_tiny_patch16_224", options), temporary / "model", Layout::huggingface);
  EXPECT_EQ(load_model(temporary / "model").architecture, "vit_tiny_patch16_224");
  nlohmann::json config = io::read_json(temporary / "model/config.json");
  const auto named = [&](const char* name) {
    config["vitrail"]["architecture"] = name;
    io::write_atomically(temporary / "model/config.json", config.dump());
    const std::string error = error_of([&] { load_model(temporary / "model"); });
    return error.substr(error.find("'vitrail'"));
  };
  EXPECT_EQ(named("vit_tiny_patch15").find("'vitrail': 'architecture': there is no model 'vit_tiny_patch15'"), 0U);
  EXPECT_EQ(named("resnet18"),
            "'vitrail': 'architecture' is 'resnet18', of the family resnet, but the rest describes a vit");
}

TEST(HuggingFace, SaysWhyAModelCannotBeWritten) {
  const test::TemporaryFolder temporary;
  const auto refusal = [&](const char* name, const char* kwargs) {
    CreateOptions options;
    options.model_kwargs = kwargs;
    const Model model = create_model(name, options);
    return error_of([&] { save_model(model, temporary / "model", Layout::huggingface); });
  };
  const char* small = R"({"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 1, "num_heads": 3})";
  EXPECT_NE(refusal("vit_relpos_small_patch16_224", small).find("no class token"), std::string::npos);
  EXPECT_NE(refusal("vit_base_patch16_siglip_224", small).find("no class token"), std::string::npos);
  EXPECT_NE(refusal("vit_base_patch32_clip_quickgelu_224", small).find("pre_norm"), std::string::npos);
  EXPECT_NE(refusal("deit3_small_patch16_224", small).find("no_embed_class"), std::string::npos);
  EXPECT_NE(
      refusal("vit_small_patch14_dinov2",
              R"({"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 1, "num_heads": 3, "num_classes": 3})")
          .find("beside the mean"),
      std::string::npos);
  const char* windows = R"({"img_size": 32, "embed_dim": 8, "depths": [1, 1], "num_heads": [1, 1], "window_size": 3})";
  EXPECT_NE(refusal("swin_tiny_patch4_window7_224", windows).find("stage 0 has 8×8 patches"), std::string::npos);
  EXPECT_NE(refusal("swinv2_cr_tiny_224", R"({"img_size": 32, "embed_dim": 8, "depths": [1, 1], "num_heads": [1, 1]})")
                .find("Swin V2-CR"),
            std::string::npos);
  EXPECT_NE(refusal("resnet18", "{}").find("only Vision Transformers and Swin Transformers"), std::string::npos);
  EXPECT_FALSE(fs::exists(temporary / "model"));
}

}  // namespace
}  // namespace vitrail::models
