#include "vitrail/explain/positions.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "vitrail/explain/drawing/colormap.h"
#include "vitrail/explain/drawing/drawing.h"
#include "vitrail/models/base/owner.h"
#include "vitrail/nn/positions/alibi.h"
#include "vitrail/nn/positions/rotary.h"

namespace vitrail::explain {
namespace {

Query place(std::int64_t row, std::int64_t column) {
  return {.kind = Query::Kind::patch, .row = row, .column = column};
}

TEST(SimilarityMap, IsTheCosineOfTwoVectors) {
  const Tensor positions = Tensor::from(std::vector<float>{1, 0, 0, 2, 3, 3, 0, 0}, {4, 2});
  const std::vector<float> map = similarity_map(positions, {2, 2}, place(1, 0)).values();
  EXPECT_FLOAT_EQ(map[0], std::sqrt(0.5F));
  EXPECT_FLOAT_EQ(map[1], std::sqrt(0.5F));
  EXPECT_FLOAT_EQ(map[2], 1);
  EXPECT_EQ(map[3], 0);  // a vector of zeros is like no other
  EXPECT_THROW(similarity_map(positions, {2, 2}, place(2, 0)), Error);
}

TEST(BiasMap, IsTheRowOfThePatchThatLooks) {
  const Tensor bias = nn::alibi_bias(nn::AlibiKind::grid, {3, 4}, 2, 1);
  const std::vector<float> slopes = nn::alibi_slopes(2);
  const std::vector<float> map = bias_map(bias, {3, 4}, 1, 1, place(1, 1)).values();
  EXPECT_EQ(map[5], 0);
  EXPECT_FLOAT_EQ(map[7], -2 * slopes[1]);
  EXPECT_FLOAT_EQ(map[0], -std::sqrt(2.0F) * slopes[1]);
  const std::vector<float> mean = bias_map(bias, {3, 4}, 1, all_heads, place(1, 1)).values();
  EXPECT_FLOAT_EQ(mean[7], -(slopes[0] + slopes[1]));
  EXPECT_THROW(bias_map(bias, {3, 4}, 1, 2, place(1, 1)), Error);
  EXPECT_THROW(bias_map(bias, {4, 4}, 1, 0, place(1, 1)), Error);
}

TEST(RotationMap, IsTheMeanCosineOfTheAnglesBetween) {
  const ops::Rotation rotation = ops::rotation(nn::axial_angles({2, 3}, 4, {.temperature = 100}));
  const std::vector<float> map = rotation_map(rotation, {2, 3}, 0, place(0, 1)).values();
  EXPECT_FLOAT_EQ(map[1], 1);
  EXPECT_FLOAT_EQ(map[0], (1 + std::cos(1.0F)) / 2);
  EXPECT_FLOAT_EQ(map[5], std::cos(1.0F));
  EXPECT_THROW(rotation_map(rotation, {2, 3}, 1, place(0, 1)), Error);
}

TEST(PositionImage, HasWhatTheModelHas) {
  const auto image = [](const std::string& code) {
    models::CreateOptions options;
    options.model_kwargs = nlohmann::json{{"img_size", {12, 16}}, {"patch_size", 4}, {"embed_dim", 16},
                                          {"depth", 2},           {"num_heads", 2},  {"pos_embed", code}}
                               .dump();
    const models::Model model = models::create_model("vit_tiny_patch16_224", options);
    return position_image(positions_of(*models::body_of<models::VisionTransformer>(*model.net), {3, 4}), 1);
  };
  // The caption and, at the lower right under labels and a caption of their own, 3 x 4 tiles of 3 x 4 cells of 14
  // pixels; above these a table of 12 rows and 16 columns.
  const std::int64_t tiles_width = 4 * 56 + 3 * 2;
  const std::int64_t tiles_height = 3 * 42 + 2 * 2;
  const io::Image added = image("sincos2d");
  const std::int64_t left = 2 * (letter_width + 2);  // of the tiles, beside one digit and its margin
  EXPECT_GE(added.width, left + tiles_width);
  EXPECT_GE(added.height, 12 * ((left + tiles_width) / 16) + tiles_height);
  // The corner's likeness to itself, and that of the last patch.
  const auto color_at = [](const io::Image& of, std::int64_t x, std::int64_t y) {
    const std::uint8_t* pixel = of.at(x, y);
    return Color{pixel[0], pixel[1], pixel[2]};
  };
  EXPECT_EQ(color_at(added, left, added.height - tiles_height), viridis(1));
  EXPECT_EQ(color_at(added, left + tiles_width - 1, added.height - 1), viridis(1));
  const io::Image biased = image("alibi2d");               // two places x two heads
  const std::int64_t places = 2 * (9 * letter_width + 2);  // "patch 1,2"
  EXPECT_EQ(biased.width, places + 2 * 4 * 28 + 6);
  EXPECT_EQ(color_at(biased, biased.width - 1, biased.height - (2 * 3 * 28 + 6) - 1), (Color{255, 255, 255}));
  EXPECT_NE(color_at(biased, biased.width - 1, biased.height - (2 * 3 * 28 + 6)), (Color{255, 255, 255}));
  EXPECT_GE(image("rope2d").width, places + 4 * 28);
  EXPECT_EQ(image("rope2d_mixed").width, places + 2 * 4 * 28 + 6);
  EXPECT_THROW(image("none"), Error);
}

}  // namespace
}  // namespace vitrail::explain
