#include "vitrail/explain/segments.h"

#include <algorithm>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/images.h"
#include "vitrail/data/whole_image.h"
#include "vitrail/explain/segment_score.h"
#include "vitrail/models/features.h"

namespace vitrail::explain {
namespace {

using test::error_of;

// The model of the fixture.
models::Model dino_model(const io::Safetensors& golden) {
  models::CreateOptions options;
  options.num_classes = 0;
  options.model_kwargs = R"({"img_size": 32, "patch_size": 4, "embed_dim": 24, "depth": 3, "num_heads": 3,
                             "pos_embed_resize": "dino"})";
  EXPECT_TRUE(models::let_take_any_size("vit_small_patch16_224", options));
  models::Model model = models::create_model("vit_small_patch16_224.dino", options);
  for (const nn::Parameter& parameter : model.net->parameters.all()) {
    parameter.value.copy_from(golden.get("model." + parameter.name));
  }
  return model;
}

TEST(ClassTokenMaps, AndMasksAreThoseOfDinosVisualizeAttention) {
  const io::Safetensors golden = test::golden("explain/dino_attention.safetensors");
  const models::Model model = dino_model(golden);
  data::ImageConfig config;
  config.mean = {0.485, 0.456, 0.406};
  config.std = {0.229, 0.224, 0.225};
  config.interpolation = "bilinear";  // torchvision's Resize
  const io::Image image = test::to_image(golden.get("image"));
  for (const std::int64_t shorter : {0, 40}) {
    const std::string at = shorter == 0 ? "own" : "40";
    const Tensor x = data::whole_image(image, config, models::patch_side(*model.net), shorter).unsqueeze(0);
    test::expect_close(x, golden.get(at + ".input"), 1e-6);
    const Tensor maps = class_token_maps(record_attention(*model.net, x));
    test::expect_close(maps, golden.get(at + ".maps"), 1e-4);
    for (const double threshold : {0.6, 0.25}) {
      const Tensor mask = golden.get(fmt::format("{}.mask.{}", at, threshold));
      EXPECT_TRUE(std::ranges::equal(mass_mask(maps, threshold).span<std::uint8_t>(), mask.span<std::uint8_t>())) << at;
    }
  }
}

// A stem of convolutions also makes a token of an image that is smaller than a patch.
TEST(PatchSide, IsThatOfWholePatches) {
  models::CreateOptions options;
  options.fill = nn::Fill::meta;
  for (const auto& [name, side] : {std::pair("vit_tiny_patch16_224", 16),
                                   {"vit_tiny_r_s16_p8_224", 32},
                                   {"vit_base_r50_s16_224", 16},
                                   {"vit_small_patch14_dinov2", 14}}) {
    EXPECT_EQ(models::patch_side(*models::create_model(name, options).net), side) << name;
  }
}

TEST(ClassTokenMaps, LeaveRegisterTokensOut) {
  models::CreateOptions options;
  options.model_kwargs =
      R"({"img_size": 16, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 3, "reg_tokens": 4})";
  const models::Model model = models::create_model("vit_tiny_patch16_224", options);
  const Attention attention = record_attention(*model.net, test::random_tensor({1, 3, 16, 16}));
  const Tensor maps = class_token_maps(attention);
  ASSERT_EQ(maps.shape(), Shape({3, 4, 4}));
  const Tensor row = attention.layers[1].select(0, 0).select(0, 1).select(0, 0);
  EXPECT_EQ(maps.select(0, 1).contiguous().data<float>()[6], row.contiguous().data<float>()[5 + 6]);
  EXPECT_EQ(error_of([&] { class_token_maps(attention, 2); }), "there is no layer 2: the model has the layers 0 to 1");
}

