// Parts of data sets in all of their forms, under the names that people give them.
#include "vitrail/data/sources/parts.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/drawn_files.h"
#include "tests/data/tar_writer.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/data/boxes/boxed_images.h"
#include "vitrail/data/dataset.h"
#include "vitrail/data/pairs/captioned_images.h"
#include "vitrail/data/pairs/questions.h"
#include "vitrail/io/image.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Parts, AreFoundByAnyOfTheirNames) {
  const Parts parts = parts_named({"test", "Val", "train2014", "train2017", "holdout"});
  EXPECT_EQ(names_in(parts), "train2017, train2014, Val, test, holdout");
  const auto chosen = [&](const std::string& split) {
    std::vector<std::string> notes;
    return choose_part(parts, split, "data", notes)->name;
  };
  EXPECT_EQ(chosen("train"), "train2017");
  EXPECT_EQ(chosen("training"), "train2017");
  EXPECT_EQ(chosen("train2014"), "train2014");
  EXPECT_EQ(chosen("validation"), "Val");
  EXPECT_EQ(chosen("dev"), "Val");
  EXPECT_EQ(chosen("test"), "test");
  EXPECT_EQ(chosen("holdout"), "holdout");
  std::vector<std::string> notes;
  const Parts twice = parts_named({"Train", "train"});
  EXPECT_EQ(choose_part(twice, "train", "data", notes)->name, "train") << "to the letter";
  EXPECT_EQ(choose_part(twice, "Train", "data", notes)->name, "Train");
  EXPECT_EQ(error_of([&] { chosen("fold3"); }),
            "data: there is no part 'fold3', only train2017, train2014, Val, test, holdout");
}

TEST(Parts, SayWhichOfThemAreLeft) {
  std::vector<std::string> notes;
  const Parts parts = parts_named({"train2014", "train", "", "test", "valid", "val"});
  EXPECT_EQ(choose_part(parts, "train", "data", notes)->name, "train");
  EXPECT_EQ(choose_part(parts, "validation", "data", notes)->name, "val");
  EXPECT_THAT(notes, ElementsAre("data: takes 'train' and leaves 'train2014' and what is of no part",
                                 "data: takes 'val' and leaves 'valid' and what is of no part"));
  notes.clear();
  const Parts misspelt = parts_named({"train", "trian", "test", "holdout", "aeroplane_train", "train_extra"});
  EXPECT_EQ(choose_part(misspelt, "train", "data", notes)->name, "train");
  EXPECT_EQ(choose_part(misspelt, "test", "data", notes)->name, "test");
  EXPECT_THAT(notes, ElementsAre("data: takes 'train' and leaves 'trian' (is 'train' meant?)"));
  notes.clear();
  EXPECT_EQ(choose_part(parts_named({"fold0", "fold1", "fold2"}), "fold1", "data", notes, {})->name, "fold1");
  EXPECT_TRUE(notes.empty());
  notes.clear();
  EXPECT_EQ(choose_part(parts_named({"train", "test", "valdation", "vla"}), "validation", "data", notes)->name, "test");
  EXPECT_THAT(notes, ElementsAre("data: takes 'test' in place of 'validation', which is not there",
                                 "data: takes 'test' and leaves 'valdation' (is 'validation' meant?) and 'vla' (is "
                                 "'val' meant?)"));
  EXPECT_TRUE(has_part(parts, "validation") && has_part(parts_named({"train", "test"}), "validation"));
  EXPECT_FALSE(has_part(parts_named({"train"}), "validation"));
}

