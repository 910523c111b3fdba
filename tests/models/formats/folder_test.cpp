#include <algorithm>
#include <fstream>
#include <functional>

#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/models/base/registry.h"
#include "vitrail/models/features.h"
#include "vitrail/models/formats/weights.h"
#include "vitrail/models/model.h"
#include "vitrail/nn/positions/position.h"
#include "vitrail/ops/math/arithmetic.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::expect_close;
using test::golden_path;

// A copy of a golden model folder that may be spoilt.
class ModelFolder : public testing::Test {
 protected:
  ModelFolder() : folder_(temporary_ / "model") {
    fs::create_directories(folder_);
    for (const char* file : {"config.json", "model.safetensors"}) {
      fs::copy_file(golden_path("models/plain") / file, folder_ / file);
    }
  }

  void change_config(const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json config = io::read_json(folder_ / "config.json");
    change(config);
    io::write_atomically(folder_ / "config.json", config.dump());
  }

  void change_weights(const std::function<void(io::NamedTensors&)>& change) {
    io::NamedTensors tensors;
    {
      const io::Safetensors file = io::Safetensors::open(folder_ / "model.safetensors");
      for (const std::string& name : file.names()) {
        tensors.emplace_back(name, file.get(name).clone());
      }
    }
    change(tensors);
    io::save_safetensors(folder_ / "model.safetensors", tensors);
  }

