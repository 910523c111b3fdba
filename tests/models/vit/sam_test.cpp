#include "vitrail/models/vit/sam.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/models/timm_variant.h"
#include "tests/support/errors.h"

namespace vitrail::models {
namespace {

using test::error_of;

INSTANTIATE_TEST_SUITE_P(Sam, TimmVariant, testing::Values("sam", "sam_plain"), variant_name);

// Images of another size than the model's: positions are resampled in each forward, and what a folder is loaded with
// for such a size computes the same (tools/golden/sam.py).
TEST(Sam, TakesImagesOfEverySize) {
  const io::Safetensors golden = test::golden("models/sam_sizes.safetensors");
  const Model model = load_model(test::golden_path("models/sam"));
  EXPECT_TRUE(model.net->takes_any_size());
  for (const nn::Size2 size : {nn::Size2{24, 24}, {48, 32}, {56, 64}}) {
    const std::string start = fmt::format("{}x{}", size[0], size[1]);
    const Tensor x = golden.get("x").narrow(2, 0, size[0]).narrow(3, 0, size[1]).contiguous();
    model.net->parameters.zero_grad();
    nn::Pass pass;
    autograd::Tape tape;
    const Tensor y = model.net->forward(x, pass);
    test::expect_close(y, golden.get(start + ".logits"), 1e-5, start);
    tape.backward(y, golden.get(start + ".seed"));
    for (const nn::Parameter& parameter : model.net->parameters.all()) {
      const std::string name = start + ".grad." + parameter.name;
      if (golden.contains(name)) {
        test::expect_gradient(autograd::grad(parameter.value), golden.get(name), 1e-4, name);
      }
    }
    CreateOptions options;
    options.model_kwargs = nlohmann::json{{"img_size", {size[0], size[1]}}}.dump();
    const Model there = load_model(test::golden_path("models/sam"), options);
    test::expect_close(there.net->forward(x, pass), golden.get(start + ".logits"), 1e-5, start + ", loaded for it");
  }
}

TEST(Sam, GivesAMapOfFeatures) {
  const Model model = load_model(test::golden_path("models/sam"));
  nn::Pass pass;
  EXPECT_EQ(model.net->forward_features(Tensor::zeros({1, 3, 40, 40}), pass).shape(), (Shape{1, 10, 5, 5}));
  EXPECT_EQ(model.net->num_features(), 10);
  const TokenLayout layout = model.net->token_layout(48, 32);
  EXPECT_EQ(layout.prefix, 0);
  EXPECT_EQ(layout.rows, 6);
  EXPECT_EQ(layout.columns, 4);
}

TEST(Sam, SaysWhatIsWrong) {
  const Model model = load_model(test::golden_path("models/sam"));
  nn::Pass pass;
  EXPECT_EQ(error_of([&] {
              model.net->forward(Tensor::zeros({1, 3, 40, 44}), pass);
            }),
            "an image of 40x44 is not made of whole patches, as one is whose sides are multiples of 8 and 8");
  const auto refusal = [](const char* kwargs) {
    CreateOptions options;
    options.model_kwargs = kwargs;
    return error_of([&] { describe_model("samvit_base_patch16", options); });
  };
  EXPECT_EQ(refusal(R"({"embed_dim": 100})"), "embed_dim 100 cannot be divided among num_heads 12");
  EXPECT_EQ(refusal(R"({"img_size": 8})"), "img_size 8x8 holds no patch of patch_size 16x16");
  EXPECT_EQ(refusal(R"({"global_pool": "", "num_classes": 3})"), "a classifier takes pooled features (global_pool)");
  EXPECT_THAT(refusal(R"({"use_rope": true})"), testing::HasSubstr("use_rope"));
}

}  // namespace
}  // namespace vitrail::models
