// What folders of Hugging Face's may hold, how what cannot be read is refused, and what cannot be written.
#include <functional>

#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/layers.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/models/folder.h"
#include "vitrail/models/formats/huggingface.h"
#include "vitrail/models/model.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden_path;

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
  expect_refusal("'model_type' is 'vitt', which vitrail does not have (did you mean ");
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

TEST_F(HubFolder, RefusesAPreprocessorOfAnotherSize) {
  change("preprocessor_config.json", [](nlohmann::json& config) { config["size"] = {{"height", 48}, {"width", 48}}; });
  expect_refusal("its preprocessor_config.json makes images of 48 x 48 pixels, but the model takes 32 x 32");
  CreateOptions options;
  options.model_kwargs = R"({"img_size": 48})";
  EXPECT_EQ(load_model(folder_, options).pretrained.height, 48);
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
