#include "vitrail/data/pairs/questions.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/data/pairs/question_batches.h"
#include "vitrail/data/scenes/source.h"
#include "vitrail/data/scenes/write.h"
#include "vitrail/io/file.h"
#include "vitrail/io/image.h"

namespace vitrail::data {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A folder with questions in VQA's layout about two of three images.
class QuestionFiles : public testing::Test {
 protected:
  QuestionFiles() {
    fs::create_directories(folder_ / "images");
    for (const char* name : {"000004.png", "000007.png", "picture_12.png"}) {
      io::write_png(folder_ / "images" / name, io::Image(8, 8));
    }
    write("vqa_questions.json", questions_);
    write("vqa_annotations.json", answers_);
  }
  void write(const std::string& name, const std::string& text) { io::write_atomically(folder_ / name, text); }
  std::string error() const {
    return error_of([&] { open_questions(folder_.path()); });
  }
  static std::string with(std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  }

  test::TemporaryFolder folder_;
  const std::string questions_ = R"({"questions": [
    {"image_id": 12, "question": "How many?", "question_id": 5},
    {"image_id": 4, "question": "What colour?", "question_id": 6},
    {"image_id": 4, "question": "Is it round?", "question_id": 9}]})";
  const std::string answers_ = R"({"annotations": [
    {"question_id": 6, "image_id": 4, "multiple_choice_answer": "red", "question_type": "attribute",
     "answers": [{"answer": "Red "}, {"answer": "red."}, {"answer": "orange"}], "boxes": [[1, 2, 3, 4.5]]},
    {"question_id": 9, "image_id": 4, "multiple_choice_answer": "yes"},
    {"question_id": 5, "image_id": 12, "answers": [{"answer": "2"}, {"answer": "2"}, {"answer": "3"}]}]})";
};

TEST(DrawnQuestions, AreThoseOfTheFolder) {
  const std::string source = "scenes:count=6,validation=4,seed=3,size=48,questions=6";
  const test::TemporaryFolder folder;
  SceneFolder files = read_scene_source(source);
  files.first = files.count;
  files.count = files.validation;
  write_scenes(folder.path(), files);
  const ImageQuestions written = open_questions(folder.path());
  const ImageQuestions drawn = open_questions_of(source, "validation", true);
  ASSERT_EQ(drawn.images->size(), 4);
  ASSERT_EQ(written.images->size(), 4);
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(drawn.images->name(i), written.images->name(i));
    EXPECT_EQ(drawn.images->image(i).pixels, written.images->image(i).pixels);
    const auto& own = drawn.questions[static_cast<std::size_t>(i)];
    const auto& other = written.questions[static_cast<std::size_t>(i)];
    ASSERT_EQ(own.size(), other.size());
    for (std::size_t q = 0; q < own.size(); ++q) {
      EXPECT_EQ(own[q].id, other[q].id);
      EXPECT_EQ(own[q].text, other[q].text);
      EXPECT_EQ(own[q].answer, other[q].answer);
      EXPECT_EQ(vqa_accuracy(own[q].answers, own[q].answer), 1);
      EXPECT_EQ(own[q].type, other[q].type);
      ASSERT_EQ(own[q].about.size(), other[q].about.size());
      for (std::size_t b = 0; b < own[q].about.size(); ++b) {
        EXPECT_EQ(own[q].about[b].x0, other[q].about[b].x0);
        EXPECT_EQ(own[q].about[b].x1, other[q].about[b].x1);
        EXPECT_EQ(own[q].about[b].y0, other[q].about[b].y0);
        EXPECT_EQ(own[q].about[b].y1, other[q].about[b].y1);
      }
    }
  }
  EXPECT_EQ(open_questions_of(source, "train").images->name(0), "000000.png");
  EXPECT_THAT(error_of([&] { open_questions("scenes:count=2,style=cells"); }),
              HasSubstr("there are no questions about scenes of cells"));
}

TEST_F(QuestionFiles, ReadsThoseOfVqa) {
  const ImageQuestions all = open_questions(folder_.path());
  ASSERT_EQ(all.images->size(), 2);  // the image 7 has no question
  EXPECT_EQ(all.images->name(0), "000004.png");
  EXPECT_EQ(all.images->name(1), "picture_12.png");
  EXPECT_EQ(all.count(), 3);
  EXPECT_THAT(all.images->notes(), ElementsAre("1 image without a question"));
  const Question& colour = all.questions[0][0];
  EXPECT_EQ(colour.text, "What colour?");
  EXPECT_THAT(colour.answers, ElementsAre("red", "red", "orange"));
  EXPECT_EQ(colour.type, "attribute");
  ASSERT_EQ(colour.about.size(), 1U);
  EXPECT_EQ(colour.about[0].y1, 6.5);
  EXPECT_THAT(all.questions[0][1].answers, ElementsAre("yes"));
  EXPECT_EQ(all.questions[1][0].answer, "2");  // the most frequent one
  EXPECT_TRUE(has_questions(folder_.path()));
  EXPECT_FALSE(has_questions(folder_ / "images"));
}