TEST(ClassTokenMaps, NeedTheRowsOfTheClassTokenAlone) {
  const Tensor x = test::random_tensor({1, 3, 16, 16});
  for (const char* name : {"vit_tiny_patch16_224", "mvitv2_tiny"}) {
    const bool plain = std::string(name).starts_with("vit");
    models::CreateOptions options;
    options.model_kwargs =
        plain ? R"({"img_size": 16, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 3})"
              : R"({"img_size": 16, "embed_dim": 8, "num_heads": 1, "depths": [1, 1, 1, 1], "use_cls_token": true})";
    const models::Model model = models::create_model(name, options);
    const Attention all = record_attention(*model.net, x);
    const Attention some = record_attention(*model.net, x, DType::f32, Looking::class_token);
    for (std::size_t layer = 0; layer < all.layers.size(); ++layer) {
      EXPECT_EQ(some.layers[layer].size(2), 1) << name;
      EXPECT_EQ(class_token_maps(some, static_cast<std::int64_t>(layer)).values(),
                class_token_maps(all, static_cast<std::int64_t>(layer)).values())
          << name;
    }
    EXPECT_FALSE(can_roll_out(some));
    EXPECT_EQ(error_of([&] { attention_map(some, 0, 0, {.kind = Query::Kind::patch}); }),
              "the attention of the patches was not kept, but that of the class token alone");
  }
}

TEST(MassMask, KeepsTheLargestValues) {
  const Tensor maps = Tensor::from(std::vector<float>{0.1F, 0.4F, 0.2F, 0.3F, 2, 2, 2, 2}, {2, 2, 2});
  const auto kept = [&](double threshold) {
    const Tensor mask = mass_mask(maps, threshold);
    return std::vector<int>(mask.span<std::uint8_t>().begin(), mask.span<std::uint8_t>().end());
  };
  EXPECT_EQ(kept(0.6), (std::vector<int>{0, 1, 0, 1, 0, 1, 1, 1}));
  EXPECT_EQ(kept(0.35), (std::vector<int>{0, 1, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(kept(1), (std::vector<int>{1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(error_of([&] { mass_mask(maps, 60); }), "a share of the mass lies in 0 … 1, not 60");
}

TEST(StrongestHeads, AreThoseWhoseMapIsLargestInTheirMask) {
  const Tensor maps = Tensor::from(std::vector<float>{0.8F, 0.4F, 0.1F, 0.05F, 0.1F, 0.2F}, {2, 1, 3});
  const Tensor masks = Tensor::from(std::vector<std::uint8_t>{1, 1, 0, 1, 1, 0}, {2, 1, 3});
  const Tensor heads = strongest_heads(maps, masks);
  EXPECT_TRUE(std::ranges::equal(heads.span<std::int64_t>(), std::vector<std::int64_t>{0, 0, -1}));
}

TEST(PaintSegments, ColoursPlacesOfTheImage) {
  const io::Image image(4, 2);
  const Tensor segments = Tensor::from(std::vector<std::int64_t>{1, -1}, {1, 2});
  const io::Image painted = paint_segments(image, segments, {{0, 0, 0}, {200, 100, 50}}, 0.5F);
  EXPECT_EQ(painted.at(1, 1)[0], 100);
  EXPECT_EQ(painted.at(0, 0)[2], 25);
  EXPECT_EQ(painted.at(2, 0)[0], 0);
  const std::vector<Color> colors = segment_colors(6);
  EXPECT_EQ(colors[0], (Color{255, 0, 0}));
  EXPECT_EQ(colors[2], (Color{0, 255, 0}));
}

TEST(SegmentScore, IsTheShareOfTheUnionThatIsInBoth) {
  io::Image mask(4, 4);  // an object in the upper left quarter and in the pixel to the right of it
  for (const auto& [x, y] : {std::pair(0, 0), std::pair(1, 0), std::pair(0, 1), std::pair(1, 1), std::pair(2, 0)}) {
    mask.at(x, y)[0] = 2;
  }
  const Tensor masks = Tensor::from(std::vector<std::uint8_t>{1, 0, 0, 0, 0, 1, 1, 0}, {2, 2, 2});
  EXPECT_EQ(head_jaccards(masks, mask), (std::vector<double>{4.0 / 5, 1.0 / 12}));
  SegmentScore score;
  score.add(masks, mask);
  score.add(masks, io::Image(4, 4));
  EXPECT_EQ(score.images(), 2);
  EXPECT_EQ(score.heads(), (std::vector<double>{0.4, 1.0 / 24}));
  EXPECT_EQ(score.best_head(), 0);
  EXPECT_EQ(score.best_of_each(), 0.4);
  EXPECT_EQ(score.everything(), 5.0 / 16 / 2);
  EXPECT_EQ(error_of([&] { score.add(masks.narrow(0, 0, 1), mask); }),
            "an image has the masks of 1 heads, those before it of 2");
}

}  // namespace
}  // namespace vitrail::explain
