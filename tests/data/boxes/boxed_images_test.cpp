#include "vitrail/data/boxes/boxed_images.h"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/images.h"
#include "vitrail/data/boxes/box_batches.h"
#include "vitrail/io/codecs.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::error_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

void write_image(const fs::path& path, std::int64_t width = 40, std::int64_t height = 30) {
  fs::create_directories(path.parent_path());
  io::write_png(path, test::noise_image(width, height));
}

// Two images of 40 x 30 pixels with four boxes; COCO's ids have gaps.
json some_coco() {
  return {{"images",
           {{{"id", 7}, {"file_name", "a.png"}, {"width", 40}, {"height", 30}},
            {{"id", 3}, {"file_name", "b.png"}, {"width", 40}, {"height", 30}}}},
          {"categories", {{{"id", 18}, {"name", "dog"}}, {{"id", 2}, {"name", "bike"}}}},
          {"annotations",
           {{{"id", 1}, {"image_id", 3}, {"category_id", 18}, {"bbox", {1, 2, 10, 20}}, {"area", 150}},
            {{"id", 2}, {"image_id", 3}, {"category_id", 2}, {"bbox", {30, 20, 20, 20}}},
            {{"id", 3}, {"image_id", 3}, {"category_id", 2}, {"bbox", {5, 5, 0, 9}}},
            {{"id", 4}, {"image_id", 7}, {"category_id", 2}, {"bbox", {0, 0, 40, 30}}, {"iscrowd", 1}}}}};
}

class CocoBoxes : public testing::Test {
 protected:
  CocoBoxes() {
    write_image(folder / "images/a.png");
    write_image(folder / "images/b.png");
  }
  BoxedImages opened(const json& file) {
    write(folder / "instances.json", file.dump());
    return open_boxed_images(folder.path());
  }
  std::string error_with(const json& patch) {
    json file = some_coco();
    return error_of([&] { opened(file.patch(patch)); });
  }
  test::TemporaryFolder folder;
};

TEST_F(CocoBoxes, BecomeClassesInTheOrderOfTheirIds) {
  const BoxedImages data = opened(some_coco());
  EXPECT_THAT(data.classes, ElementsAre("bike", "dog"));
  EXPECT_THAT(data.category_ids, ElementsAre(2, 18));
  EXPECT_THAT(data.ids, ElementsAre(7, 3));
  ASSERT_EQ(data.objects[1].size(), 2);
  EXPECT_EQ(data.objects[1][0].label, 1);
  EXPECT_EQ(data.objects[1][0].area, 150);
  EXPECT_EQ(data.objects[1][0].box.y1, 22);
  EXPECT_EQ(data.objects[1][1].box.x1, 40);  // cut off at the border
  EXPECT_EQ(data.objects[1][1].box.area(), 100);
  EXPECT_TRUE(data.objects[0][0].crowd);
  EXPECT_THAT(
      data.notes,
      ElementsAre("the ids of the categories go up to 18: by their order they become 2 classes, which keep their names",
                  "left out 1 box without an area inside of the image: b.png",
                  "cut off 1 box at the borders of the image: b.png"));
  EXPECT_EQ(data.images->image(0).width, 40);
  json from_zero = some_coco();
  from_zero["annotations"][0]["id"] = 0;  // which pycocotools never finds
  EXPECT_THAT(opened(from_zero).notes, Contains(HasSubstr("an annotation has the id 0")));
}

TEST_F(CocoBoxes, TakeTheClassesOfAModel) {
  opened(some_coco());
  const BoxedImages data = open_boxed_images(folder.path(), {.split = "train", .classes = {"cat", "dog", "bike"}});
  EXPECT_EQ(data.objects[1][0].label, 1);
  EXPECT_THAT(data.category_ids, ElementsAre(19, 18, 2)) << "one that the file does not declare, behind its own";
  EXPECT_EQ(error_of([&] { open_boxed_images(folder.path(), {.split = "", .classes = {"dog"}}); }),
            folder.path().string() + ": the class 'bike' is none of those expected: dog");
}

