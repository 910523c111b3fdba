#include "vitrail/models/convnet/resnet.h"

#include <nlohmann/json.hpp>

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"
#include "vitrail/ops/math/softmax.h"

namespace vitrail::models {
namespace {

using test::expect_close;
using test::golden_path;

INSTANTIATE_TEST_SUITE_P(ResNet, TimmVariant,
                         testing::Values("resnet_basic", "resnet_bottleneck", "resnet_deep", "resnet_tiered",
                                         "resnet_se", "resnet_groups", "resnet_nl", "resnet_nl_gaussian",
                                         "resnet_nl_dot_product", "resnet_nl_concatenation", "resnet_sagan"),
                         variant_name);

TEST(ResNet, TakesImagesOfEverySize) {
  const Model model = load_model(golden_path("models/resnet_deep"));
  nn::Pass pass;
  for (const std::int64_t side : {1, 2, 31, 65}) {
    EXPECT_EQ(model.net->forward(test::random_tensor({1, 3, side, 3}), pass).shape(), (Shape{1, 7}));
  }
  const TokenLayout layout = model.net->token_layout(64, 33);
  EXPECT_EQ(layout.rows, 2);
  EXPECT_EQ(layout.columns, 2);
  EXPECT_THROW(model.net->forward(test::random_tensor({1, 1, 32, 32}), pass), Error);
  EXPECT_THROW(model.net->forward(test::random_tensor({3, 32, 32}), pass), Error);
}

TEST(ResNet, LoadsForAnotherNumberOfChannels) {
  CreateOptions options;
  options.model_kwargs = R"({"in_chans": 1})";
  options.num_classes = 4;
  const Model gray = load_model(golden_path("models/resnet_basic"), options);
  const Model color = load_model(golden_path("models/resnet_basic"));
  const Tensor weight = color.net->parameters.at("conv1.weight").value;
  expect_close(gray.net->parameters.at("conv1.weight").value,
               weight.detach().select(1, 0).unsqueeze(1) + weight.detach().select(1, 1).unsqueeze(1) +
                   weight.detach().select(1, 2).unsqueeze(1),
               1e-6);
  nn::Pass pass;
  EXPECT_EQ(gray.net->forward(test::random_tensor({1, 1, 32, 32}), pass).shape(), (Shape{1, 4}));
}

TEST(ResNet, DropsWholeBranchesInTraining) {
  CreateOptions options;
  options.model_kwargs = R"({"layers": [1, 1, 1, 1], "channels": [8, 8, 16, 16], "num_classes": 3,
                             "drop_rate": 0.2, "drop_path_rate": 0.5, "zero_init_last": false})";
  const Model model = create_model("resnet50", options);
  const Tensor x = test::random_tensor({4, 3, 32, 32});
  const auto logits = [&](std::uint64_t seed) {
    nn::Pass pass{.training = true, .random = RandomStream(seed)};
    return model.net->forward(x, pass);
  };
  expect_close(logits(1), logits(1), 0);
  EXPECT_GT(test::relative_error(logits(1), logits(2)), 1e-2);
}

// Where the pixels of a map lie, and that a new block changes nothing (Wang et al. 2018, Zhang et al. 2019).
TEST(ResNet, AttentionBeginsAsNothingAndSaysItsPlace) {
  const std::string sizes = R"("layers": [1, 1, 1, 1], "channels": [8, 8, 16, 16], "num_classes": 3)";
  const Tensor x = test::random_tensor({1, 3, 37, 30});
  const auto run = [&](const std::string& name, const std::string& more, nn::Recorder& recorder) {
    CreateOptions options;
    options.model_kwargs = "{" + sizes + more + "}";
    nn::Pass pass{.recorder = &recorder};
    return create_model(name, options).net->forward(x, pass);
  };
  nn::Recorder recorder(false, true);
  const Tensor plain = run("resnet18", "", recorder);
  EXPECT_TRUE(recorder.attention().empty());
  for (const std::string kind : {"embedded_gaussian", "gaussian", "dot_product", "concatenation"}) {
    const std::string more = R"(, "block_args": {"attn_layer": "nl", "nl_kind": ")" + kind + R"("})";
    nn::Recorder maps(false, true);
    expect_close(run("resnet18", more, maps), plain, 1e-6, kind);
    ASSERT_EQ(maps.attention().size(), 4U);
    EXPECT_EQ(maps.attention().at("layer1.0.se").grid->queries, (nn::Size2{10, 8}));
    EXPECT_EQ(maps.attention().at("layer4.0.se").value.shape(), (Shape{1, 1, 2, 2}));
    EXPECT_EQ(maps.attention().at("layer4.0.se").grid->keys, (nn::Size2{2, 1}));
  }
  nn::Recorder maps(false, true);
  expect_close(run("sagan_resnet", "", maps), plain, 1e-6);
  ASSERT_EQ(maps.attention().size(), 1U);
  EXPECT_EQ(maps.attention().at("attn2").value.shape(), (Shape{1, 1, 20, 20}));
  EXPECT_EQ(maps.attention().at("attn2").grid->queries, (nn::Size2{5, 4}));
}

TEST(ResNet, NamesTheArgumentThatIsWrong) {
  expect_refused("resnet18", R"({"layer": [1, 1, 1, 1]})", "did you mean 'layers'");
  expect_refused("resnet18", R"({"layers": [1, 1]})", "layers and channels");
  expect_refused("resnet18", R"({"layers": [1, 1, 0, 1]})", "'layers'");
  expect_refused("resnet18", R"({"cardinality": 2})", "bottleneck");
  expect_refused("resnet18", R"({"output_stride": 12})", "output_stride");
  expect_refused("resnet18", R"({"output_stride": 8, "avg_down": true})", "avg_down");
  expect_refused("resnet18", R"({"global_pool": ""})", "num_classes");
  expect_refused("resnet18", R"({"block_args": {"attn_layer": "cbam"}})", "'attn_layer'");
  expect_refused("resnet18", R"({"block_args": {"attn": "se"}})", "did you mean 'attn_layer'");
  expect_refused("resnet18", R"({"block_args": {"attn_layer": "nl", "nl_kind": "sum"}})", "'nl_kind'");
  expect_refused("resnet18", R"({"sagan_stages": [5]})", "'sagan_stages'");
  expect_refused("resnet18", R"({"channels": [65536, 65536, 65536, 65536], "img_size": 1048576})", "FLOPs");
}

}  // namespace
}  // namespace vitrail::models