TEST(Parts, AreToldThatStandInForOthers) {
  std::vector<std::string> notes;
  EXPECT_EQ(choose_part(parts_named({"train", "Test"}), "val", "data", notes)->name, "Test");
  EXPECT_EQ(choose_part(parts_named({"trainval", "test"}), "train", "data", notes)->name, "trainval");
  EXPECT_THAT(notes, ElementsAre("data: takes 'Test' in place of 'val', which is not there",
                                 "data: takes 'trainval' in place of 'train', which is not there"));
  EXPECT_EQ(choose_part(parts_named({"training", "testing"}), "validation", "data", notes)->name, "testing");
  EXPECT_EQ(choose_part(parts_named({"training", "testing"}), "test", "data", notes)->name, "testing");
  EXPECT_EQ(names_in(parts_named({"testing", "training"})), "training, testing");
  EXPECT_THAT(error_of([&] {
                choose_part(parts_named({"trainval", "val"}), "train", "data", notes);
              }),
              HasSubstr("there is no part 'train', only trainval, val"))
      << "val is within trainval";
}

TEST(Parts, OfWhichThereAreNoneAreForTraining) {
  std::vector<std::string> notes;
  EXPECT_EQ(choose_part({}, "Training", "data", notes), nullptr);
  EXPECT_EQ(choose_part(parts_named({"val"}), "train", "data", notes, {.whole = true}), nullptr);
  EXPECT_THAT(error_of([&] { choose_part({}, "val", "data", notes, {.looked_for = ": looked"}); }),
              HasSubstr("data: there is no part 'val': looked"));
  EXPECT_EQ(error_of([] {
              check_whole(parts_named({"val", "train"}), "data");
            }),
            "data: split into parts (train, val): choose one of them (--split, in training --train-split)");
}

TEST(Parts, AreNamedInFileNames) {
  EXPECT_EQ(part_in_name("train-00000-of-00064.tar"), "train");
  EXPECT_EQ(part_in_name("val-2017-0001.tar"), "val");
  std::vector<std::string> notes;
  EXPECT_EQ(choose_part(parts_named({"train_small", "val_small"}), "train", "data", notes)->name, "train_small");
  EXPECT_EQ(part_in_name("v2_OpenEnded_mscoco_train2014_questions.json"), "train2014");
  EXPECT_EQ(part_in_name("test-000000.tar"), "test");
  EXPECT_EQ(part_in_name("v2_OpenEnded_mscoco_test-dev2015_questions.json"), "test-dev2015");
  EXPECT_EQ(part_in_name("vqa_questions.json"), "");
  EXPECT_EQ(part_in_name("trains_20170_evaluated.json"), "");
}

// Folders as COCO and VQA v2 are handed out, with two images in each part.
class PartFolders : public test::DrawnFiles {
 protected:
  PartFolders() {
    for (const std::string part : {"train2014", "val2014"}) {
      const int first = part[0] == 't' ? 1 : 3;
      for (int id = first; id < first + 2; ++id) {
        draw(part + "/COCO_" + part + "_" + std::to_string(id) + ".png", id);
      }
      write("annotations/captions_" + part + ".json", coco(part, first, R"("caption": "number )", "\""));
      write("annotations/instances_" + part + ".json",
            coco(part, first, R"("category_id": 1, "bbox": [0, 0, 1, )", "]"));
      write("v2_OpenEnded_mscoco_" + part + "_questions.json",
            R"({"questions": [{"image_id": )" + std::to_string(first) + R"(, "question": "What?", "question_id": )" +
                std::to_string(first) + "}]}");
      write("v2_mscoco_" + part + "_annotations.json", R"({"annotations": [{"image_id": )" + std::to_string(first) +
                                                           R"(, "multiple_choice_answer": "that", "question_id": )" +
                                                           std::to_string(first) + "}]}");
    }
  }
  // A file in COCO's layout about two images, each annotation of which says `begin`, the id of its image, and `end`.
  static std::string coco(const std::string& part, int first, const std::string& begin, const std::string& end) {
    std::string images;
    std::string annotations;
    for (int id = first; id < first + 2; ++id) {
      const std::string number = std::to_string(id);
      images += (id == first ? "" : ",");
      images += R"({"id": )" + number + R"(, "file_name": "COCO_)" + part + "_" + number + R"(.png"})";
      annotations += (id == first ? "" : ",");
      annotations += R"({"id": )" + number + R"(, "image_id": )" + number + ", " + begin + number + end + "}";
    }
    return R"({"categories": [{"id": 1, "name": "thing"}], "images": [)" + images + R"(], "annotations": [)" +
           annotations + "]}";
  }
};