// As torchvision's CocoDetection, which does not turn images either.
TEST_F(CocoBoxes, AreOfThePixelsAsTheyAreStored) {
  const auto image_with = [&](int orientation, std::int64_t width, std::int64_t height) {
    fs::copy_file(test::golden_path(fmt::format("images/decode/orientation{}.jpg", orientation)),
                  folder / "images/a.jpg", fs::copy_options::overwrite_existing);
    json file = some_coco();
    file["images"][0].update({{"file_name", "a.jpg"}, {"width", width}, {"height", height}});
    return opened(file).images->image(0);
  };
  const io::Image upright = io::read_image(test::golden_path("images/decode/orientation6.jpg"));
  ASSERT_NE(upright.width, upright.height);
  const io::Image stored = image_with(6, upright.height, upright.width);
  EXPECT_EQ(stored.width, upright.height);
  EXPECT_EQ(image_with(6, upright.width, upright.height).pixels, upright.pixels) << "its annotation is of this size";
  const io::Image upside_down = io::read_image(test::golden_path("images/decode/orientation3.jpg"));
  const io::Image as_stored = image_with(3, upside_down.width, upside_down.height);
  EXPECT_NE(as_stored.pixels, upside_down.pixels);
  EXPECT_EQ(io::apply_orientation(as_stored, 3).pixels, upside_down.pixels);
}

// pycocotools counts boxes as the file has them.
TEST_F(CocoBoxes, AreJudgedAsTheyAreWritten) {
  const BoxedImages data = opened(some_coco());
  ASSERT_EQ(data.judged(1).size(), 3);
  EXPECT_EQ(data.judged(1)[1].box.x1, 50);
  EXPECT_EQ(data.judged(1)[1].area, 400);
  EXPECT_TRUE(data.judged(1)[2].box.empty());
  EXPECT_TRUE(data.as_written.contains(1) && !data.as_written.contains(0)) << "the boxes of the first lie inside";
  EXPECT_EQ(&data.judged(0), &data.objects[0]);
  const BoxedImages part = part_of(data, {1});
  EXPECT_THAT(part.ids, ElementsAre(3));
  EXPECT_EQ(part.judged(0).size(), 3);
  EXPECT_EQ(part.objects[0].size(), 2);
  EXPECT_EQ(part.images->name(0), data.images->name(1));
  EXPECT_EQ(part.classes, data.classes);
}

