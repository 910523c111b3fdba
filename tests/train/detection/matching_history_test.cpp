#include "vitrail/train/detection/matching_history.h"

#include <array>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/train/detection/query_boxes.h"

namespace vitrail::train {
namespace {

using test::error_of;
using ::testing::HasSubstr;

models::Detector tiny_detector(std::uint64_t seed) {
  return models::create_detector("detr_scenes", {.labels = {"circle", "square", "triangle", "bird"}, .seed = seed},
                                 R"({"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16,
                                     "decoder_ffn_dim": 16, "num_queries": 7,
                                     "backbone_kwargs": {"channels": [8, 8, 8], "stem_width": 8}})");
}

TEST(MatchingHistory, RecordsWhichQueryStandsForWhichObject) {
  const data::BoxedImages data = data::open_boxed_images("scenes:count=6", {.split = "train"});
  MatchingHistory history(data, 2);
  EXPECT_TRUE(history.state().empty());
  const test::TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { history.write_page(folder / "page"); }), HasSubstr("no matching was recorded"));
  const models::Detector first = tiny_detector(1);
  history.record(first, {});
  history.record(first, {});
  history.record(tiny_detector(2), {});
  EXPECT_EQ(history.records(), 3);
  ASSERT_EQ(history.changes().size(), 2);
  EXPECT_EQ(history.changes()[0], 0);  // the same detector
  EXPECT_GT(history.changes()[1], 0);

  // Each object has one of the queries, none has that of another in its image.
  const io::NamedTensors state = history.state();
  ASSERT_EQ(state.size(), 1);
  const Tensor& stands = state[0].second;
  const auto of_first = static_cast<std::int64_t>(data.objects[0].size());
  EXPECT_EQ(stands.size(1), of_first + static_cast<std::int64_t>(data.objects[1].size()));
  std::set<float> queries;
  for (std::int64_t object = 0; object < of_first; ++object) {
    const std::vector<float> stand = stands.select(0, 0).select(0, object).values();
    EXPECT_GE(stand[0], 0);
    EXPECT_LT(stand[0], 7);
    EXPECT_GT(stand[1], 0);
    EXPECT_LT(stand[1], 1);
    queries.insert(stand[0]);
  }
  EXPECT_EQ(std::ssize(queries), of_first);

  MatchingHistory again(data, 2);
  again.load_state(state);
  EXPECT_EQ(again.changes(), history.changes());
  history.write_page(folder / "page");
  again.write_page(folder / "again");
  const std::string page = io::read_text(folder / "page" / "index.html");
  EXPECT_EQ(io::read_text(folder / "again" / "index.html"), page);
  EXPECT_THAT(page, HasSubstr("\"records\":3"));
  EXPECT_TRUE(std::filesystem::exists(folder / "page" / "1.png"));
  MatchingHistory other(data, 1);  // follows other images: begins anew
  other.load_state(state);
  EXPECT_EQ(other.records(), 0);
  again.load_state({});  // a run of an earlier version
  EXPECT_EQ(again.records(), 0);
}

TEST(QueryBoxes, PutsADotAtTheCentreOfEachBoxInTheSquareOfItsQuery) {
  const std::vector<std::vector<FoundObject>> found = {
      {{.box = {90, 40, 110, 60}, .query = 0}, {.box = {0, 0, 200, 20}, .query = 2}}};
  const std::vector<std::array<std::int64_t, 2>> sizes = {{200, 100}};
  const io::Image image = query_boxes(found, sizes, 3);
  EXPECT_EQ(image.width, 10 + 3 * 130);
  std::vector<std::array<std::int64_t, 3>> dots;  // their squares, and places in them in tenths
  for (std::int64_t query = 0; query < 3; ++query) {
    for (std::int64_t y = 18; y < 138; ++y) {
      for (std::int64_t x = 10 + query * 130; x < 130 + query * 130; ++x) {
        if (image.at(x, y)[2] < 200) {
          dots.push_back({query, (x - 10 - query * 130) / 12, (y - 18) / 12});
        }
      }
    }
  }
  ASSERT_EQ(dots.size(), 8);
  EXPECT_EQ(dots[0][0], 0);  // small, in the middle: green
  EXPECT_NEAR(static_cast<double>(dots[0][1]), 5, 1);
  EXPECT_NEAR(static_cast<double>(dots[0][2]), 5, 1);
  EXPECT_EQ(dots[7][0], 2);  // wide, at the top: red
  EXPECT_EQ(dots[7][2], 1);
  const std::uint8_t* green = image.at(10 + 59, 18 + 59);
  EXPECT_GT(green[1], green[0] + 80);
  const std::uint8_t* red = image.at(270 + 59, 18 + 12);
  EXPECT_GT(red[0], red[1] + 80);
  EXPECT_THAT(error_of([&] { query_boxes(found, {}, 3); }), HasSubstr("predictions for 1 images, but 0 sizes"));
}

}  // namespace
}  // namespace vitrail::train
