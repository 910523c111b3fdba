#include "vitrail/explain/overlay.h"

#include "tests/support/golden.h"
#include "vitrail/explain/drawing/colormap.h"
#include "vitrail/explain/page.h"

namespace vitrail::explain {
namespace {

TEST(ImageOf, TakesTheNormalizationBackAndEnlarges) {
  Tensor x = Tensor::zeros({1, 3, 2, 2});
  x.data<float>()[0] = 1.0F;  // red, top left: 1 · 0.5 + 0.5
  const std::vector<double> half(3, 0.5);
  const io::Image image = image_of(x, half, half, 4);
  ASSERT_EQ(image.width, 4);
  ASSERT_EQ(image.height, 4);
  EXPECT_EQ(image.at(1, 1)[0], 255);
  EXPECT_EQ(image.at(2, 1)[0], 128);
  EXPECT_EQ(image.at(0, 0)[1], 128);
}

TEST(Overlay, IsBrightWhereTheMapIsLargest) {
  const io::Image black(8, 8);
  const io::Image result = overlay(black, Tensor::from<float>({0, 0, 0, 1}, {2, 2}), {.strength = 1.0F, .patch = {}});
  const Color darkest = inferno(0);
  const Color brightest = inferno(1);
  EXPECT_EQ(result.at(0, 0)[0], darkest[0]);
  EXPECT_EQ(result.at(7, 7)[0], brightest[0]);
  EXPECT_EQ(result.at(7, 7)[1], brightest[1]);
}

TEST(Overlay, FramesTheChosenPatch) {
  const io::Image black(32, 32);
  const Query query{.kind = Query::Kind::patch, .row = 1, .column = 0};
  const io::Image result = overlay(black, Tensor::zeros({2, 2}), {.strength = 0.5F, .patch = query});
  EXPECT_EQ(result.at(0, 16)[0], 255);
  EXPECT_NE(result.at(0, 15)[0], 255);
}

// The map of a layer whose grid is coarser than the one that patches are counted on.
TEST(Overlay, FramesAPatchOfAFinerGridThanTheMaps) {
  const io::Image black(32, 32);
  const Query query{.kind = Query::Kind::patch, .row = 3, .column = 1};
  const io::Image result = overlay(black, Tensor::zeros({2, 2}), {.strength = 0.5F, .patch = query, .grid = {4, 4}});
  EXPECT_EQ(result.at(8, 24)[0], 255);
  EXPECT_NE(result.at(7, 24)[0], 255);
  EXPECT_NE(result.at(16, 24)[0], 255);
  EXPECT_THROW(overlay(black, Tensor::zeros({2, 2}), {.strength = 0.5F, .patch = query}), Error);
}

TEST(Sheet, LaysImagesInRows) {
  io::Image dark(2, 2);
  const io::Image result = sheet({{dark, dark}, {dark}}, 1);
  EXPECT_EQ(result.width, 5);
  EXPECT_EQ(result.height, 5);
  EXPECT_EQ(result.at(2, 0)[0], 255);  // the gap
  EXPECT_EQ(result.at(0, 0)[0], 0);
  EXPECT_EQ(result.at(4, 4)[0], 255);  // no fourth image
  EXPECT_THROW(sheet({{dark, io::Image(3, 2)}}), Error);
}

TEST(Colormap, EndsAreMatplotlibs) {
  EXPECT_EQ(viridis(0), (Color{68, 1, 84}));
  EXPECT_EQ(viridis(1), (Color{253, 231, 37}));
  EXPECT_EQ(inferno(2), (Color{252, 255, 164}));
  EXPECT_EQ(inferno(NAN), (Color{0, 0, 4}));
}

TEST(Page, EscapesWhatItIsGiven) {
  const std::string page = html_page("a < b", "c & d",
                                     {{.title = "<script>",
                                       .text = "one\n\ntwo",
                                       .table = {{"h"}, {{"\"x\""}}},
                                       .figures = {{"a.png", "A \"caption\""}}}});
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_NE(page.find("<p>one</p>\n<p>two</p>"), std::string::npos);
  EXPECT_NE(page.find("alt=\"A &quot;caption&quot;\""), std::string::npos);
}

}  // namespace
}  // namespace vitrail::explain