  std::string refusal(const CreateOptions& options = {}) const {
    try {
      load_model(folder_, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  void expect_refusal(const std::string& part) const {
    EXPECT_NE(refusal().find(part), std::string::npos) << "'" << refusal() << "' does not say " << part;
  }

  test::TemporaryFolder temporary_;
  fs::path folder_;
};

TEST_F(ModelFolder, IsOpenedByItsPathAndByTimmsPrefix) {
  EXPECT_EQ(open_model(folder_.string()).net->num_classes(), 7);
  EXPECT_EQ(open_model("local-dir:" + folder_.string()).net->num_classes(), 7);
  EXPECT_EQ(open_model("vit_tiny_patch16_224", {.num_classes = 3, .fill = nn::Fill::meta}).net->num_classes(), 3);
  EXPECT_THROW(open_model((folder_ / "config.json").string()), Error);
  EXPECT_THROW(open_model((folder_ / "nowhere").string()), Error);
}

TEST_F(ModelFolder, GivesANewHeadForAnotherNumberOfClasses) {
  change_config([](nlohmann::json& config) { config["label_names"] = {"a", "b", "c", "d", "e", "f", "g"}; });
  const Model as_it_is = load_model(folder_);
  EXPECT_EQ(as_it_is.pretrained.label_names.size(), 7U);
  const Model model = load_model(folder_, {.num_classes = 4});
  EXPECT_EQ(model.net->parameters.at("head.weight").value.shape(), (Shape{4, 24}));
  EXPECT_TRUE(model.pretrained.label_names.empty());
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    if (!model.net->is_head(parameter.name)) {
      expect_close(parameter.value, as_it_is.net->parameters.at(parameter.name).value, 0, parameter.name);
    }
  }
  const Model features = load_model(folder_, {.num_classes = 0});
  EXPECT_EQ(features.net->parameters.find("head.weight"), nullptr);
}

TEST_F(ModelFolder, GivesAnotherPoolingTheFinalNormOfTheCheckpoint) {
  const Model token = load_model(folder_);
  CreateOptions options;
  options.model_kwargs = R"({"global_pool": "avg"})";
  const Model mean = load_model(folder_, options);
  EXPECT_EQ(mean.net->parameters.find("norm.weight"), nullptr);
  expect_close(mean.net->parameters.at("fc_norm.weight").value, token.net->parameters.at("norm.weight").value, 0);
  expect_close(mean.net->parameters.at("head.weight").value, token.net->parameters.at("head.weight").value, 0);
  save_model(mean, temporary_ / "mean");
  options.model_kwargs = R"({"global_pool": "token"})";
  const Model again = load_model(temporary_ / "mean", options);
  expect_close(again.net->parameters.at("norm.bias").value, token.net->parameters.at("norm.bias").value, 0);
  // Who does not ask for another pooling has all tensors in their places or none.
  change_config([](nlohmann::json& config) { config["model_args"]["global_pool"] = "avg"; });
  EXPECT_THROW(load_model(folder_), Error);
}

TEST_F(ModelFolder, SavesFixedPositionsAsTimmWouldHaveThem) {
  CreateOptions fixed;
  fixed.model_kwargs = R"({"pos_embed": "sincos2d"})";
  const Model model = load_model(folder_, fixed);
  EXPECT_TRUE(model.net->parameters.at("pos_embed").buffer);
  save_model(model, folder_);
  EXPECT_FALSE(io::read_json(folder_ / "config.json").at("model_args").contains("pos_embed"));
  const Model learned = load_model(folder_);
  EXPECT_TRUE(learned.net->parameters.at("pos_embed").trainable);
  expect_close(learned.net->parameters.at("pos_embed").value, nn::sincos_positions({4, 4}, 24, 1), 0);
  fixed.model_kwargs = R"({"pos_embed": "sincos2d", "img_size": [48, 40]})";
  const Model again = load_model(folder_, fixed);
  EXPECT_TRUE(again.net->parameters.at("pos_embed").buffer);
  expect_close(again.net->parameters.at("pos_embed").value, nn::sincos_positions({6, 5}, 24, 1), 0);
}

TEST_F(ModelFolder, KeepsWhatTheConfigSaysOfImages) {
  change_config([](nlohmann::json& config) {
    config["pretrained_cfg"]["crop_pct"] = 0.75;
    config["pretrained_cfg"]["interpolation"] = "bilinear";
    config["pretrained_cfg"]["mean"] = {0.1, 0.2, 0.3};
    config["label_names"] = {"a", "b", "c", "d", "e", "f", "g"};
  });
  save_model(load_model(folder_), temporary_ / "again");
  const PretrainedConfig pretrained = load_model(temporary_ / "again").pretrained;
  EXPECT_EQ(pretrained.crop_pct, 0.75);
  EXPECT_EQ(pretrained.interpolation, "bilinear");
  EXPECT_EQ(pretrained.mean, (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_EQ(pretrained.label_names.back(), "g");
}

TEST_F(ModelFolder, ReadsHalfPrecisionWeights) {
  const Model full = load_model(folder_);
  change_weights([](io::NamedTensors& tensors) {
    for (auto& [name, tensor] : tensors) {
      tensor = ops::cast(tensor, DType::bf16);
    }
  });
  const Model half = load_model(folder_);
  for (const nn::Parameter& parameter : half.net->parameters.all()) {
    EXPECT_EQ(parameter.value.dtype(), DType::f32);
    expect_close(parameter.value, full.net->parameters.at(parameter.name).value, 1e-2);
  }
}

// Rates of the folder go with the model, whatever a caller asks for; those that are asked for do not.
TEST_F(ModelFolder, KeepsItsRatesOfDropout) {
  change_config([](nlohmann::json& config) {
    config["model_args"]["attn_drop_rate"] = 0.2;
    config["model_args"]["drop_path_rate"] = 0.0;
  });
  const auto rates_of = [](const std::string& arguments) { return drop_rates_in(nlohmann::json::parse(arguments)); };
  const nlohmann::json own = {{"attn_drop_rate", 0.2}, {"drop_path_rate", 0.0}};
  CreateOptions asked;
  asked.model_kwargs = R"({"attn_drop_rate": 0.5})";
  asked.drop_rate = 0.3;
  const Model model = load_model(folder_, asked);
  EXPECT_EQ(rates_of(model.model_args), own);
  EXPECT_EQ(nlohmann::json::parse(model.arguments)["attn_drop_rate"], 0.5);
  EXPECT_EQ(nlohmann::json::parse(model.arguments)["drop_rate"], 0.3);
  EXPECT_EQ(rates_of(without_head(model, "").model_args), own);
  save_model(model, temporary_ / "saved");
  EXPECT_EQ(rates_of(load_model(temporary_ / "saved").model_args), own);
  EXPECT_EQ(nlohmann::json::parse(load_model(temporary_ / "saved").arguments)["attn_drop_rate"], 0.2);
}

TEST_F(ModelFolder, NamesTheKeyThatItDoesNotKnow) {
  change_config([](nlohmann::json& config) { config["model_args"]["embeddim"] = 24; });
  expect_refusal("'embeddim' (did you mean 'embed_dim'?)");
  change_config([](nlohmann::json& config) {
    config["model_args"].erase("embeddim");
    config["pretrained_cfg"]["croppct"] = 1;
  });
  expect_refusal("'croppct'");
  change_config([](nlohmann::json& config) {
    config["pretrained_cfg"].erase("croppct");
    config["archtecture"] = "x";
  });
  expect_refusal("'archtecture'");
}

TEST_F(ModelFolder, NamesWhatIsMissing) {
  change_weights([](io::NamedTensors& tensors) {
    std::erase_if(tensors, [](const auto& entry) { return entry.first == "blocks.1.norm2.bias"; });
  });
  expect_refusal("'blocks.1.norm2.bias'");
  fs::remove(folder_ / "model.safetensors");
  expect_refusal("model.safetensors");
  fs::remove(folder_ / "config.json");
  expect_refusal("config.json");
  fs::remove(folder_);
  expect_refusal("there is no model folder");
}

TEST_F(ModelFolder, NamesWhatIsTooMuchOrOfAnotherShape) {
  change_weights([](io::NamedTensors& tensors) { tensors.emplace_back("blocks.2.ls1.gamma", Tensor::zeros({24})); });
  expect_refusal("'blocks.2.ls1.gamma'");
}

TEST_F(ModelFolder, SaysWhichShapesDisagree) {
  change_config([](nlohmann::json& config) { config["model_args"]["mlp_ratio"] = 2; });
  expect_refusal("the shape [96, 24], but the model's is [48, 24]");
}

TEST_F(ModelFolder, ListsTenProblemsAndSaysHowManyMoreThereAre) {
  const auto missing = [&] {
    const std::string message = refusal();
    int count = 0;
    for (std::size_t at = 0; (at = message.find("there is no tensor '", at)) != std::string::npos; ++at) {
      ++count;
    }
    return count;
  };
  change_weights([](io::NamedTensors& tensors) { tensors.erase(tensors.begin(), tensors.begin() + 10); });
  EXPECT_EQ(missing(), 10) << refusal();
  EXPECT_EQ(refusal().find("\nand "), std::string::npos) << refusal();
  change_weights([](io::NamedTensors& tensors) { tensors.erase(tensors.begin(), tensors.begin() + 2); });
  EXPECT_EQ(missing(), 10) << refusal();
  const std::string long_list = refusal();
  EXPECT_EQ(std::count(long_list.begin(), long_list.end(), '\n'), 11) << "a line each: " << long_list;
  EXPECT_TRUE(refusal().ends_with("\nand 2 more")) << refusal();
}

TEST_F(ModelFolder, ListsProblemsOfAllKindsAtOnceAndLoadsNothing) {
  const Model model = load_model(folder_);
  const auto load = [&] {
    load_weights(weights_of(*model.net, model.net->parameters), io::Safetensors::open(folder_ / "model.safetensors"),
                 {}, {32, 32});
  };
  std::vector<Tensor> before;
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    before.push_back(parameter.value.detach().clone());
  }
  change_weights([](io::NamedTensors& tensors) {
    for (auto& [name, tensor] : tensors) {
      tensor.fill(7);
    }
  });
  fs::copy_file(folder_ / "model.safetensors", temporary_ / "good.safetensors");
  change_weights([](io::NamedTensors& tensors) {
    std::erase_if(tensors, [](const auto& entry) { return entry.first == "blocks.1.norm2.bias"; });
    tensors.emplace_back("blocks.2.ls1.gamma", Tensor::zeros({24}));
    for (auto& [name, tensor] : tensors) {
      tensor = name == "cls_token" ? Tensor::zeros({1, 1, 23}) : tensor;
      tensor = name == "pos_embed" ? Tensor::zeros({1, 16, 24}) : tensor;
      tensor = name == "norm.bias" ? Tensor::zeros({24}, DType::i64) : tensor;
    }
  });
  const std::string message = test::error_of(load);
  for (const char* part :
       {"model.safetensors does not fit the model:\n  ", "there is no tensor 'blocks.1.norm2.bias'",
        "the model has no parameter 'blocks.2.ls1.gamma'",
        "'cls_token' has the shape [1, 1, 23], but the model's is [1, 1, 24]", "'norm.bias' holds i64",
        "'pos_embed' cannot be taken: the positions [1, 16, 24] do not belong to a grid of 3x3 and 1 more"}) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << message << "' does not say " << part;
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    const nn::Parameter& parameter = model.net->parameters.all()[i];
    expect_close(parameter.value, before[i], 0, parameter.name);
  }
  fs::rename(temporary_ / "good.safetensors", folder_ / "model.safetensors");
  load();
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    EXPECT_EQ(parameter.value.values().front(), 7) << parameter.name;
  }
}

// A file says what it likes of its shapes.
TEST_F(ModelFolder, NamesTensorsThatCannotBeChangedToTheModels) {
  change_weights([](io::NamedTensors& tensors) {
    for (auto& [name, tensor] : tensors) {
      tensor = name == "patch_embed.proj.weight" ? Tensor::zeros({24, 0, 8, 8}) : tensor;
      tensor = name == "pos_embed" ? Tensor::zeros({2, 17, 24}) : tensor;
    }
  });
  expect_refusal("'patch_embed.proj.weight' has the shape [24, 0, 8, 8], but the model's is [24, 3, 8, 8]");
  CreateOptions larger;
  larger.model_kwargs = R"({"img_size": 48})";
  const std::string message = refusal(larger);
  EXPECT_NE(message.find("'patch_embed.proj.weight' has the shape [24, 0, 8, 8]"), std::string::npos) << message;
  EXPECT_NE(message.find("'pos_embed' cannot be taken: the shape [2, 16, 24] cannot become [1, 4, 4, 24]"),
            std::string::npos)
      << message;
  // Nor is the size that they are said to be for to be trusted.
  change_config([](nlohmann::json& config) { config["model_args"]["img_size"] = {-8, 32}; });
  EXPECT_NE(refusal(larger).find("config.json: 'img_size' lies from 1 to 1048576, not -8x32"), std::string::npos)
      << refusal(larger);
}

TEST_F(ModelFolder, SaysWhichArchitectureWasMeant) {
  const auto call_it = [&](const char* name) {
    change_config([name](nlohmann::json& config) { config["architecture"] = name; });
  };
  const std::string where = (folder_ / "config.json").string() + ": 'architecture': ";
  call_it("vit_tinny_patch16_224");
  expect_refusal(where + "there is no model 'vit_tinny_patch16_224' (did you mean 'vit_tiny_patch16_224', ");
  call_it("lstn");  // folders of recurrent networks name theirs so too
  expect_refusal(where + "there is no model 'lstn' (did you mean 'lstm'");
  call_it("nonesuch");
  expect_refusal(where + "there is no model 'nonesuch' (vitrail models lists those that there are)");
  call_it("vit_tiny_patch16_224.augreg_in21");
  expect_refusal(where + "'vit_tiny_patch16_224' has no tag 'augreg_in21', only ");
}

TEST_F(ModelFolder, ReplacesAFolderWholly) {
  const Model model = load_model(folder_);
  save_model(model, folder_);  // over the folder that it was read from
  std::ofstream(folder_ / "leftover.txt") << "x";
  save_model(model, folder_);
  EXPECT_FALSE(fs::exists(folder_ / "leftover.txt"));
  EXPECT_EQ(std::distance(fs::directory_iterator(temporary_.path()), fs::directory_iterator()), 1);
  EXPECT_EQ(load_model(folder_).net->num_classes(), 7);
}

TEST_F(ModelFolder, ReadsTimmsOldestLayout) {
  change_config([](nlohmann::json& config) {
    nlohmann::json flat = config["pretrained_cfg"];
    flat["architecture"] = config["architecture"];
    flat["num_features"] = config["num_features"];
    flat["model_args"] = config["model_args"];
    config = flat;
  });
  EXPECT_EQ(load_model(folder_).net->num_classes(), 7);
}

}  // namespace
}  // namespace vitrail::models