TEST_F(CocoBoxes, SayWhatIsWrong) {
  const std::string file = (folder / "instances.json").string();
  EXPECT_EQ(error_with({{{"op", "replace"}, {"path", "/annotations/0/category_id"}, {"value", 5}}}),
            file + ": 'annotations' 0: the category 5 is none of those that 'categories' declares");
  EXPECT_EQ(error_with({{{"op", "replace"}, {"path", "/annotations/1/image_id"}, {"value", 5}}}),
            file + ": 'annotations' 1: there is no image with the id 5");
  EXPECT_EQ(error_with({{{"op", "replace"}, {"path", "/annotations/1/id"}, {"value", 1}}}),
            file + ": 'annotations' 1: the id 1 is there twice");
  EXPECT_EQ(error_with({{{"op", "replace"}, {"path", "/images/1/id"}, {"value", 7}}}),
            file + ": 'images' 1: the id 7 is there twice");
  EXPECT_THAT(error_with({{{"op", "replace"}, {"path", "/images/1/file_name"}, {"value", "c.png"}}}),
              HasSubstr("the image 'c.png' does not exist"));
  EXPECT_THAT(error_with({{{"op", "replace"}, {"path", "/annotations/0/bbox"}, {"value", {1, 2, 3}}}}),
              HasSubstr("'bbox' has 3 numbers, expected 4"));
  EXPECT_THAT(
      error_with(
          {{{"op", "add"}, {"path", "/annotations/0/segmentation"}, {"value", json::array({json::array({1, 2, 3})})}}}),
      HasSubstr("polygon 0 of 'segmentation' has 3 numbers, expected pairs of x and y"));
  EXPECT_THAT(error_with({{{"op", "remove"}, {"path", "/categories"}}}), HasSubstr("there is no list 'categories'"));
  const std::string whole = some_coco().dump();
  write(folder / "instances.json", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(error_of([&] { open_boxed_images(folder.path()); }),
              HasSubstr("instances.json: not valid JSON: line 1, column"));
}

TEST_F(CocoBoxes, OfAnotherSizeThanTheirImageAreBroken) {
  json file = some_coco();
  file["images"][0]["width"] = 41;
  const BoxedImages data = opened(file);
  EXPECT_THAT(error_of([&] { data.images->image(0); }),
              HasSubstr("a.png: the image has 40 x 30 pixels, but its annotation says 41 x 30"));
}

TEST(CocoParts, AreFoundAsCocoAndRoboflowNameThem) {
  const test::TemporaryFolder folder;
  json file = some_coco();
  for (const char* name : {"a.png", "b.png"}) {
    write_image(folder / "coco/train2017" / name);
    write_image(folder / "coco/val2017" / name);
    write_image(folder / "roboflow/valid" / name);
    write_image(folder / "roboflow/train" / name);
  }
  write(folder / "coco/annotations/instances_train2017.json", file.dump());
  file["images"][0]["id"] = 70;
  file["annotations"][3]["image_id"] = 70;
  write(folder / "coco/annotations/instances_val2017.json", file.dump());
  write(folder / "roboflow/train/_annotations.coco.json", some_coco().dump());
  write(folder / "roboflow/valid/_annotations.coco.json", file.dump());
  for (const char* kind : {"coco", "roboflow"}) {
    EXPECT_TRUE(has_boxes(folder / kind));
    EXPECT_EQ(open_boxed_images(folder / kind, {.split = "train"}).ids[0], 7) << kind;
    EXPECT_EQ(open_boxed_images(folder / kind, {.split = "validation"}).ids[0], 70) << kind;
    EXPECT_THAT(error_of([&] { open_boxed_images(folder / kind, {.split = "test"}); }),
                HasSubstr("there is no part 'test', only train"));
  }
}

std::string voc(const std::string& file, const std::string& objects, int width = 40) {
  return fmt::format(
      "<annotation><filename>{}</filename><size><width>{}</width><height>30</height></size>{}</annotation>", file,
      width, objects);
}
std::string voc_object(const std::string& name, const std::string& box, const std::string& more = "") {
  return fmt::format("<object><name>{}</name>{}<bndbox>{}</bndbox></object>\n", name, more, box);
}
constexpr const char* usual_box = "<xmin>1</xmin><ymin>2</ymin><xmax>21</xmax><ymax>12.5</ymax>";

TEST(VocBoxes, AreReadWithTheirParts) {
  const test::TemporaryFolder folder;
  for (const char* name : {"a", "b", "c"}) {
    write_image(folder / (std::string("JPEGImages/") + name + ".png"));
  }
  write(folder / "Annotations/a.xml", voc("a.png", voc_object("RBC", usual_box) + voc_object("WBC", usual_box)));
  write(folder / "Annotations/b.xml", voc("elsewhere.jpg", voc_object("RBC", usual_box, "<difficult>1</difficult>")));
  write(folder / "Annotations/c.xml", voc("c.png", ""));
  write(folder / "ImageSets/Main/trainval.txt", "a\nc\n");
  write(folder / "ImageSets/Main/test.txt", "b  1\n");
  write(folder / "ImageSets/Main/RBC_test.txt", "\nb  1\na -1\n");  // of one class: no part
  const BoxedImages whole = open_boxed_images(folder.path());
  EXPECT_EQ(whole.images->size(), 3);
  EXPECT_THAT(whole.classes, ElementsAre("RBC", "WBC"));
  EXPECT_THAT(whole.category_ids, ElementsAre(1, 2));
  EXPECT_EQ(whole.objects[0][1].label, 1);
  EXPECT_EQ(whole.objects[0][0].box.y1, 12.5);
  EXPECT_TRUE(whole.objects[1][0].difficult);
  EXPECT_EQ(whole.images->name(1), "b.png");  // its annotation names another file, as after a conversion
  EXPECT_EQ(open_boxed_images(folder.path(), {.split = "trainval"}).images->size(), 2);
  EXPECT_EQ(open_boxed_images(folder.path(), {.split = "test"}).images->size(), 1);
  EXPECT_THAT(whole.notes, ElementsAre("1 image has no box: nothing is to be found there",
                                       HasSubstr("whose parts are trainval, test: --split chooses one")));
  EXPECT_EQ(open_boxed_images(folder.path(), {.split = "train"}).images->size(), 2) << "those of trainval";
  EXPECT_THAT(error_of([&] { open_boxed_images(folder.path(), {.split = "minival"}); }),
              HasSubstr("there is no part 'minival', only trainval, test"));
  write(folder / "ImageSets/Main/test.txt", "b\nd\n");
  EXPECT_THAT(error_of([&] { open_boxed_images(folder.path(), {.split = "test"}); }),
              HasSubstr("test.txt: line 2 names "));
}

TEST(VocBoxes, MayLieBesideTheirImages) {
  const test::TemporaryFolder folder;
  write_image(folder / "train/a.png");
  write(folder / "train/a.xml", voc("a.png", voc_object("cat", usual_box)));
  write_image(folder / "test/b.png");
  write(folder / "test/b.xml", voc("b.png", voc_object("cat", usual_box)));
  EXPECT_TRUE(has_boxes(folder.path()));
  EXPECT_EQ(open_boxed_images(folder.path(), {.split = "train"}).images->name(0), "a.png");
  EXPECT_EQ(open_boxed_images(folder.path(), {.split = "validation"}).images->name(0), "b.png");
}

TEST(VocBoxes, SayWhatIsWrong) {
  const test::TemporaryFolder folder;
  write_image(folder / "a.png");
  const auto error_with = [&](const std::string& text) {
    write(folder / "a.xml", text);
    return error_of([&] { open_boxed_images(folder.path()).images->image(0); });
  };
  const std::string file = (folder / "a.xml").string();
  EXPECT_EQ(error_with(voc("a.png", voc_object("cat", usual_box))), "no error");
  EXPECT_THAT(error_with("<annotation>\n<object>"), HasSubstr(file + ": line 2: "));
  EXPECT_EQ(error_with("<html/>"), file + ": there is no <annotation>, as Pascal VOC's files have it");
  EXPECT_EQ(error_with(voc("a.png", "<object><bndbox/></object>")), file + ": <object> has no <name>");
  EXPECT_EQ(error_with(voc("a.png", voc_object("cat", "<xmin>x</xmin>"))),
            file + ": <xmin> is 'x', expected a number of pixels");
  EXPECT_THAT(error_with(voc("a.png", voc_object("cat", usual_box), 50)), HasSubstr("its annotation says 50 x 30"));
  write_image(folder / "z.png");
  EXPECT_EQ(error_with(voc("a.png", voc_object("cat", usual_box))), "no error");
  EXPECT_THAT(open_boxed_images(folder.path()).notes, ElementsAre("passed over 1 image without an annotation: z.png"));
  write(folder / "b.xml", voc("a.png", ""));
  EXPECT_EQ(error_with(voc("a.png", "")), (folder / "b.xml").string() + ": its image 'a.png' is that of 'a.xml' too");
  fs::remove(folder / "b.xml");
  fs::remove(folder / "a.png");
  EXPECT_THAT(error_with(voc("a.png", "")), HasSubstr("the image 'a.png' does not exist in"));
}

TEST(BoxedImagesOf, SomethingElseAreRefused) {
  const test::TemporaryFolder folder;
  write_image(folder / "cat/a.png");
  EXPECT_FALSE(has_boxes(folder.path()));
  EXPECT_THAT(error_of([&] { open_boxed_images(folder.path()); }),
              HasSubstr("there are no images with boxes: neither"));
  EXPECT_THAT(error_of([&] { open_boxed_images(folder / "none"); }), HasSubstr("no such file or folder"));
  EXPECT_THAT(error_of([&] { open_boxed_images(folder / "cat/a.png"); }), HasSubstr("boxes are a .json"));
}

// transformers' get_size_with_aspect_ratio.
TEST(DetectorSize, KeepsTheRatioWithinBothSides) {
  EXPECT_EQ(detector_size(640, 480, 800, 1333), (std::array<std::int64_t, 2>{1066, 800}));
  EXPECT_EQ(detector_size(480, 640, 800, 1333), (std::array<std::int64_t, 2>{800, 1066}));
  EXPECT_EQ(detector_size(2000, 500, 800, 1333), (std::array<std::int64_t, 2>{1333, 333}));
  EXPECT_EQ(detector_size(500, 2000, 800, 1333), (std::array<std::int64_t, 2>{333, 1333}));
  EXPECT_EQ(detector_size(800, 900, 800, 1333), (std::array<std::int64_t, 2>{800, 900}));
  EXPECT_EQ(detector_size(64, 64, 64, 128), (std::array<std::int64_t, 2>{64, 64}));
}

// A white rectangle on black, and its box: what happens to the image happens to the box.
TEST(BoxTransforms, MoveBoxesWithTheirImages) {
  io::Image image(80, 60);
  const Box box{16, 12, 48, 36};
  for (std::int64_t y = 12; y < 36; ++y) {
    std::fill_n(image.at(16, y), 3 * 32, 255);
  }
  const auto white = [](const io::Image& of) {
    Box found{1e9, 1e9, 0, 0};
    for (std::int64_t y = 0; y < of.height; ++y) {
      for (std::int64_t x = 0; x < of.width; ++x) {
        if (of.at(x, y)[0] > 127) {
          found = {std::min(found.x0, static_cast<double>(x)), std::min(found.y0, static_cast<double>(y)),
                   std::max(found.x1, static_cast<double>(x + 1)), std::max(found.y1, static_cast<double>(y + 1))};
        }
      }
    }
    return found;
  };
  BoxTransform how{.shortest_edge = 60, .longest_edge = 200};
  how.hflip = 0.5;
  how.random_resize = true;
  int flipped = 0;
  int dropped = 0;
  for (std::int64_t index = 0; index < 60; ++index) {
    const BoxedImage made = transformed(image, {{.box = box, .area = box.area()}}, how, 5, 0, index);
    if (made.objects.empty()) {
      EXPECT_GT(white(made.image).x0, 1e8);
      ++dropped;
      continue;
    }
    const Box seen = white(made.image);
    const Box& said = made.objects[0].box;
    for (const double difference : {seen.x0 - said.x0, seen.y0 - said.y0, seen.x1 - said.x1, seen.y1 - said.y1}) {
      EXPECT_LE(std::abs(difference), 1.5) << index;
    }
    flipped += said.x0 + said.x1 > static_cast<double>(made.image.width) ? 1 : 0;
    const BoxedImage again = transformed(image, {{.box = box}}, how, 5, 0, index);
    EXPECT_EQ(again.image.pixels, made.image.pixels);
  }
  EXPECT_GT(flipped, 10);
  EXPECT_LT(dropped, 6);
}

TEST(BoxBatches, PadToTheLargestAndSaySo) {
  const test::TemporaryFolder folder;
  write_image(folder / "a.png", 40, 30);
  write_image(folder / "b.png", 30, 40);
  write(folder / "a.xml", voc("a.png", voc_object("cat", usual_box)));
  std::string tall = voc("b.png", voc_object("cat", usual_box), 30);
  tall.replace(tall.find("<height>30"), 10, "<height>40");
  write(folder / "b.xml", tall);
  const BoxedImages data = open_boxed_images(folder.path());
  const BoxTransform how{.shortest_edge = 30, .longest_edge = 100};
  LoaderOptions two_at_once;
  two_at_once.batch_size = 2;
  two_at_once.workers = 0;
  const auto loader = box_loader(data, how, two_at_once);
  BoxBatch batch;
  ASSERT_TRUE(loader->next(batch));
  EXPECT_EQ(batch.x.shape(), (Shape{2, 3, 40, 40}));
  EXPECT_EQ(batch.pixel_mask.shape(), (Shape{2, 40, 40}));
  const bool* mask = batch.pixel_mask.data<bool>();
  EXPECT_TRUE(mask[29 * 40 + 39]);
  EXPECT_FALSE(mask[30 * 40]);
  EXPECT_FALSE(mask[40 * 40 + 30]);
  EXPECT_EQ(batch.x.data<float>()[30 * 40], 0);  // zeros after normalization
  const io::Image image = data.images->image(0);
  EXPECT_FLOAT_EQ(batch.x.data<float>()[40 * 40 + 2], (static_cast<float>(image.at(2, 0)[1]) / 255 - 0.456F) / 0.224F);
  EXPECT_NEAR(batch.objects[0][0].box.x1, 21.0 / 40, 1e-9);  // of its own size, without padding
  EXPECT_NEAR(batch.objects[1][0].box.x1, 21.0 / 30, 1e-9);
  EXPECT_FALSE(loader->next(batch));
}

}  // namespace
}  // namespace vitrail::data
