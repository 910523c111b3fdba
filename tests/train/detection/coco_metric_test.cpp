#include "vitrail/train/detection/coco_metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/json.h"

namespace vitrail::train {
namespace {

// Cases of tools/golden/coco_metric.py: usual ones, crowds, equal scores, classes without objects, none at all, and
// more detections than count.
TEST(CocoMetric, IsPycocotools) {
  const nlohmann::json cases = io::read_json(test::golden_path("sets/coco_metric.json"));
  EXPECT_EQ(cases.size(), 6);
  for (const auto& [name, one] : cases.items()) {
    std::vector<std::vector<FoundObject>> found;
    std::vector<std::vector<data::BoxedObject>> objects;
    for (const nlohmann::json& image : one["images"]) {
      found.emplace_back();
      objects.emplace_back();
      for (const nlohmann::json& o : image["objects"]) {
        const data::Box box{o[0], o[1], o[0].get<double>() + o[2].get<double>(),
                            o[1].get<double>() + o[3].get<double>()};
        objects.back().push_back({.box = box, .label = o[5], .area = o[4], .crowd = o[6] == 1});
      }
      for (const nlohmann::json& d : image["detections"]) {
        const data::Box box{d[0], d[1], d[0].get<double>() + d[2].get<double>(),
                            d[1].get<double>() + d[3].get<double>()};
        found.back().push_back({box, d[4], d[5]});
      }
    }
    const auto classes = one["classes"].get<std::int64_t>();
    const CocoFigures figures = coco_figures(found, objects, classes);
    for (std::size_t i = 0; i < figures.stats.size(); ++i) {
      EXPECT_NEAR(figures.stats[i], one["stats"][i].get<double>(), 1e-9) << name << " " << coco_figure_names()[i];
    }
    for (std::size_t c = 0; c < static_cast<std::size_t>(classes); ++c) {
      EXPECT_NEAR(figures.class_ap[c], one["class_ap"][c].get<double>(), 1e-9) << name << " class " << c;
      EXPECT_NEAR(figures.class_ap50[c], one["class_ap50"][c].get<double>(), 1e-9) << name << " class " << c;
    }
  }
}

// VOC's difficult objects need not be found.
TEST(CocoMetric, PassesOverWhatIsDifficult) {
  const std::vector<std::vector<data::BoxedObject>> objects = {
      {{.box = {0, 0, 50, 50}, .area = 2500}, {.box = {60, 0, 90, 90}, .area = 2700, .difficult = true}}};
  const std::vector<std::vector<FoundObject>> found = {{{{0, 0, 50, 50}, 0, 0.9}}};
  EXPECT_NEAR(coco_figures(found, objects, 1).stats[0], 1, 1e-9);
  EXPECT_THAT(test::error_of([&] { coco_figures({}, objects, 1); }), testing::HasSubstr("objects of 1"));
}

}  // namespace
}  // namespace vitrail::train
