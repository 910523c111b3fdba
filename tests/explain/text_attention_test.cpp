#include "vitrail/explain/text_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/xml.h"
#include "vitrail/explain/attention.h"
#include "vitrail/models/text/text_model.h"

namespace vitrail::explain {
namespace {

using models::TextAttentionKind;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> words = {"der", "Bär", "<ist>", "da"};

std::vector<TextAttention> of_gpt2(const std::vector<std::string>& names = words) {
  const models::TextModel model = models::load_text_model(test::golden_path("models/text/gpt2"));
  const Tensor ids = Tensor::from<std::int64_t>({3, 1, 4, 1}, {1, 4});
  return record_text_attention(*model.net, {.input_ids = ids}, {.input = names});
}

TEST(TextAttention, IsThatOfEachLayer) {
  const std::vector<TextAttention> layers = of_gpt2();
  ASSERT_GE(layers.size(), 2U);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const TextAttention& layer = layers[i];
    EXPECT_EQ(layer.kind, TextAttentionKind::self);
    EXPECT_EQ(layer.title(), "layer " + std::to_string(i));
    EXPECT_EQ(layer.queries, words);
    EXPECT_EQ(layer.keys, words);
    const Tensor mean = layer.map(all_heads), first = layer.map(0);
    EXPECT_EQ(mean.shape(), Shape({4, 4}));
    for (std::int64_t n = 0; n < 4; ++n) {
      float sum = 0;
      for (std::int64_t m = 0; m < 4; ++m) {
        sum += first.data<float>()[n * 4 + m];
        EXPECT_TRUE(m <= n || first.data<float>()[n * 4 + m] == 0) << "a decoder sees no later word";
      }
      EXPECT_NEAR(sum, 1, 1e-6);
    }
  }
  EXPECT_THAT(test::error_of([&] { (void)layers[0].map(99); }), HasSubstr("layer 0 has the heads 0 … "));
  EXPECT_THAT(test::error_of([&] { of_gpt2({"one"}); }), HasSubstr("but there are 1 and 1 tokens"));
}

TEST(TextAttention, RollsOutOverAllLayers) {
  const std::vector<TextAttention> layers = of_gpt2();
  const Tensor whole = rollout(layers, TextAttentionKind::self);
  // By hand: the product of (A + I) / 2.
  std::vector<double> product(16, 0);
  for (std::size_t i = 0; i < 4; ++i) {
    product[i * 5] = 1;
  }
  for (const TextAttention& layer : layers) {
    const std::vector<float> mean = layer.map(all_heads).values();
    std::vector<double> next(16, 0);
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t k = 0; k < 4; ++k) {
        for (std::size_t j = 0; j < 4; ++j) {
          next[i * 4 + j] += (mean[i * 4 + k] + (i == k ? 1 : 0)) / 2 * product[k * 4 + j];
        }
      }
    }
    product = next;
  }
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_NEAR(whole.values()[i], product[i], 1e-6);
  }
  EXPECT_FALSE(rollout(layers, TextAttentionKind::cross).defined());
}

TEST(TextAttention, IsDrawnAsLinesAndMaps) {
  const Tensor map =
      Tensor::from<float>({1, 0, 0, 0, 0.75, 0.25, 0, 0, 0.005, 0.005, 0.99, 0, 0.25, 0.25, 0.25, 0.25}, {4, 4});
  const std::string svg = attention_lines_svg("head 1 & 2", words, words, map);
  EXPECT_EQ(test::xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("head 1 &amp; 2"));
  EXPECT_THAT(svg, HasSubstr("Bär → der: 0.750"));
  EXPECT_THAT(svg, HasSubstr("&lt;ist&gt; → &lt;ist&gt;: 0.990"));
  EXPECT_THAT(svg, Not(HasSubstr("0.005"))) << "faint lines are left out";
  EXPECT_THAT(attention_lines_svg("t", {std::string(99, 'x')}, {"a"}, Tensor::from<float>({1}, {1, 1})),
              HasSubstr(std::string(24, 'x') + "…"));
  EXPECT_THAT(test::error_of([&] { attention_lines_svg("t", {"a"}, words, map); }),
              HasSubstr("a map [4, 4] does not join 1 words with 4"));
  EXPECT_EQ(test::xml_fault(io::heat_map_svg(attention_heat_map("t", words, words, map))), "");
  const io::Image tile = attention_tile(map, 3);
  EXPECT_EQ(tile.width, 12);
  EXPECT_EQ(tile.height, 12);
  EXPECT_GT(*tile.at(1, 1), *tile.at(4, 1)) << "much attention is bright";
}

}  // namespace
}  // namespace vitrail::explain