TEST_F(PartFolders, HaveCaptionsOfEach) {
  EXPECT_THAT(open_captioned_images(folder_.path(), {.split = "train"}).texts,
              ElementsAre(ElementsAre("number 1"), ElementsAre("number 2")));
  const CaptionedImages validation = open_captioned_images(folder_.path(), {.split = "validation"});
  EXPECT_THAT(validation.texts, ElementsAre(ElementsAre("number 3"), ElementsAre("number 4")));
  EXPECT_EQ(validation.images->image(1).pixels[0], 4);
  EXPECT_EQ(error_of([&] { open_captioned_images(folder_.path()); }),
            folder_.path().string() +
                ": split into parts (train2014, val2014): choose one of them (--split, in training --train-split), or "
                "name its own folder or file");
  const TextPairs all = open_text_pairs(folder_.path());
  ASSERT_EQ(all.images->size(), 4);
  EXPECT_EQ(all.images->image(2).pixels[0], 3);
  EXPECT_THAT(all.images->notes(),
              ElementsAre(folder_.path().string() + ": all of its parts are taken: train2014, val2014"));
  EXPECT_EQ(error_of([&] { open_text_pairs(folder_.path(), "test"); }),
            folder_.path().string() + ": there is no part 'test', only train2014, val2014");
}

TEST_F(PartFolders, HaveBoxesOfEach) {
  const BoxedImages train = open_boxed_images(folder_.path(), {.split = "train"});
  ASSERT_EQ(train.images->size(), 2);
  EXPECT_EQ(train.objects[1][0].box.y1, 2);
  EXPECT_EQ(open_boxed_images(folder_.path(), {.split = "val"}).images->image(0).pixels[0], 3);
  EXPECT_EQ(names_in(parts_of_boxes(folder_.path())), "train2014, val2014");
}

TEST_F(PartFolders, HaveQuestionsOfEach) {
  EXPECT_EQ(open_questions_of(folder_.path(), "train").questions[0][0].id, 1);
  const ImageQuestions validation = open_questions_of(folder_.path(), "validation");
  EXPECT_EQ(validation.questions[0][0].id, 3);
  EXPECT_EQ(validation.images->image(0).pixels[0], 3);
  EXPECT_THAT(error_of([&] { open_questions(folder_.path()); }), HasSubstr("parts (train2014, val2014): choose one"));
  EXPECT_EQ(names_in(parts_of_questions(folder_.path())), "train2014, val2014");
}

TEST_F(PartFolders, HaveQuestionsWithAnswers) {
  const fs::path other = folder_ / "MultipleChoice_mscoco_train2014_questions.json";
  fs::copy(folder_ / "v2_OpenEnded_mscoco_train2014_questions.json", other);
  EXPECT_THAT(open_questions_of(folder_.path(), "train").images->notes(),
              Contains(HasSubstr("leaves 'MultipleChoice_mscoco_train2014_questions.json'")));
  fs::rename(folder_ / "v2_OpenEnded_mscoco_val2014_questions.json",
             folder_ / "v2_OpenEnded_mscoco_test2015_questions.json");
  EXPECT_THAT(error_of([&] { open_questions_of(folder_.path(), "validation"); }),
              HasSubstr("there is no part 'validation', only train2014"));
  EXPECT_THAT(error_of([&] { open_questions_of(folder_.path(), "test"); }), HasSubstr("the answers are not there"));
  for (const char* part : {"train", "Valid"}) {
    write(std::string("tables/") + part + ".csv",
          std::string("path,question,answer\n../train2014/COCO_train2014_1.png,What?,") + part + "\n");
  }
  EXPECT_EQ(open_questions_of(folder_ / "tables", "train").questions[0][0].answer, "train");
  EXPECT_EQ(open_questions_of(folder_ / "tables", "validation").questions[0][0].answer, "valid");
}

