#include "vitrail/models/detection/detr.h"

#include <fstream>
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
#include "vitrail/models/detection/detr_folder.h"
#include "vitrail/models/model.h"
#include "vitrail/nn/recorder.h"
#include "vitrail/ops/math/arithmetic.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::models {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::expect_close;
using test::golden_path;
using ::testing::HasSubstr;

// transformers' batch norms of a detector are frozen.
void freeze_norms(const Detector& detector) {
  for (const nn::Parameter& parameter : detector.net->parameters.all()) {
    const bool of_norm = parameter.value.rank() == 1 && detector.net->is_backbone(parameter.name);
    if (of_norm && !parameter.buffer) {
      detector.net->parameters.set_trainable(parameter.name, false);
    }
  }
}

// A folder that transformers wrote, and what it and facebookresearch/detr compute with it (tools/golden/detr.py).
class DetrVariant : public testing::TestWithParam<const char*> {
 protected:
  fs::path folder() const { return golden_path("models/detection") / GetParam(); }
  io::Safetensors expected() const { return io::Safetensors::open(folder() / "expected.safetensors"); }
  static DetrInput input(const io::Safetensors& golden) {
    return {golden.get("pixel_values"), golden.get("pixel_mask")};
  }
};

// (x · rescale_factor - image_mean) / image_std of bytes x, each step if the processor does it.
TEST(DetectorImages, ArePreparedAsTheProcessorSays) {
  const test::TemporaryFolder folder;
  fs::copy(golden_path("models/detection/detr"), folder / "model", fs::copy_options::recursive);
  const auto prepared = [&](const nlohmann::json& says, double x) {
    std::ofstream(folder / "model/preprocessor_config.json") << says.dump();
    const DetectorImages images = load_detector(folder / "model", {.fill = nn::Fill::meta}).images;
    return (x / 255 - static_cast<double>(images.mean[0])) / static_cast<double>(images.std[0]);
  };
  const nlohmann::json usual = {{"image_mean", {0.5, 0.5, 0.5}}, {"image_std", {0.25, 0.25, 0.25}}};
  const auto with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json changed = usual;
    changed[key] = value;
    return changed;
  };
  EXPECT_NEAR(prepared(usual, 51), (0.2 - 0.5) / 0.25, 1e-5);
  EXPECT_NEAR(prepared(with("do_normalize", false), 51), 0.2, 1e-5);
  EXPECT_NEAR(prepared(with("do_rescale", false), 51), (51 - 0.5) / 0.25, 1e-3);
  EXPECT_NEAR(prepared(with("rescale_factor", 1 / 127.5), 51), (0.4 - 0.5) / 0.25, 1e-5);
  EXPECT_THAT(error_of([&] { prepared(with("do_resize", false), 1); }), HasSubstr("'do_resize' must be true"));
  EXPECT_THAT(error_of([&] { prepared(with("resample", 0), 1); }), HasSubstr("'resample' must be 2"));
  EXPECT_THAT(error_of([&] {
                prepared(with("pad_size", {{"height", 96}, {"width", 112}}), 1);
              }),
              HasSubstr("'pad_size' must be null"));
}

TEST_P(DetrVariant, GivesTransformersLogitsAndBoxes) {
  const Detector detector = load_detector(folder());
  EXPECT_THAT(detector.labels, testing::ElementsAre("circle", "square", "bird"));
  const io::Safetensors golden = expected();
  for (const auto& [dtype, tolerance] : {std::pair(DType::f32, 2e-5), {DType::bf16, 8e-2}}) {
    nn::Pass pass{.dtype = dtype};
    const SetPredictions found = detector.net->forward(input(golden), pass);
    expect_close(found.logits, golden.get("logits"), tolerance);
    expect_close(found.boxes, golden.get("pred_boxes"), tolerance);
  }
}

TEST_P(DetrVariant, FeedsNormedStatesOnWithTransformersAuxiliaryLoss) {
  const test::TemporaryFolder temporary;
  const fs::path copy = temporary / "detr";
  fs::copy(folder(), copy);
  nlohmann::json config = io::read_json(copy / "config.json");
  config["auxiliary_loss"] = true;
  io::write_atomically(copy / "config.json", config.dump());
  const io::Safetensors golden = expected();
  nn::Pass pass;
  const SetPredictions found = load_detector(copy).net->forward(input(golden), pass);
  expect_close(found.logits, golden.get("auxiliary.logits"), 2e-5);
  expect_close(found.boxes, golden.get("auxiliary.pred_boxes"), 2e-5);
  const SetPredictions layers = load_detector(copy).net->forward_layers(input(golden), pass);
  const std::int64_t images = found.logits.size(0);
  expect_close(layers.logits.narrow(0, layers.logits.size(0) - images, images), found.logits, 1e-5);
  const Detector learning = load_detector(copy, {.learns = true});
  expect_close(learning.net->forward(input(golden), pass).logits, golden.get("logits"), 2e-5);
  EXPECT_TRUE(learning.drops_auxiliary_loss);
  EXPECT_EQ(nlohmann::json::parse(learning.config).at("auxiliary_loss"), false) << "its folder will say what it learnt";
}

