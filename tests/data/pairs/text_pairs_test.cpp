#include "vitrail/data/pairs/text_pairs.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/drawn_files.h"
#include "tests/data/tar_writer.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/image.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TextPairsTest : public test::DrawnFiles {
 protected:
  static int shade(const TextPairs& pairs, std::int64_t index) { return pairs.images->image(index).pixels[0]; }
};

constexpr const char* two_captions = R"({"info": {}, "images": [{"id": 7, "file_name": "a.png", "width": 2},
  {"id": 3, "file_name": "b.png"}, {"id": 4, "file_name": "c.png"}],
  "annotations": [{"id": 1, "image_id": 3, "caption": "a bird\n"}, {"id": 2, "image_id": 7, "caption": "a circle"},
  {"id": 3, "image_id": 3, "caption": "a red bird"}]})";

TEST_F(TextPairsTest, ReadsCaptionsInCocosLayout) {
  for (const char* name : {"a", "b", "c"}) {
    draw(std::string("images/") + name + ".png", name[0]);
    draw(std::string("coco/val2017/") + name + ".png", name[0]);
  }
  write("captions.json", two_captions);
  write("coco/annotations/captions_val2017.json", two_captions);
  for (const fs::path& source :
       {folder_.path(), folder_ / "captions.json", folder_ / "coco/annotations/captions_val2017.json"}) {
    const TextPairs pairs = open_text_pairs(source);
    ASSERT_EQ(pairs.images->size(), 2) << source;
    EXPECT_EQ(pairs.count(), 3);
    EXPECT_EQ(pairs.images->name(1), "b.png");
    EXPECT_EQ(pairs.images->label(1), unlabeled);
    EXPECT_THAT(pairs.images->notes(), ElementsAre(source.string() + ": 1 image without a text is left out"));
    EXPECT_EQ(shade(pairs, 1), 'b');
    EXPECT_THAT(pairs.texts, ElementsAre(ElementsAre("a circle"), ElementsAre("a bird", "a red bird")));
  }
  const TextPairs second = part_of(open_text_pairs(folder_.path()), {1});
  EXPECT_EQ(second.images->size(), 1);
  EXPECT_EQ(shade(second, 0), 'b');
  EXPECT_THAT(second.texts, ElementsAre(ElementsAre("a bird", "a red bird")));
}

TEST_F(TextPairsTest, ReadsWhatCaptionsAreAbout) {
  draw("a.png", 1);
  draw("b.png", 2);
  const auto captions = [](const std::string& sides, const std::string& boxes) {
    return R"({"images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png")" + sides +
           R"(}], "annotations": [
  {"image_id": 1, "caption": "a circle"},
  {"image_id": 2, "caption": "", "boxes": [[0, 0, 1, 1]]},
  {"image_id": 2, "caption": "two birds", "boxes": )" +
           boxes + "}]}";
  };
  write("captions.json", captions(R"(, "width": 20, "height": 10)", "[[2, 1, 3, 4], [10, 5, 10, 5]]"));
  const TextPairs pairs = open_text_pairs(folder_.path(), "", {.places = true});
  ASSERT_EQ(pairs.places.size(), 2);
  EXPECT_THAT(pairs.places[0], ElementsAre(IsEmpty()));
  ASSERT_EQ(pairs.places[1].size(), 1);
  ASSERT_EQ(pairs.places[1][0].size(), 2);
  EXPECT_THAT((std::vector{pairs.places[1][0][0].x0, pairs.places[1][0][0].y0, pairs.places[1][0][0].x1,
                           pairs.places[1][0][0].y1}),
              ElementsAre(0.1, 0.1, 0.25, 0.5));
  EXPECT_EQ(part_of(pairs, {1}).places.size(), 1);
  EXPECT_TRUE(open_text_pairs(folder_.path()).places.empty());

  write("captions.json", captions("", "[[2, 1, 3, 4]]"));
  EXPECT_THAT(error_of([&] { open_text_pairs(folder_.path(), "", {.places = true}); }),
              HasSubstr("'annotations' 1: it has boxes, but its image in 'images' no width and height"));
  write("captions.json", captions(R"(, "width": 20, "height": 10)", "[[2, 1, 3]]"));
  EXPECT_THAT(error_of([&] { open_text_pairs(folder_.path(), "", {.places = true}); }),
              HasSubstr("'annotations' 2: a box must be four numbers: left, top, width, height"));

  // What nobody asks for may be anything.
  write("captions.json", captions(R"(, "width": null, "height": 3.5)", R"([{"x": 1}])"));
  EXPECT_EQ(open_text_pairs(folder_.path()).count(), 2);
}

TEST_F(TextPairsTest, ReadsTables) {
  draw("a.png", 1);
  draw("more/b.png", 2);
  write("captions.csv", "caption,filepath\n\"a bird, red\",more/b.png\na circle,a.png\nanother,more/b.png\n");
  write("plain.csv", "a.png,a circle\n");
  const TextPairs pairs = open_text_pairs(folder_.path());
  EXPECT_EQ(shade(pairs, 0), 2);
  EXPECT_THAT(pairs.texts, ElementsAre(ElementsAre("a bird, red", "another"), ElementsAre("a circle")));
  EXPECT_THAT(open_text_pairs(folder_ / "plain.csv").texts, ElementsAre(ElementsAre("a circle")));
}