TEST_F(QuestionFiles, SaysWhatDoesNotFit) {
  write("vqa_questions.json", with(questions_, "\"image_id\": 12", "\"image_id\": 13"));
  EXPECT_THAT(error(), HasSubstr("the question 5 is about the image 13, but no image in"));
  write("vqa_questions.json", with(questions_, "\"question_id\": 9", "\"question_id\": 6"));
  EXPECT_THAT(error(), HasSubstr("'questions' 2: the question 6 is there twice"));
  write("vqa_questions.json", with(questions_, "\"question_id\": 9", "\"question_id\": 8"));
  EXPECT_THAT(error(), HasSubstr("the question 8 has no answer in 'vqa_annotations.json'"));
  write("vqa_questions.json", R"({"questions": [{"image_id": 4, "question": "What?", "question_id": 6}]})");
  EXPECT_THAT(error(), HasSubstr("which is not in 'vqa_questions.json'"));
  write("vqa_questions.json", questions_);
  write("vqa_annotations.json", with(answers_, "\"question_id\": 9", "\"question_id\": 6"));
  EXPECT_THAT(error(), HasSubstr("'annotations' 1: the question 6 is answered twice"));
  write("vqa_annotations.json", with(answers_, ", \"multiple_choice_answer\": \"yes\"", ""));
  EXPECT_THAT(error(), HasSubstr("the question has no answer"));
  fs::remove(folder_ / "vqa_annotations.json");
  EXPECT_THAT(error(), HasSubstr("'vqa_annotations.json' was expected beside it"));
  write("vqa_annotations.json", answers_);
  fs::rename(folder_ / "images", folder_ / "elsewhere");
  EXPECT_THAT(error(), HasSubstr("a folder 'images' was expected beside it"));
  EXPECT_THAT(error_of([&] { open_questions(folder_ / "elsewhere"); }), HasSubstr("there are no questions"));
}

TEST_F(QuestionFiles, ReadsTables) {
  write("questions.csv", "path,question,answer,type\nimages/000004.png,what?,Red,colour\nimages/000004.png,how?,2,\n");
  const ImageQuestions all = open_questions(folder_ / "questions.csv");
  ASSERT_EQ(all.images->size(), 1);
  EXPECT_EQ(all.questions[0][0].answer, "red");
  EXPECT_EQ(all.questions[0][0].type, "colour");
  EXPECT_EQ(all.questions[0][1].id, 3);
  write("questions.csv", "images/000004.png,what?\n");
  EXPECT_THAT(error_of([&] { open_questions(folder_ / "questions.csv"); }), HasSubstr("line 1 has 2 of the 3 columns"));
  write("questions.csv", "images/1.png,what?,red\n");
  EXPECT_THAT(error_of([&] { open_questions(folder_ / "questions.csv"); }), HasSubstr("which does not exist"));
}

TEST(VqaAccuracy, IsAThirdOfThoseWhoAgree) {
  const std::vector<std::string> ten = {"a", "a", "b", "b", "b", "b", "c", "d", "e", "f"};
  EXPECT_DOUBLE_EQ(vqa_accuracy(ten, "a"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(vqa_accuracy(ten, "b"), 1);
  EXPECT_DOUBLE_EQ(vqa_accuracy(ten, "c"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(vqa_accuracy(ten, "x"), 0);
  EXPECT_DOUBLE_EQ(vqa_accuracy({"red"}, "red"), 1);
  EXPECT_DOUBLE_EQ(vqa_accuracy({"red", "blue"}, "red"), 0.5);
}

TEST_F(QuestionFiles, AreDrawnAnewInEachEpoch) {
  const ImageQuestions all = open_questions(folder_.path());
  const QuestionTokens tokens = {{{2, 5, 3}, {2, 6, 7, 3}}, {{2, 3}}};
  ImageConfig how;
  how.height = 4;
  how.width = 4;
  QuestionLoading options{.images = {}, .per_image = 1};
  options.images.batch_size = 2;
  const auto loader = question_loader(*all.images, tokens, eval_transform(how), options);
  std::set<std::int64_t> seen;
  for (std::int64_t epoch = 0; epoch < 12; ++epoch) {
    QuestionBatch batch;
    loader->start_epoch(epoch);
    ASSERT_TRUE(loader->next(batch));
    EXPECT_EQ(batch.x.shape(), (Shape{2, 3, 4, 4}));
    EXPECT_THAT(batch.rows.span<std::int64_t>(), ElementsAre(0, 1));
    EXPECT_EQ(batch.lengths.data<std::int64_t>()[1], 2);
    EXPECT_EQ(batch.ids.size(1), batch.places[0] == 0 ? 3 : 4);
    EXPECT_EQ(batch.ids.data<std::int64_t>()[batch.ids.size(1) + 2], 0);  // filled up
    seen.insert(batch.places[0]);
  }
  EXPECT_EQ(seen.size(), 2U);
}

}  // namespace
}  // namespace vitrail::data
