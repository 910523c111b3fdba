#include "vitrail/data/scenes/source.h"

#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/data/boxes/boxed_images.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/pairs/text_pairs.h"

namespace vitrail::data {
namespace {

using test::error_of;
using ::testing::HasSubstr;

TEST(SceneSource, ReadsItsFields) {
  EXPECT_TRUE(is_scene_source("scenes:count=1"));
  EXPECT_FALSE(is_scene_source("scenes/train"));
  const SceneFolder what = read_scene_source(
      "scenes:seed=7, count=80,start=20,size=96,objects=3-5,holdout=red triangle+blue bird,held-out,overlap=true,"
      "background=white,validation=9,captions=2,task=count");
  EXPECT_EQ(what.scenes.seed, 7U);
  EXPECT_EQ(what.count, 80);
  EXPECT_EQ(what.first, 20);
  EXPECT_EQ(what.side, 96);
  EXPECT_EQ(what.scenes.fewest_objects, 3);
  EXPECT_EQ(what.scenes.most_objects, 5);
  EXPECT_EQ(what.scenes.holdout, (std::set<SceneKind>{scene_kind("red triangle"), scene_kind("blue bird")}));
  EXPECT_TRUE(what.scenes.held_out && what.scenes.overlap);
  EXPECT_EQ(what.scenes.background, SceneColor::white);
  EXPECT_EQ(what.validation_count(), 9);
  EXPECT_EQ(what.captions, 2);
  EXPECT_EQ(what.scenes.task, SceneTask::count);
  EXPECT_EQ(read_scene_source("scenes:count=80,overlap=false").validation_count(), 8);
  EXPECT_EQ(read_scene_source("scenes:count=5,style=cells").style, SceneStyle::cells);
}

TEST(SceneSource, SaysWhichFieldIsBad) {
  const auto error = [](const std::string& fields) { return error_of([&] { read_scene_source("scenes:" + fields); }); };
  EXPECT_EQ(error("seed=1"), "scenes:seed=1: 'count' is missing: how many scenes");
  EXPECT_THAT(error("cuont=3"), HasSubstr("scenes:cuont=3: there is no field 'cuont' (did you mean 'count'?), only "));
  EXPECT_THAT(error("count=3,count=4"), HasSubstr("'count' is there twice"));
  EXPECT_THAT(error("count=0"), HasSubstr("'count' is a whole number from 1 to 10000000, not '0'"));
  EXPECT_THAT(error("count"), HasSubstr("'count' is a whole number from 1 to 10000000, not ''"));
  EXPECT_THAT(error("count=2,size=x"), HasSubstr("'size' is a whole number from 32 to 512, not 'x'"));
  EXPECT_THAT(error("count=2,overlap=yes"), HasSubstr("'overlap' is true or false, not 'yes'"));
  EXPECT_THAT(error("count=2,task=sum"), HasSubstr("'task' is 'none', 'same-different' or 'count', not 'sum'"));
  EXPECT_THAT(error("count=2,objects=2-"), HasSubstr("'objects' takes a number or a range of numbers"));
  EXPECT_THAT(error("count=2,holdout=pink bird"), HasSubstr("scenes have no 'pink bird'"));
  EXPECT_THAT(error("count=2,style=cells,task=count"), HasSubstr("'task' is not for scenes of cells"));
  EXPECT_THAT(error("count=2,task=same-different,objects=3"), HasSubstr("leave out 'objects'"));
  EXPECT_THAT(error("count=2,held-out"), HasSubstr("nothing is held out"));
  EXPECT_EQ(error_of([] { open_dataset("scenes:count=2"); }),
            "scenes:count=2: what are the classes? Add 'task=same-different' or 'task=count'");
  EXPECT_EQ(error_of([] { open_text_pairs("scenes:count=2,style=cells"); }),
            "scenes:count=2,style=cells: scenes of cells have no captions");
}

void expect_same_images(const Dataset& drawn, const Dataset& written) {
  ASSERT_EQ(drawn.size(), written.size());
  for (std::int64_t i = 0; i < drawn.size(); ++i) {
    EXPECT_EQ(drawn.name(i), written.name(i));
    EXPECT_EQ(drawn.image(i).pixels, written.image(i).pixels) << i;
  }
}

TEST(SceneSource, GivesWhatTheFilesHave) {
  const test::TemporaryFolder folder;
  for (const std::string fields : {"", ",overlap", ",style=cells"}) {
    SCOPED_TRACE(fields);
    const std::string source = "scenes:seed=2,start=5,count=12,size=48" + fields;
    const std::filesystem::path out = folder / ("out" + fields);
    std::filesystem::create_directories(out);
    write_scenes(out, read_scene_source(source));
    const BoxedImages drawn = open_boxed_images(source, {.split = "train"});
    const BoxedImages written = open_boxed_images(out, {.split = "train"});
    expect_same_images(*drawn.images, *written.images);
    EXPECT_EQ(drawn.classes, written.classes);
    EXPECT_EQ(drawn.category_ids, written.category_ids);
    EXPECT_EQ(drawn.ids, written.ids);
    ASSERT_EQ(drawn.objects.size(), written.objects.size());
    for (std::size_t i = 0; i < drawn.objects.size(); ++i) {
      ASSERT_EQ(drawn.objects[i].size(), written.objects[i].size());
      for (std::size_t j = 0; j < drawn.objects[i].size(); ++j) {
        const BoxedObject& a = drawn.objects[i][j];
        const BoxedObject& b = written.objects[i][j];
        EXPECT_TRUE(a.box.x0 == b.box.x0 && a.box.y0 == b.box.y0 && a.box.x1 == b.box.x1 && a.box.y1 == b.box.y1);
        EXPECT_TRUE(a.label == b.label && a.area == b.area);
      }
    }
    if (fields != ",style=cells") {
      const TextPairs captions = open_text_pairs(source);
      EXPECT_EQ(captions.texts, open_text_pairs(out).texts);
      expect_same_images(*captions.images, *open_text_pairs(out).images);
    }
    expect_same_images(*open_unlabeled(source), *open_unlabeled(out / "images"));
  }
}

std::unique_ptr<Dataset> open_part(const std::filesystem::path& source, const std::string& split) {
  DatasetOptions options;
  options.split = split;
  return open_dataset(source, options);
}

TEST(SceneSource, HasClassesAndParts) {
  const test::TemporaryFolder folder;
  for (const std::string task : {"same-different", "count"}) {
    const std::string source = "scenes:count=40,validation=20,task=" + task;
    const std::filesystem::path out = folder / task;
    std::filesystem::create_directories(out);
    write_scenes(out, read_scene_source(source));
    EXPECT_TRUE(has_parts(source) && has_parts(out) && is_scene_folder(out) && foreign_in_scenes(out).empty());
    for (const std::string split : {"train", "validation"}) {
      const auto drawn = open_part(source, split);
      const auto written = open_part(out, split);
      EXPECT_EQ(drawn->classes(), written->classes());
      ASSERT_EQ(drawn->size(), written->size());
      EXPECT_EQ(drawn->size(), split == "train" ? 40 : 20);
      std::set<std::vector<std::uint8_t>> images;
      for (std::int64_t i = 0; i < written->size(); ++i) {
        images.insert(written->image(i).pixels);
      }
      for (std::int64_t i = 0; i < drawn->size(); ++i) {
        EXPECT_TRUE(images.contains(drawn->image(i).pixels));
      }
      // The class of an image is the folder that it was written to.
      for (std::int64_t i = 0; i < drawn->size(); ++i) {
        const std::string& name = drawn->classes()[static_cast<std::size_t>(drawn->label(i))];
        EXPECT_TRUE(std::filesystem::exists(out / split / name / drawn->name(i)));
      }
    }
    std::ofstream(out / "train" / "notes.txt") << "mine";
    EXPECT_EQ(foreign_in_scenes(out), out / "train" / "notes.txt");
  }
  EXPECT_FALSE(has_boxes("scenes:count=4,task=count"));
  EXPECT_TRUE(has_boxes("scenes:count=4"));
}

}  // namespace
}  // namespace vitrail::data