TEST_P(DetrVariant, RecordsTransformersStatesAndMaps) {
  const Detector detector = load_detector(folder());
  const io::Safetensors golden = expected();
  nn::Recorder recorder(true, true);
  nn::Pass pass{.recorder = &recorder};
  detector.net->forward(input(golden), pass);
  for (const int i : {0, 1}) {
    expect_close(recorder.features().at(fmt::format("model.decoder.layers.{}", i)).value,
                 golden.get(fmt::format("decoder.{}", i)), 2e-5);
    expect_close(recorder.attention().at(fmt::format("model.encoder.layers.{}.self_attn", i)).value,
                 golden.get(fmt::format("encoder_attention.{}", i)), 2e-5);
    expect_close(recorder.attention().at(fmt::format("model.decoder.layers.{}.encoder_attn", i)).value,
                 golden.get(fmt::format("cross_attention.{}", i)), 2e-5);
  }
}

TEST_P(DetrVariant, HasTransformersGradients) {
  const Detector detector = load_detector(folder());
  freeze_norms(detector);
  const io::Safetensors golden = expected();
  nn::Pass pass;
  autograd::Tape tape;
  const SetPredictions found = detector.net->forward(input(golden), pass);
  tape.backward(ops::sum(found.logits * golden.get("to_logits")) + ops::sum(found.boxes * golden.get("to_boxes")));
  int compared = 0;
  for (const nn::Parameter& parameter : detector.net->parameters.all()) {
    if (parameter.trainable) {
      test::expect_gradient(autograd::grad(parameter.value), golden.get("grad." + parameter.name), 1e-3,
                            parameter.name);
      ++compared;
    }
  }
  EXPECT_EQ(compared,
            std::ranges::count_if(golden.names(), [](const std::string& n) { return n.starts_with("grad."); }));
}

// facebookresearch/detr: the heads read each layer's states through the final norm, the next layer without it.
TEST_P(DetrVariant, GivesTheOriginalsPredictionsOfEachLayer) {
  const Detector detector = load_detector(folder());
  const io::Safetensors golden = expected();
  nn::Pass pass;
  const SetPredictions found = detector.net->forward_layers(input(golden), pass);
  const auto flat = [](const Tensor& x) { return x.reshape({x.size(0) * x.size(1), x.size(2), x.size(3)}); };
  expect_close(found.logits, flat(golden.get("aux.logits")), 2e-5);
  expect_close(found.boxes, flat(golden.get("aux.boxes")), 2e-5);
}

TEST_P(DetrVariant, IsSavedToTheSameBitsAndFields) {
  const test::TemporaryFolder written;
  write_detector(load_detector(folder()), written.path());
  const io::Safetensors before = io::Safetensors::open(folder() / "model.safetensors");
  const io::Safetensors after = io::Safetensors::open(written / "model.safetensors");
  ASSERT_EQ(std::set<std::string>(after.names().begin(), after.names().end()),
            std::set<std::string>(before.names().begin(), before.names().end()));
  for (const std::string& name : before.names()) {
    expect_close(after.get(name), before.get(name), 0, name);
  }
  nlohmann::json config = io::read_json(written / "config.json");
  EXPECT_EQ(config["label2id"]["bird"], 2);
  config["label2id"] = nullptr;
  EXPECT_EQ(config, io::read_json(folder() / "config.json"));
  EXPECT_TRUE(is_detector_folder(written.path()));
  EXPECT_EQ(load_detector(written.path()).images.shortest_edge, 800);
}