TEST_F(PartFolders, MayHaveTheirShards) {
  const auto shard = [&](const std::string& name) {
    fs::create_directories((folder_ / name).parent_path());
    test::TarWriter tar;
    tar.add("1.png", io::encode_png(io::Image(2, 2)));
    tar.add("1.cls", std::vector<std::uint8_t>{'0'});
    tar.add("1.txt", std::vector<std::uint8_t>{'a', ' ', 'x'});
    tar.write(folder_ / name);
  };
  shard("shards/train/00000.tar");
  shard("shards/train/00001.tar");
  shard("shards/val/00000.tar");
  EXPECT_EQ(open_dataset(folder_ / "shards", {.split = "train"})->size(), 2);
  EXPECT_EQ(open_dataset(folder_ / "shards", {.split = "validation"})->size(), 1);
  shard("hub/train-00000-of-00002.tar");
  shard("hub/train-00001-of-00002.tar");
  shard("hub/val-00000-of-00001.tar");
  EXPECT_EQ(open_dataset(folder_ / "hub", {.split = "train"})->size(), 2);
  EXPECT_EQ(open_captioned_images(folder_ / "hub", {.split = "train"}).images->size(), 2);
  EXPECT_EQ(open_captioned_images(folder_ / "hub", {.split = "val"}).images->size(), 1);
  shard("mixed/train-000000.tar");
  shard("mixed/val-000000.tar");
  shard("mixed/other-000000.tar");
  std::ofstream(folder_ / "mixed/.val-000001.tar.tmp") << "begun";
  const std::string mixed = (folder_ / "mixed").string();
  const CaptionedImages train = open_captioned_images(mixed, {.split = "train"});
  EXPECT_EQ(train.images->size(), 1);
  EXPECT_THAT(train.images->notes(), ElementsAre(mixed + ": takes 'train-000000.tar' and leaves 'other-000000.tar'"));
  write("mixed/classes.txt", "thing\n");
  EXPECT_EQ(open_unlabeled(mixed)->size(), 3);
  EXPECT_THAT(open_dataset(mixed, {.split = "val"})->notes(),
              ElementsAre(HasSubstr(".val-000001.tar.tmp' is no whole shard"),
                          mixed + ": takes 'val-000000.tar' and leaves 'other-000000.tar'"));
}

// What there is to evaluate on is never trained on for want of something else.
TEST_F(PartFolders, AreNotTakenForTrainingIfTheySayAnother) {
  fs::remove(folder_ / "v2_OpenEnded_mscoco_train2014_questions.json");
  EXPECT_THAT(error_of([&] { open_questions_of(folder_.path(), "train"); }),
              HasSubstr("there is no part 'train', only val2014"));
  draw("voc/JPEGImages/a.png", 1);
  write("voc/Annotations/a.xml", "<annotation><filename>a.png</filename></annotation>");
  write("voc/ImageSets/Main/default.txt", "a\n");
  EXPECT_EQ(open_boxed_images(folder_ / "voc", {.split = "train"}).images->size(), 1) << "a list that is no part";
  write("voc/ImageSets/Main/val.txt", "a\n");
  EXPECT_THAT(error_of([&] { open_boxed_images(folder_ / "voc", {.split = "train"}); }),
              HasSubstr("there is no part 'train', only val, default"));
}

TEST_F(PartFolders, MayDiffer) {
  write("some/train/captions.csv", "path,caption\n../../train2014/COCO_train2014_1.png,one\n");
  draw("some/val/cat/1.png", 1);
  draw("some/val/dog/1.png", 1);
  EXPECT_THAT(open_captioned_images(folder_ / "some", {.split = "val"}).texts,
              ElementsAre(ElementsAre("cat"), ElementsAre("dog")));
  write("asked/questions.csv", "path,question,answer\n../train2014/COCO_train2014_1.png,What?,own\n");
  write("asked/val/val.csv", "path,question,answer\n../../val2014/COCO_val2014_3.png,What?,val\n");
  EXPECT_EQ(open_questions_of(folder_ / "asked", "train").questions[0][0].answer, "own");
  EXPECT_EQ(open_questions_of(folder_ / "asked", "val").questions[0][0].answer, "val");
  draw("held/train/cat/1.png", 1);
  draw("held/holdout/cat/2.png", 2);
  EXPECT_THAT(open_dataset(folder_ / "held", {.split = "holdout"})->notes(), IsEmpty());
}

