// What lies in a folder or an archive of classes beside what is taken.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"
#include "vitrail/io/tar.h"

namespace vitrail::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ClassFolders : public OnImages {};

TEST_F(ClassFolders, OfOneNameAreOneClass) {
  for (const std::string kind : {"apple", "cow"}) {
    for (const std::string number : {"01", "02"}) {
      fs::create_directories(path("nested/" + kind));
      fs::copy(path("data/train/red"), path("nested/" + kind + "/" + number));
    }
  }
  const Outcome outcome = train(path("nested"), "nested", small() + " --val-split ''");
  EXPECT_THAT(outcome.out, HasSubstr("folders of one name are one class, wherever they lie: 'apple/01' and 'cow/01' "
                                     "are '01', and so with 1 other name"));
}

TEST_F(ClassFolders, HaveScenesBesideThem) {
  ASSERT_EQ(vitrail("scenes " + path("scenes") + " --count 8").status, 0);
  const Outcome trained = vitrail("train " + path("scenes") + small() + " --val-split '' --epochs 1 --output " +
                                  path("runs") + " --experiment scenes");
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("what is for --task detect, caption, vqa"));
  const Outcome masked = vitrail("pretrain mae " + path("scenes") + small() +
                                 " --decoder-dim 12 --decoder-depth 1 --decoder-heads 2 --epochs 1 --output " +
                                 path("runs") + " --experiment mae");
  EXPECT_EQ(masked.status, 0) << masked.err;
  EXPECT_THAT(masked.out, HasSubstr("8 training and 0 validation images"));
  const Outcome shards = vitrail("shard " + path("scenes") + " --output " + path("shards"));
  EXPECT_THAT(shards.err, HasSubstr("boxes, captions and questions are left out"));
}

TEST_F(ClassFolders, MayBePartsOfCocoAndVoc) {
  for (const char* part : {"train2017", "val2017"}) {
    fs::create_directories(path(std::string("coco/") + part));
    for (int i = 0; i < (part[0] == 't' ? 8 : 4); ++i) {
      fs::copy_file(path("data/train/red/" + std::to_string(i) + ".png"),
                    path(std::string("coco/") + part + "/" + std::to_string(i) + ".png"));
    }
  }
  const std::string mae = small() + " --decoder-dim 12 --decoder-depth 1 --decoder-heads 2 --epochs 1 --output " +
                          path("runs") + " --experiment ";
  const Outcome coco = vitrail("pretrain mae " + path("coco") + " --val-split validation" + mae + "coco");
  EXPECT_EQ(coco.status, 0) << coco.err;
  EXPECT_THAT(coco.out, HasSubstr("8 training and 4 validation images"));
  fs::create_directories(path("voc/JPEGImages"));
  fs::create_directories(path("voc/Annotations"));
  fs::create_directories(path("voc/ImageSets/Main"));
  std::ofstream train(path("voc/ImageSets/Main/train.txt"));
  std::ofstream test(path("voc/ImageSets/Main/test.txt"));
  for (int i = 0; i < 12; ++i) {
    const std::string name = "blood no " + std::to_string(i);
    fs::copy_file(path("data/train/red/" + std::to_string(i) + ".png"), path("voc/JPEGImages/" + name + ".png"));
    std::ofstream(path("voc/Annotations/" + name + ".xml"))
        << "<annotation><filename>" << name << ".png</filename><size><width>16</width><height>16</height></size>"
        << "<object><name>cell</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>9</xmax><ymax>8</ymax></bndbox></object>"
        << "</annotation>";
    (i < 9 ? train : test) << name << "\n";
  }
  train.close();
  test.close();
  const Outcome voc = vitrail("pretrain mae " + path("voc") + mae + "voc");
  EXPECT_EQ(voc.status, 0) << voc.err;
  EXPECT_THAT(voc.out, HasSubstr("9 training and 0 validation images"));
  // Files of results name their images as `detect` does.
  const std::string detector = path("runs/cells");
  ASSERT_EQ(
      vitrail("train " + path("voc") + " --task detect --model detr_scenes --shortest-edge 16 --longest-edge 32 " +
              "--num-queries 2 --epochs 1 -b 4 --val-split test --threads 1 --output " + path("runs") +
              " --experiment cells")
          .status,
      0);
  ASSERT_EQ(
      vitrail("eval " + detector + " " + path("voc") + " --split test --threads 1 --output " + path("found")).status,
      0);
  const nlohmann::json results = nlohmann::json::parse(io::read_text(path("found/detections.json")));
  ASSERT_EQ(results.size(), 6U);
  EXPECT_EQ(results[0]["image_id"], 9);
  EXPECT_EQ(results[0]["file_name"], "blood no 9.png");
}