TEST_F(TextPairsTest, ReadsShardsOfWebDataset) {
  draw("1.png", 1);
  draw("2.png", 2);
  write("text", "a bird \n");
  for (const int shard : {10, 9}) {
    test::TarWriter tar;
    tar.add_file("x/000.png", folder_ / (shard == 9 ? "1.png" : "2.png"));
    tar.add_file("x/000.json", folder_ / "text");
    tar.add_file("x/000.txt", folder_ / "text");
    tar.add_file("x/001.png", folder_ / "1.png");  // without a text
    fs::create_directories(folder_ / "shards");
    tar.write(folder_ / ("shards/part" + std::to_string(shard) + ".tar"));
  }
  const TextPairs pairs = open_text_pairs(folder_ / "shards");
  ASSERT_EQ(pairs.images->size(), 2);
  EXPECT_EQ(pairs.images->name(0), "part9.tar/x/000.png");
  EXPECT_EQ(shade(pairs, 0), 1);
  EXPECT_EQ(shade(pairs, 1), 2);
  EXPECT_THAT(pairs.images->notes(),
              ElementsAre((folder_ / "shards").string() + ": 2 images without a text are left out"));
  EXPECT_THAT(pairs.texts, ElementsAre(ElementsAre("a bird"), ElementsAre("a bird")));
  EXPECT_EQ(open_text_pairs(folder_ / "shards/part10.tar").images->name(0), "x/000.png");
}

TEST_F(TextPairsTest, NamesTextsThatAreNotUtf8OrLeavesThemOut) {
  draw("1.png", 1);
  write("latin1", "caf\xe9");
  write("text", "a tea");
  test::TarWriter tar;
  tar.add_file("x.png", folder_ / "1.png");
  tar.add_file("x.txt", folder_ / "latin1");
  tar.add_file("y.png", folder_ / "1.png");
  tar.add_file("y.txt", folder_ / "text");
  tar.write(folder_ / "menu.tar");
  write("captions.csv", "path,caption\n1.png,caf\xe9\n1.png,a tea\n");
  const std::string shard = (folder_ / "menu.tar").string();
  EXPECT_EQ(error_of([&] { open_text_pairs(shard); }),
            shard + ": the text of 'x.png' is not UTF-8: 'caf\xef\xbf\xbd' (--skip-broken leaves such texts out)");
  EXPECT_THAT(error_of([&] { open_text_pairs(folder_ / "captions.csv"); }),
              HasSubstr("the text of '1.png' is not UTF-8"));
  const TextPairs pairs = open_text_pairs(shard, "", {.skip_broken = true});
  EXPECT_THAT(pairs.texts, ElementsAre(ElementsAre("a tea")));
  EXPECT_EQ(pairs.images->name(0), "y.png");
  EXPECT_THAT(pairs.images->notes(), ElementsAre(shard + ": 1 text that is not UTF-8 is left out",
                                                 shard + ": 1 image without a text is left out"));
  EXPECT_THAT(open_text_pairs(folder_ / "captions.csv", "", {.skip_broken = true}).images->notes(),
              ElementsAre((folder_ / "captions.csv").string() + ": 1 text that is not UTF-8 is left out"));
}

TEST_F(TextPairsTest, NamesWhatIsThereTwiceInAShard) {
  draw("1.png", 1);
  write("text", "a bird");
  test::TarWriter tar;
  for (int i = 0; i < 2; ++i) {
    tar.add_file("x.png", folder_ / "1.png");
    tar.add_file("x.txt", folder_ / "text");
  }
  tar.write(folder_ / "twice.tar");
  EXPECT_THAT(open_text_pairs(folder_ / "twice.tar").images->notes(),
              ElementsAre(HasSubstr("2 files left out, as later ones have the same names, such as 'x.png'")));
}

TEST_F(TextPairsTest, SaysWhatIsWrong) {
  const auto error = [&](const std::string& name) { return error_of([&] { open_text_pairs(folder_ / name); }); };
  EXPECT_THAT(error("nowhere"), HasSubstr("nowhere: no such file or folder"));
  fs::create_directories(folder_ / "empty");
  EXPECT_THAT(error("empty"),
              HasSubstr("neither captions.json, annotations/captions_NAME.json nor captions.csv, nor .tar shards"));
  write("captions.json", two_captions);
  EXPECT_THAT(error("captions.json"), HasSubstr("'images' 0: the image 'a.png' does not exist"));
  draw("a.png", 1);
  write("captions.json",
        R"({"images": [{"id": 1, "file_name": "a.png"}], "annotations": [{"image_id": 2, "caption": ""}]})");
  EXPECT_THAT(error("captions.json"), HasSubstr("'annotations' 0: there is no image with the id 2"));
  write("captions.json", R"({"images": [{"id": 1, "file_name": "a.png"}], "annotations": []})");
  EXPECT_THAT(error("captions.json"), HasSubstr("captions.json: there are no images with texts"));
  write("captions.json", R"({"images": 1})");
  EXPECT_THAT(error("captions.json"), HasSubstr("there is no list 'images', as captions in COCO's layout have it"));
  write("captions.csv", "path,label\na.png,x\n");
  EXPECT_THAT(error("captions.csv"), HasSubstr("line 1 names neither an image nor the columns 'path' and 'caption'"));
  write("captions.csv", "path,caption\na.png,x\nb.png,y\n");
  EXPECT_THAT(error("captions.csv"), HasSubstr("line 3 names the image"));
  write("some.txt", "");
  EXPECT_THAT(error("some.txt"), HasSubstr("pairs of images and texts are a .json in COCO's layout"));
}

}  // namespace
}  // namespace vitrail::data