TEST_F(PartFolders, TellOfWhatBelongsToNoPart) {
  for (const char* name : {"photos/train/cat/1.png", "photos/extra/dog/2.png", "photos/3.png"}) {
    draw(name, 1);
  }
  const std::string photos = (folder_ / "photos").string();
  EXPECT_THAT(open_dataset(photos, {.split = "train"})->notes(),
              ElementsAre("the images in 'extra' lie beside the parts of '" + photos + "' and belong to none of them",
                          "1 image lies beside the parts of '" + photos + "' and belongs to none of them"));
  draw("cars/train/1.png", 1);
  EXPECT_THAT(error_of([&] { open_dataset(folder_ / "cars", {.split = "train"}); }),
              HasSubstr("lies outside of any class folder; it is taken for the part 'train' of"));
}

TEST_F(PartFolders, HaveImagesOfEachAndNoteOtherYears) {
  draw("train2017/5.png", 5);
  const auto images = open_dataset(folder_.path(), {.split = "train", .labeled = false});
  ASSERT_EQ(images->size(), 1);
  EXPECT_EQ(images->image(0).pixels[0], 5);
  EXPECT_THAT(images->notes(), ElementsAre(folder_.path().string() + ": takes 'train2017' and leaves 'train2014'"));
  EXPECT_EQ(open_dataset(folder_.path(), {.split = "train2014", .labeled = false})->size(), 2);
}

TEST_F(PartFolders, MayHaveCapitalLetters) {
  for (const char* part : {"Train", "Test"}) {
    draw(std::string("photos/") + part + "/cat/1.png", 1);
    draw(std::string("photos/") + part + "/dog/2.png", 2);
    write(std::string("texts/") + part + "/captions.csv",
          "path,caption\n../../photos/Train/cat/1.png," + std::string(part));
  }
  EXPECT_EQ(open_dataset(folder_ / "photos", {.split = "train"})->size(), 2);
  EXPECT_EQ(open_dataset(folder_ / "photos", {.split = "validation"})->size(), 2);
  EXPECT_THAT(error_of([&] { open_dataset(folder_ / "photos"); }), HasSubstr("parts (Train, Test): choose one"));
  EXPECT_THAT(open_captioned_images(folder_ / "texts", {.split = "validation"}).texts,
              ElementsAre(ElementsAre("Test")));
}

TEST_F(PartFolders, NoteWhatIsThereTwice) {
  for (const char* part : {"train", "val", "valid"}) {
    const std::string place = std::string("boxes/") + part;
    draw(place + "/COCO_x_1.png", 1);
    draw(place + "/COCO_x_2.png", 2);
    write(place + "/_annotations.coco.json", coco("x", 1, R"("category_id": 1, "bbox": [0, 0, 1, )", "]"));
    write(std::string("asked/") + part + "/questions.csv",
          "path,question,answer\n../../boxes/train/COCO_x_1.png,What?,that\n");
  }
  EXPECT_THAT(open_boxed_images(folder_ / "boxes", {.split = "validation"}).notes,
              ElementsAre((folder_ / "boxes").string() + ": takes 'val' and leaves 'valid'"));
  EXPECT_THAT(open_boxed_images(folder_ / "boxes", {.split = "train"}).notes, IsEmpty());
  EXPECT_THAT(open_questions_of(folder_ / "asked", "validation").images->notes(),
              ElementsAre((folder_ / "asked").string() + ": takes 'val' and leaves 'valid'"));
}

}  // namespace
}  // namespace vitrail::data