TEST_F(ClassFolders, AreNoPartsOfAnArchive) {
  const std::string archive = path("parts.tar");
  ASSERT_EQ(std::system(("tar cf " + archive + " -C " + path("data") + " .").c_str()), 0);
  const Outcome info = vitrail("info " + archive);
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_THAT(info.out, AllOf(HasSubstr("Images of classes"), HasSubstr("validation   32 images"),
                              HasSubstr("vitrail train " + archive + "\n"), Not(HasSubstr("Sequences"))));
  const std::string loose = copy_of_data("loose");
  fs::copy(path("data/train/red/0.png"), loose + "/train/0.png");
  ASSERT_EQ(std::system(("tar cf " + path("loose.tar") + " -C " + loose + " .").c_str()), 0);
  EXPECT_THAT(train(path("loose.tar"), "loose").err, HasSubstr("train/0.png lies outside of any class folder"));
}

class BesideParts : public Commands {};

TEST_F(BesideParts, LieImagesOfNone) {
  const std::string data = path("beside");
  fs::copy(path("data"), data, fs::copy_options::recursive);
  fs::copy(path("data/train/red"), data + "/green");
  fs::create_directories(data + "/notes");
  const std::string words = "the images in 'green' lie beside the parts of '" + data + "' and belong to none of them";
  EXPECT_THAT(train(data, "beside").out, HasSubstr(words));
  EXPECT_THAT(vitrail("eval " + best() + " " + data + " --split validation").err, HasSubstr("note: " + words));
  EXPECT_THAT(trained_.out, Not(HasSubstr("beside the parts")));
}

TEST_F(BesideParts, LiesAnArchiveOfTheirName) {
  fs::copy(path("data"), path("twice"), fs::copy_options::recursive);
  io::TarWriter tar(path("twice/train.tar"));
  tar.add("red/1.png", io::read_bytes(path("data/train/red/1.png")));
  tar.commit();
  EXPECT_THAT(vitrail("eval " + best() + " " + path("twice") + " --split train --threads 1").err,
              HasSubstr("takes 'train' and leaves 'train.tar'"));
}

TEST_F(BesideParts, WorksWhatIsSaid) {
  fs::copy(path("data"), path("odd"), fs::copy_options::recursive);
  fs::rename(path("odd/validation/red"), path("odd/validation/violet"));
  EXPECT_THAT(vitrail("info " + path("odd")).out, HasSubstr("vitrail train " + path("odd") + " --val-split ''"));
  refuses("index " + path("data/train/red/0.png") + " --model " + best() + " --output " + path("x.index"),
          "one image is no data set: name the folder, archive or table that it is in");
  write("few.txt", "a b\nc d\n");
  refuses("train --task translate --src " + path("few.txt") + " --tgt " + path("few.txt") + " --output " + path("runs"),
          "cannot learn 8000 tokens (--vocab-size)");
}

class DataOfOtherTasks : public OnScenes {};

TEST_F(DataOfOtherTasks, AreNamed) {
  refuses("train " + path("scenes") + " --output " + path("runs") + small(),
          "; what is there is for --task detect, caption, vqa");
  EXPECT_THAT(vitrail("train " + path("nothing") + " --output " + path("runs") + small()).err,
              Not(HasSubstr("--task")));
}

}  // namespace
}  // namespace vitrail::test
