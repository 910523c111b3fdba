#include "vitrail/models/convnet/airbench.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tests/models/timm_variant.h"
#include "tests/models/trials.h"

namespace vitrail::models {
namespace {

INSTANTIATE_TEST_SUITE_P(Airbench, TimmVariant, testing::Values("airbench"), variant_name);

// The fixture's images as the reference normalizes them.
Tensor normalized_images(const io::Safetensors& golden) {
  const Tensor bytes = golden.get("images");
  const PretrainedConfig config = describe_model("airbench94").pretrained;
  Tensor x = Tensor::empty(bytes.shape());
  const std::vector<float> values = bytes.values();
  const auto plane = static_cast<std::size_t>(bytes.size(2) * bytes.size(3));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t channel = i / plane % 3;
    x.data<float>()[i] =
        static_cast<float>((static_cast<double>(values[i]) / 255 - config.mean[channel]) / config.std[channel]);
  }
  return x;
}

TEST(Airbench, WhitensPatchesAsTheReferenceUpToSign) {
  const io::Safetensors golden = test::golden("airbench.safetensors");
  const Tensor filters = whitening_filters(normalized_images(golden), 2);
  const Tensor expected = golden.get("filters");
  ASSERT_EQ(filters.shape(), expected.shape());
  for (std::int64_t i = 0; i < 24; ++i) {
    const float* ours = filters.data<float>() + i * 12;
    const float* theirs = expected.data<float>() + i * 12;
    double product = 0;
    double length = 0;
    for (int j = 0; j < 12; ++j) {
      product += static_cast<double>(ours[j]) * static_cast<double>(theirs[j]);
      length += static_cast<double>(theirs[j]) * static_cast<double>(theirs[j]);
    }
    const float sign = product < 0 ? -1.0F : 1.0F;
    for (int j = 0; j < 12; ++j) {
      EXPECT_NEAR(ours[j] * sign, theirs[j], 1e-3 * std::sqrt(length)) << "filter " << i;
    }
    // 1 / (λ + eps), whatever the sign.
    EXPECT_NEAR(
        length * (static_cast<double>(golden.get("eigenvalues").values()[static_cast<std::size_t>(i % 12)]) + 5e-4), 1,
        1e-3);
  }
}

TEST(Airbench, GivesWhitenedPatchesUnitSecondMoments) {
  const Tensor x = normalized_images(test::golden("airbench.safetensors"));
  const Tensor y = ops::conv2d(x, whitening_filters(x, 2, 0));
  const std::vector<float> values = y.contiguous().values();
  const auto plane = static_cast<std::size_t>(31 * 31);
  for (std::size_t c = 0; c < 24; ++c) {
    double square = 0;
    double product = 0;  // with the next channel
    for (std::size_t n = 0; n < 32; ++n) {
      for (std::size_t i = 0; i < plane; ++i) {
        const double value = values[(n * 24 + c) * plane + i];
        square += value * value;
        product += value * static_cast<double>(values[(n * 24 + (c + 1) % 12) * plane + i]);
      }
    }
    EXPECT_NEAR(square / (32 * plane), 1, 1e-3) << c;
    if (c < 12) {
      EXPECT_NEAR(product / (32 * plane), 0, 1e-3) << c;
    }
  }
}

TEST(Airbench, StartsAsTheIdentity) {
  const Model model = create_model("airbench94", with(R"({"widths": [32, 16, 40], "num_classes": 10})"));
  const auto value = [&](const std::string& name) { return model.net->parameters.at(name).value; };
  for (const auto& [name, inputs, outputs] :
       {std::tuple("2.conv1.weight", 24, 32), {"3.conv1.weight", 32, 16}, {"4.conv2.weight", 40, 40}}) {
    const Tensor weight = value(name);
    ASSERT_EQ(weight.shape(), (Shape{outputs, inputs, 3, 3})) << name;
    const float bound = 1 / std::sqrt(static_cast<float>(inputs * 9));
    float largest = 0;
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t i = 0; i < inputs * 9; ++i) {
        const float entry = weight.data<float>()[o * inputs * 9 + i];
        if (o < inputs) {
          EXPECT_EQ(entry, i == o * 9 + 4 ? 1.0F : 0.0F) << name << ", filter " << o;
        } else {
          largest = std::max(largest, std::abs(entry));
        }
      }
    }
    EXPECT_LE(largest, bound) << name;
    EXPECT_GE(largest, outputs > inputs ? 0.9F * bound : 0.0F) << name;
  }
  test::expect_close(value("0.bias"), Tensor::zeros({24}), 0);
  test::expect_close(value("2.norm1.bias"), Tensor::zeros({32}), 0);
  test::expect_close(value("4.norm2.weight"), Tensor::full({40}, 1), 0);
  EXPECT_EQ(model.net->parameters.find("0.weight")->buffer, true);
  EXPECT_EQ(model.net->num_features(), 40);
}

// The first group hands on its input: behind a fresh network stands what pooling and norms make of the whitened image.
TEST(Airbench, IsReadyForAnotherSizeOfImages) {
  const Model model = create_model("airbench94", with(R"({"img_size": 64, "widths": [8, 8, 8], "num_classes": 3})"));
  EXPECT_EQ(model.net->num_features(), 8 * 2 * 2);
  nn::Pass pass;
  EXPECT_EQ(model.net->forward(test::random_tensor({2, 3, 64, 64}), pass).shape(), (Shape{2, 3}));
  EXPECT_EQ(error_of_forward(model, {1, 3, 32, 32}), "the model takes images [B, 3, 64, 64], not [1, 3, 32, 32]");
}

TEST(Airbench, NamesTheArgumentThatIsWrong) {
  expect_refused("airbench94", R"({"widths": []})", "'widths' names 0 groups");
  expect_refused("airbench94", R"({"width": 8})", "'width'");
  expect_refused("airbench94", R"({"img_size": 16})", "img_size 16x16 is too small");
  expect_refused("airbench94", R"({"whiten_kernel_size": 0})", "whiten_kernel_size");
  expect_refused("airbench94", R"({"batchnorm_momentum": 2})", "batchnorm_momentum");
}

}  // namespace
}  // namespace vitrail::models
