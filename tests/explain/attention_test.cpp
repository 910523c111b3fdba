#include "vitrail/explain/attention.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "vitrail/explain/overlay.h"

namespace vitrail::explain {
namespace {

using nn::Size2;
using test::expect_close;

// One class token and a 1 x 2 grid; every row sums to 1.
Attention two_layers() {
  Attention attention;
  attention.layout = {.prefix = 1, .rows = 1, .columns = 2, .class_token = true};
  attention.layers.push_back(Tensor::from<float>({0.2F, 0.3F, 0.5F, 0.1F, 0.8F, 0.1F, 0.6F, 0.2F, 0.2F,  //
                                                  0.4F, 0.1F, 0.5F, 0.3F, 0.6F, 0.1F, 0.2F, 0.2F, 0.6F},
                                                 {1, 2, 3, 3}));
  attention.layers.push_back(Tensor::from<float>({1.0F, 0.0F, 0.0F, 0.0F, 0.5F, 0.5F, 0.5F, 0.25F, 0.25F,  //
                                                  0.0F, 0.5F, 0.5F, 0.0F, 0.5F, 0.5F, 0.5F, 0.25F, 0.25F},
                                                 {1, 2, 3, 3}));
  attention.grids.assign(2, {.prefix = 1, .queries = {1, 2}, .keys = {1, 2}});
  return attention;
}

// Windows of 2 x 2 on a grid of 3 x 4, shifted by 1: every token sees key k of its window with weight k.
Attention shifted_windows() {
  Attention attention;
  attention.layout = {.prefix = 0, .rows = 3, .columns = 4, .class_token = false};
  attention.grids = {{.prefix = 0, .queries = {3, 4}, .keys = {3, 4}, .window = {2, 2}, .shift = {1, 1}}};
  const Tensor probabilities = Tensor::empty({4, 1, 4, 4});
  for (std::int64_t i = 0; i < probabilities.numel(); ++i) {
    probabilities.data<float>()[i] = static_cast<float>(i % 4);
  }
  attention.layers = {probabilities};
  return attention;
}

// Rolled by (1, 1), the rows are 1, 2, 0 and a filled up one, the columns 1, 2, 3, 0.
TEST(AttentionMap, PutsWindowsBackOnTheGrid) {
  const Query inside{.kind = Query::Kind::patch, .row = 1, .column = 2};  // in the window of rows 1, 2 and columns 1, 2
  expect_close(attention_map(shifted_windows(), 0, 0, inside),
               Tensor::from<float>({0, 0, 0, 0, 0, 0, 1, 0, 0, 2, 3, 0}, {3, 4}), 1e-6);
  const Query corner{
      .kind = Query::Kind::patch, .row = 0, .column = 0};  // of row 0 and what is filled up; columns 3, 0
  expect_close(attention_map(shifted_windows(), 0, 0, corner),
               Tensor::from<float>({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {3, 4}), 1e-6);
  // All queries: a window of four tokens counts four times, one of two tokens and two filled up twice.
  const Tensor mean = attention_map(shifted_windows(), 0, 0);
  expect_close(mean.narrow(0, 2, 1), Tensor::from<float>({12.0F / 12, 8.0F / 12, 12.0F / 12, 8.0F / 12}, {1, 4}), 1e-6);
  EXPECT_FALSE(can_roll_out(shifted_windows()));
  EXPECT_THROW(rollout(shifted_windows()), Error);
}

TEST(AttentionMap, ShowsKeysOfACoarserGrid) {
  Attention attention;
  attention.layout = {.prefix = 0, .rows = 4, .columns = 4, .class_token = false};
  attention.grids = {{.prefix = 0, .queries = {2, 2}, .keys = {1, 2}}};
  attention.layers = {Tensor::from<float>({0.1F, 0.9F, 0.2F, 0.8F, 0.3F, 0.7F, 0.4F, 0.6F}, {1, 1, 4, 2})};
  const Query query{.kind = Query::Kind::patch, .row = 3, .column = 1};  // covered by the token in row 1, column 0
  expect_close(attention_map(attention, 0, 0, query), Tensor::from<float>({0.3F, 0.7F}, {1, 2}), 1e-6);
}

// The last stage of a convolutional network has 2 x 2 pixels, the attention in front of it 3 x 4: row 0 lies in the
// upper patches, rows 1 and 2 in the lower ones. Query i sees the left key with weight i / 20.
TEST(AttentionMap, AveragesTheFinerTokensOfAPatch) {
  Attention attention;
  attention.layout = {.prefix = 0, .rows = 2, .columns = 2, .class_token = false};
  attention.grids = {{.prefix = 0, .queries = {3, 4}, .keys = {1, 2}}};
  const Tensor probabilities = Tensor::empty({1, 1, 12, 2});
  for (std::int64_t i = 0; i < 12; ++i) {
    probabilities.data<float>()[2 * i] = static_cast<float>(i) / 20;
    probabilities.data<float>()[2 * i + 1] = 1 - static_cast<float>(i) / 20;
  }
  attention.layers = {probabilities};
  const auto left_of = [&](std::int64_t row, std::int64_t column) {
    const Tensor map = attention_map(attention, 0, 0, {.kind = Query::Kind::patch, .row = row, .column = column});
    EXPECT_NEAR(map.values()[0] + map.values()[1], 1, 1e-6);
    return map.values()[0];
  };
  EXPECT_NEAR(left_of(0, 0), (0 + 1) / 40.0, 1e-6);
  EXPECT_NEAR(left_of(0, 1), (2 + 3) / 40.0, 1e-6);
  EXPECT_NEAR(left_of(1, 0), (4 + 5 + 8 + 9) / 80.0, 1e-6);
  EXPECT_NEAR(left_of(1, 1), (6 + 7 + 10 + 11) / 80.0, 1e-6);
  EXPECT_NEAR(attention_map(attention, 0, 0).values()[0], 5.5 / 20, 1e-6);
}

TEST(AttentionMap, ShowsTheClassTokensRowOfOneHead) {
  expect_close(attention_map(two_layers(), 0, 1), Tensor::from<float>({0.1F, 0.5F}, {1, 2}), 1e-6);
}

TEST(AttentionMap, AveragesTheHeads) {
  expect_close(attention_map(two_layers(), 0, all_heads), Tensor::from<float>({0.2F, 0.5F}, {1, 2}), 1e-6);
}

TEST(AttentionMap, ShowsAChosenPatch) {
  const Query query{.kind = Query::Kind::patch, .row = 0, .column = 1};
  expect_close(attention_map(two_layers(), 0, 0, query), Tensor::from<float>({0.2F, 0.2F}, {1, 2}), 1e-6);
}

TEST(AttentionMap, AveragesThePatchesWhereThereIsNoClassToken) {
  Attention attention = two_layers();
  attention.layout.class_token = false;
  expect_close(attention_map(attention, 0, 0), Tensor::from<float>({0.5F, 0.15F}, {1, 2}), 1e-6);
}

TEST(AttentionMap, NamesWhatDoesNotExist) {
  EXPECT_THROW(attention_map(two_layers(), 2, 0), Error);
  EXPECT_THROW(attention_map(two_layers(), 0, 2), Error);
  EXPECT_THROW(attention_map(two_layers(), 0, 0, {.kind = Query::Kind::patch, .row = 1, .column = 0}), Error);
}

// By hand: mean heads, mix with the identity, multiply the second layer's matrix by the first's; row 0.
TEST(Rollout, IsTheProductOfTheMixedLayers) {
  // Layer means: row 0 of the second is (0.5, 0.25, 0.25); mixed (0.75, 0.125, 0.125).
  // First layer mixed: (0.65, 0.1, 0.25), (0.1, 0.85, 0.05), (0.2, 0.1, 0.7).
  const float left = 0.75F * 0.1F + 0.125F * 0.85F + 0.125F * 0.1F;
  const float right = 0.75F * 0.25F + 0.125F * 0.05F + 0.125F * 0.7F;
  expect_close(rollout(two_layers()), Tensor::from<float>({left, right}, {1, 2}), 1e-6);
}

// A model of tests/golden/models, and the first image (or clip) of its fixture.
Attention recorded(const std::string& name) {
  const models::Model model = models::load_model(test::golden_path("models/" + name));
  const Tensor x = test::golden("models/" + name + "/expected.safetensors").get("x");
  return record_attention(*model.net, x.narrow(0, 0, 1));
}

double total(const Tensor& map) {
  double sum = 0;
  for (const float value : map.values()) {
    EXPECT_TRUE(std::isfinite(value));
    EXPECT_GE(value, 0);
    sum += value;
  }
  return sum;
}

struct RealModel {
  const char* name;
  std::vector<Size2> grids;  // of the keys of its attentions
};

class RealMaps : public testing::TestWithParam<RealModel> {};

// Every map of every model lies on the image's grid. What is missing to a sum of 1 is what goes to the tokens in
// front, or to what windows were filled up with.
TEST_P(RealMaps, LieOnTheImagesGrid) {
  const auto& [name, grids] = GetParam();
  const Attention attention = recorded(name);
  ASSERT_EQ(attention.layers.size(), grids.size());
  ASSERT_EQ(attention.grids.size(), grids.size());
  const models::TokenLayout& layout = attention.layout;
  const Query corner{.kind = Query::Kind::patch, .row = layout.rows - 1, .column = layout.columns - 1};
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    const nn::TokenGrid& place = attention.grids[i];
    const Tensor& heads = attention.layers[i];
    const bool filled =
        place.windowed() && (place.queries[0] % place.window[0] != 0 || place.queries[1] % place.window[1] != 0);
    for (const bool summary : {true, false}) {
      const Query query = summary ? Query{} : corner;
      Tensor mean = Tensor::zeros({grids[i][0], grids[i][1]});
      for (std::int64_t head = 0; head < attention.num_heads(layer); ++head) {
        const Tensor map = attention_map(attention, layer, head, query);
        ASSERT_EQ(map.shape(), mean.shape()) << name << ": layer " << i;
        double expected = 1;
        if (place.prefix > 0) {  // these models have a class token, and it or the last patch is what is asked for
          const std::int64_t row = summary ? 0 : heads.size(2) - 1;
          expected -= total(heads.select(0, 0).select(0, head).select(0, row).narrow(0, 0, place.prefix));
        }
        if (filled) {
          EXPECT_GT(total(map), 0) << name << ": layer " << i;
          EXPECT_LE(total(map), 1.00001) << name << ": layer " << i;
        } else {
          EXPECT_NEAR(total(map), expected, 1e-5) << name << ": layer " << i;
        }
        for (std::int64_t k = 0; k < map.numel(); ++k) {
          mean.data<float>()[k] += map.data<float>()[k] / static_cast<float>(attention.num_heads(layer));
        }
      }
      expect_close(attention_map(attention, layer, all_heads, query), mean, 1e-5, name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RealMaps,
                         testing::Values(RealModel{"plain", {{4, 4}, {4, 4}}}, RealModel{"beit", {{4, 3}, {4, 3}}},
                                         RealModel{"eva02", {{5, 4}, {5, 4}}}, RealModel{"hybrid", {{4, 5}, {4, 5}}},
                                         RealModel{"swin", {{16, 16}, {16, 16}, {8, 8}, {8, 8}, {4, 4}}},
                                         RealModel{"swin_padded", {{9, 11}, {9, 11}, {5, 6}, {5, 6}}},
                                         RealModel{"swinv2", {{16, 16}, {16, 16}, {8, 8}}},
                                         RealModel{"hf_swin_padded", {{16, 22}, {16, 22}, {8, 11}, {4, 6}, {4, 6}}},
                                         RealModel{"mvit", {{2, 2}, {4, 4}, {2, 2}, {4, 4}, {2, 2}}},
                                         RealModel{"botnet", {{4, 4}, {4, 4}, {2, 2}}},
                                         RealModel{"resnet_sagan", {{5, 4}}},
                                         RealModel{"resnet_nl", {{10, 8}, {5, 4}, {3, 2}, {3, 2}, {2, 1}}}),
                         [](const auto& info) { return std::string(info.param.name); });

// Where nothing is filled up, a shifted window is one of the grid that begins `shift` tokens later; what is left over
// in front and behind are windows of their own.
TEST(AttentionMap, OfARealSwinStaysInTheQuerysWindow) {
  for (const char* name : {"swin", "swinv2"}) {
    const Attention attention = recorded(name);
    bool shifted = false;
    for (std::size_t i = 0; i < attention.layers.size(); ++i) {
      const nn::TokenGrid& place = attention.grids[i];
      ASSERT_TRUE(place.windowed());
      const auto [rows, columns] = place.queries;
      const std::int64_t patches = attention.layout.rows / rows;  // of a token's side
      shifted = shifted || place.shift[0] > 0;
      const auto window_of = [&](std::int64_t row, std::int64_t column) {
        return Size2{(row + place.window[0] - place.shift[0]) / place.window[0],
                     (column + place.window[1] - place.shift[1]) / place.window[1]};
      };
      for (std::int64_t token = 0; token < rows * columns; ++token) {
        const Query query{
            .kind = Query::Kind::patch, .row = token / columns * patches, .column = token % columns * patches};
        const Tensor map = attention_map(attention, static_cast<std::int64_t>(i), 0, query);
        const Size2 own = window_of(token / columns, token % columns);
        double inside = 0;
        for (std::int64_t key = 0; key < rows * columns; ++key) {
          const float weight = map.data<float>()[key];
          if (window_of(key / columns, key % columns) == own) {
            EXPECT_GT(weight, 1e-6) << name << ": layer " << i << ", " << token << " does not see " << key;
            inside += weight;
          } else {
            EXPECT_LT(weight, 1e-12) << name << ": layer " << i << ", " << token << " sees " << key;
          }
        }
        EXPECT_NEAR(inside, 1, 1e-5) << name << ": layer " << i << ", " << token;
      }
    }
    EXPECT_TRUE(shifted) << name;
  }
}

// The last stage of this network has 2 x 1 pixels, its first attention 10 x 8: all of them take part.
TEST(AttentionMap, OfARealNetworkAsksAllTokensOfAPatch) {
  const Attention attention = recorded("resnet_nl");
  ASSERT_EQ(attention.layout.rows, 2);
  ASSERT_EQ(attention.layout.columns, 1);
  const Tensor upper = attention_map(attention, 0, 0, {.kind = Query::Kind::patch, .row = 0, .column = 0});
  const Tensor lower = attention_map(attention, 0, 0, {.kind = Query::Kind::patch, .row = 1, .column = 0});
  const Tensor all = attention_map(attention, 0, 0);
  for (std::int64_t i = 0; i < all.numel(); ++i) {
    double above = 0;
    for (std::int64_t query = 0; query < 40; ++query) {
      above += attention.layers[0].data<float>()[query * 80 + i] / 40;
    }
    EXPECT_NEAR(upper.data<float>()[i], above, 1e-6);
    EXPECT_NEAR((upper.data<float>()[i] + lower.data<float>()[i]) / 2, all.data<float>()[i], 1e-6);
  }
}

TEST(PoolingMap, ShowsWhatAttentionPoolingTakes) {
  const Attention siglip = recorded("map");
  ASSERT_EQ(siglip.layers.size(), 2U);  // the blocks' alone
  EXPECT_TRUE(can_roll_out(siglip));
  EXPECT_EQ(rollout(siglip).shape(), (Shape{4, 4}));
  ASSERT_EQ(siglip.pool.shape(), (Shape{1, 3, 1, 16}));
  const Tensor mean = pooling_map(siglip);
  ASSERT_EQ(mean.shape(), (Shape{4, 4}));
  EXPECT_NEAR(total(mean), 1, 1e-5);
  expect_close(pooling_map(siglip, 2).reshape({16}), siglip.pool.narrow(1, 2, 1).reshape({16}), 0);
  EXPECT_THROW(pooling_map(siglip, 3), Error);
  // The class token takes part in this one.
  const Attention pe = recorded("pe");
  const Tensor map = pooling_map(pe, 1);
  ASSERT_EQ(map.shape(), (Shape{3, 4}));
  EXPECT_NEAR(total(map), 1 - pe.pool.narrow(1, 1, 1).values()[0], 1e-5);
  EXPECT_THROW(pooling_map(recorded("plain")), Error);
}

// Three frames of 5 x 7 patches; the second layer pools its queries to 2 x 3 x 4 and its keys to 1 x 3 x 4.
TEST(AttentionMap, LaysAVideosMapsOnItsFrames) {
  const Attention attention = recorded("mvit_video_odd");
  ASSERT_EQ(attention.layout.frames, 3);
  ASSERT_EQ(attention.layout.rows, 3 * 5);
  ASSERT_EQ(attention.layout.columns, 7);
  const auto map_of = [&](std::int64_t layer, std::int64_t frame, std::int64_t row, std::int64_t column) {
    return attention_map(attention, layer, 0,
                         {.kind = Query::Kind::patch, .row = row, .column = column, .frame = frame});
  };
  const auto expect_row = [&](const Tensor& map, std::size_t layer, std::int64_t token) {
    const Tensor row = attention.layers[layer].select(0, 0).select(0, 0).select(0, 1 + token);
    expect_close(map.reshape({map.numel()}), row.narrow(0, 1, map.numel()), 1e-6, "token " + std::to_string(token));
  };
  ASSERT_EQ(map_of(0, 1, 2, 3).shape(), (Shape{3, 3, 2}));
  expect_row(map_of(0, 1, 2, 3), 0, (1 * 5 + 2) * 7 + 3);
  expect_row(map_of(0, 2, 4, 6), 0, (2 * 5 + 4) * 7 + 6);
  ASSERT_EQ(map_of(1, 1, 2, 3).shape(), (Shape{1, 3, 4}));
  expect_row(map_of(1, 1, 2, 3), 1, (0 * 3 + 1) * 4 + 1);
  expect_row(map_of(1, 2, 4, 6), 1, (1 * 3 + 2) * 4 + 3);
  const Tensor of_class = attention_map(attention, 0, 0);
  const Tensor first = attention.layers[0].select(0, 0).select(0, 0).select(0, 0);
  EXPECT_NEAR(total(of_class), 1 - first.values()[0], 1e-5);
  EXPECT_THROW(map_of(0, 3, 0, 0), Error);
  EXPECT_THROW(map_of(0, 0, 5, 0), Error);
  // One frame of it over a frame of the clip.
  const io::Image frame = overlay(io::Image(28, 20), of_class.select(0, 1));
  EXPECT_EQ(frame.width, 28);
  EXPECT_NE(*std::ranges::max_element(frame.pixels), 0);
}

}  // namespace
}  // namespace vitrail::explain