INSTANTIATE_TEST_SUITE_P(All, DetrVariant, testing::Values("detr", "detr_dc5"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

// What is behind the border of an image changes nothing.
TEST(Detr, DoesNotSeePadding) {
  const Detector detector = load_detector(golden_path("models/detection/detr"));
  const Tensor image = test::random_tensor({1, 3, 64, 96});
  nn::Pass pass;
  const SetPredictions alone = detector.net->forward({image, {}}, pass);
  const Tensor padded = ops::pad(ops::pad(image, 2, 0, 64), 3, 0, 32);
  const Tensor mask = Tensor::empty({1, 128, 128}, DType::boolean);
  for (std::int64_t i = 0; i < 128 * 128; ++i) {
    mask.data<bool>()[i] = i / 128 < 64 && i % 128 < 96;
  }
  const SetPredictions masked = detector.net->forward({padded, mask}, pass);
  // The convolutions see the border itself, as the reference's do.
  EXPECT_LT(test::relative_error(masked.logits, alone.logits), 0.05);
  EXPECT_THAT(error_of([&] { detector.net->forward({image, mask}, pass); }), HasSubstr("expected bool [1, 64, 96]"));
}

TEST(Detr, StartsAsTheOriginal) {
  const Detector detector = create_detector("detr_scenes", {.seed = 3});
  const auto deviation = [&](const std::string& name) {
    double squares = 0;
    const std::vector<float> values = detector.net->parameters.at(name).value.values();
    for (const float value : values) {
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  const auto xavier = [](double in, double out) { return std::sqrt(2 / (in + out)); };
  EXPECT_NEAR(deviation("model.query_position_embeddings.weight"), 1, 0.03);
  EXPECT_NEAR(deviation("model.encoder.layers.1.self_attn.q_proj.weight"), xavier(128, 3 * 128), 0.001);
  EXPECT_NEAR(deviation("model.decoder.layers.1.encoder_attn.out_proj.weight"), xavier(128, 128), 0.001);
  EXPECT_NEAR(deviation("model.decoder.layers.1.fc1.weight"), xavier(128, 512), 0.001);
  EXPECT_EQ(deviation("model.decoder.layers.1.self_attn.v_proj.bias"), 0);
  EXPECT_NEAR(deviation("class_labels_classifier.weight"), 1 / std::sqrt(3.0 * 128), 0.005);  // as torch.nn.Linear
}

// facebookresearch/detr's PositionEmbeddingLearned: nn.init.uniform_, from 0 to 1.
TEST(Detr, StartsLearnedPlacesAsTheOriginal) {
  const Detector detector = create_detector("detr_scenes", {.seed = 3}, R"({"position_embedding_type": "learned"})");
  for (const char* name : {"row", "column"}) {
    const std::vector<float> values =
        detector.net->parameters.at(fmt::format("model.position_embedding.{}_embeddings.weight", name)).value.values();
    double sum = 0;
    for (const float value : values) {
      EXPECT_TRUE(value >= 0 && value < 1) << name << ": " << value;
      sum += static_cast<double>(value);
    }
    EXPECT_NEAR(sum / static_cast<double>(values.size()), 0.5, 0.03) << name;
  }
}

TEST(Detr, CountsItsLayersFromTheBackboneToTheHeads) {
  const Detector detector = create_detector("detr_scenes", {.fill = nn::Fill::meta});
  const Detr& net = *detector.net;
  EXPECT_EQ(net.depth(), 3 + 3 + 3);
  EXPECT_EQ(net.layer_of("model.backbone.conv_encoder.model.conv1.weight"), 0);
  EXPECT_EQ(net.layer_of("model.backbone.conv_encoder.model.layer3.0.conv1.weight"), 3);
  EXPECT_EQ(net.layer_of("model.input_projection.weight"), 3);
  EXPECT_EQ(net.layer_of("model.encoder.layers.0.fc1.weight"), 4);
  EXPECT_EQ(net.layer_of("model.decoder.layers.2.fc1.weight"), 9);
  EXPECT_EQ(net.layer_of("class_labels_classifier.weight"), 10);
  EXPECT_EQ(net.layer_of("model.decoder.layernorm.weight"), 10);
}

TEST(Detr, HasTheParametersOfThePublishedOne) {
  const Detector detector = create_detector("detr_resnet50", {.fill = nn::Fill::meta});
  EXPECT_EQ(detector.net->config().num_queries, 100);
  // 41.3 M of the paper's table 1 with 91 classes and without the statistics; here are two classes.
  EXPECT_NEAR(static_cast<double>(detector.net->parameters.count()) / 1e6, 41.5, 0.2);
  EXPECT_EQ(detector.net->grid(800, 1066), (nn::Size2{25, 34}));
  const Detector dilated = create_detector("detr_resnet50_dc5", {.fill = nn::Fill::meta});
  EXPECT_EQ(dilated.net->grid(800, 1066), (nn::Size2{50, 67}));
}

TEST(DetrFolder, TakesOtherClassesWithANewClassifier) {
  const fs::path folder = golden_path("models/detection/detr");
  const Detector before = load_detector(folder);
  const Detector after = load_detector(folder, {.labels = {"cat", "dog"}, .seed = 1});
  EXPECT_EQ(after.net->parameters.at("class_labels_classifier.weight").value.size(0), 3);
  EXPECT_EQ(after.classifier, Classifier::renewed);
  EXPECT_EQ(load_detector(folder, {.labels = before.labels}).classifier, Classifier::kept);
  const Detector sorted = load_detector(folder, {.labels = {"bird", "circle"}});
  EXPECT_EQ(sorted.classifier, Classifier::by_names);
  for (const char* name : {"class_labels_classifier.weight", "class_labels_classifier.bias"}) {
    const Tensor all = before.net->parameters.at(name).value;
    const Tensor own = sorted.net->parameters.at(name).value;
    for (const auto& [row, from] : {std::pair{0, 2}, {1, 0}, {2, 3}}) {  // the last is "nothing"
      EXPECT_EQ(own.select(0, row).contiguous().values(), all.select(0, from).contiguous().values()) << name << row;
    }
  }
  expect_close(after.net->parameters.at("bbox_predictor.layers.2.weight").value,
               before.net->parameters.at("bbox_predictor.layers.2.weight").value, 0);
}

TEST(DetrFolder, TakesABackbone) {
  const Detector detector = create_detector("detr_resnet18", {.seed = 1});
  const Model given = create_model("resnet18");
  take_backbone(detector, given);
  expect_close(detector.net->parameters.at("model.backbone.conv_encoder.model.layer4.1.conv2.weight").value,
               given.net->parameters.at("layer4.1.conv2.weight").value, 0);
  EXPECT_THAT(error_of([&] { take_backbone(detector, create_model("resnet50")); }),
              HasSubstr("resnet50 does not fit the detector's backbone: its 'layer1.0.conv1.weight' has the shape "));
}

TEST(DetrFolder, SaysWhatItDoesNotRead) {
  const test::TemporaryFolder other;
  const auto error_with = [&](const nlohmann::json& change) {
    nlohmann::json config = io::read_json(golden_path("models/detection/detr") / "config.json");
    config.merge_patch(change);
    std::ofstream(other / "config.json") << config;
    return error_of([&] { load_detector(other.path(), {.fill = nn::Fill::meta}); });
  };
  EXPECT_EQ(error_with(nlohmann::json::object()), "no error");
  EXPECT_THAT(error_with({{"backbone_config", {{"model_type", "resnet"}}}}),
              HasSubstr("of transformers' kind 'resnet'"));
  EXPECT_THAT(error_with({{"backbone_config", {{"backbone", "vit_tiny_patch16_224"}}}}),
              HasSubstr("'vit_tiny_patch16_224' is none of timm's ResNets"));
  EXPECT_THAT(error_with({{"d_model", 18}}), HasSubstr("d_model must be a multiple of 4"));
  EXPECT_THAT(error_with({{"model_type", "vit"}}), HasSubstr("is no detector"));
  EXPECT_THAT(error_of([] { create_detector("detr_scenes", {}, R"({"d_modell": 8})"); }), HasSubstr("'d_model'"));
  EXPECT_THAT(error_of([] { create_detector("detr_resnet5", {}); }), HasSubstr("did you mean 'detr_resnet50'"));
}

TEST(DetrFolder, ReadsImageProcessorsOfEachVersion) {
  const test::TemporaryFolder other;
  fs::copy(golden_path("models/detection/detr"), other.path(), fs::copy_options::recursive);
  const auto edges_with = [&](const char* text) {
    std::ofstream(other / "preprocessor_config.json") << text;
    const DetectorImages images = load_detector(other.path()).images;
    return std::pair(images.shortest_edge, images.longest_edge);
  };
  EXPECT_EQ(edges_with(R"({"size": 600, "max_size": 1000, "feature_extractor_type": "DetrFeatureExtractor"})"),
            std::pair(std::int64_t{600}, std::int64_t{1000}));
  EXPECT_EQ(edges_with(R"({"size": {"shortest_edge": 64, "longest_edge": 90}})"),
            std::pair(std::int64_t{64}, std::int64_t{90}));
  EXPECT_THAT(error_of([&] { edges_with(R"({"size": {"height": 64, "width": 90}})"); }),
              HasSubstr("has no 'shortest_edge'"));
}

}  // namespace
}  // namespace vitrail::models
