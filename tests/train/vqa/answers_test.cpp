#include "vitrail/train/vqa/answers.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/data/scenes/write.h"
#include "vitrail/train/vqa/on_target.h"

namespace vitrail::train {
namespace {

using ::testing::ElementsAre;

data::Question asked(std::vector<std::string> answers, std::string type = "") {
  std::string first = answers.front();
  return {1, "what?", std::move(answers), std::move(first), std::move(type), {}};
}

TEST(KnownAnswers, CountsSharesOfWhatItKnows) {
  const KnownAnswers known({"red", "blue", "2"});
  std::vector<float> shares(3, 7);
  known.shares(asked({"blue", "red", "blue", "lilac", "blue"}), shares.data());
  EXPECT_THAT(shares, ElementsAre(0.25F, 0.75F, 0));
  known.shares(asked({"lilac"}), shares.data());
  EXPECT_THAT(shares, ElementsAre(0, 0, 0));
  EXPECT_FALSE(known.knows_any(asked({"lilac", "pink"})));
  data::ImageQuestions questions;
  questions.questions = {{asked({"red"}), asked({"lilac"})}, {asked({"pink"})}};
  EXPECT_EQ(keep_answerable(questions, [&](const data::Question& one) { return known.knows_any(one); }), 2);
  EXPECT_EQ(questions.count(), 1);
}

TEST(FrequentAnswers, ComeFirst) {
  data::ImageQuestions questions;
  questions.questions = {{asked({"no"}), asked({"yes"}), asked({"yes"})}, {asked({"2"}), asked({"yes"}), asked({"2"})}};
  EXPECT_THAT(frequent_answers(questions, 0), ElementsAre("yes", "2", "no"));
  EXPECT_THAT(frequent_answers(questions, 2), ElementsAre("yes", "2"));
}

TEST(AnswerLoss, IsTheCrossEntropyOfWhatPeopleSaid) {
  const KnownAnswers known({"red", "blue"});
  const data::Question both = asked({"red", "red", "red", "blue"});
  const data::Question none = asked({"lilac"});
  const Tensor logits = Tensor::from(std::vector<float>{1, 0, 5, -3}, {2, 2});
  const double red = -std::log(1 / (1 + std::exp(-1.0)));
  const double blue = -std::log(1 / (1 + std::exp(1.0)));
  EXPECT_NEAR(answer_loss(logits, {&both, &none}, known).item(), (0.75 * red + 0.25 * blue) / 2, 1e-6);
}

// Of a grid of 2 x 2 patches on an image of 8 x 4 pixels.
TEST(QuestionAttentionLoss, IsThatOfTheFirstWord) {
  data::Question left = asked({"red"});
  left.about = {{0, 0, 4, 4}};  // both patches of the left half
  data::Question corner = asked({"red"});
  corner.about = {{5, 3, 7, 4}};
  const data::Question nowhere = asked({"red"});
  data::QuestionBatch batch;
  batch.ids = Tensor::zeros({3, 2}, DType::i64);
  batch.rows = Tensor::from(std::vector<std::int64_t>{0, 0, 0}, {3});
  batch.sizes = {{8, 4}};
  // Two heads; of each question the row of the first word, and one that counts for nothing.
  const std::vector<float> rest = {0.25F, 0.25F, 0.25F, 0.25F};
  std::vector<float> map;
  for (const float head : {0.1F, -0.1F}) {
    for (const std::vector<float>& first :
         {std::vector<float>{0.4F + head, 0.1F, 0.4F - head, 0.1F}, {0.1F, 0.2F, 0.3F + head, 0.4F - head}, rest}) {
      map.insert(map.end(), first.begin(), first.end());
      map.insert(map.end(), rest.begin(), rest.end());
    }
  }
  const double expected = (-(std::log(0.4) + std::log(0.4)) / 2 - std::log(0.4)) / 2;
  EXPECT_NEAR(question_attention_loss(Tensor::from(map, {1, 2, 6, 4}), batch, {&left, &corner, &nowhere}, 2).item(),
              expected, 1e-5);
  EXPECT_EQ(question_attention_loss(Tensor::from(map, {1, 2, 6, 4}), batch, {&nowhere, &nowhere, &nowhere}, 2).item(),
            0);
}

TEST(AnswerTally, GoesByType) {
  AnswerTally tally;
  tally.add(asked({"red"}, "colour"), "red");
  tally.add(asked({"red"}, "colour"), "blue");
  tally.add(asked({"a", "b", "c", "d"}, "other"), "a");
  AnswerEvaluation result;
  tally.finish(result);
  EXPECT_EQ(result.count, 3);
  ASSERT_EQ(result.types.size(), 2U);
  EXPECT_EQ(result.types[0].type, "colour");
  EXPECT_DOUBLE_EQ(result.types[0].accuracy, 50);
  EXPECT_NEAR(result.types[1].accuracy, 100.0 / 3, 1e-9);
  EXPECT_NEAR(result.accuracy, 100 * (1 + 1.0 / 3) / 3, 1e-9);
}

// Scenes with a network that has learnt nothing yet: all its maps are counted for the same right answers.
TEST(OnTarget, CountsEachMapOfTheSameAnswers) {
  const test::TemporaryFolder folder;
  data::SceneFolder scenes;
  scenes.count = 6;
  data::write_scenes(folder.path(), scenes);
  const data::ImageQuestions questions = data::open_questions(folder.path());
  std::vector<std::string> texts;
  for (const auto& own : questions.questions) {
    for (const data::Question& question : own) {
      texts.push_back(question.text);
    }
  }
  const text::Tokenizer words = text::word_tokenizer(texts);
  EvaluateOptions how;
  how.batch_size = 4;
  const char* small = R"({"channels": [4, 4, 8], "dim": 8, "num_heads": 2, "vision_depth": 1, "depth": 2})";
  for (const auto& [name, maps] : {std::pair("vqa_small", 5), {"vqa_joint", 4}, {"vqa_one", 1}, {"vqa_question", 0}}) {
    const models::VqaModel model =
        models::create_vqa(name, small, words.vocab_size(), {frequent_answers(questions, 1)}, 0, {.seed = 2});
    const std::vector<OnTarget> counts = attention_on_target(model, words, questions, how);
    ASSERT_EQ(std::ssize(counts), maps) << name;
    for (const OnTarget& map : counts) {
      EXPECT_EQ(map.all.count, counts.front().all.count);
      EXPECT_GT(map.all.count, 0);
      EXPECT_LE(map.all.hits, map.all.count);
      EXPECT_GT(map.all.chance, 0);
      EXPECT_LT(map.all.chance, static_cast<double>(map.all.count));
    }
  }
}

}  // namespace
}  // namespace vitrail::train
