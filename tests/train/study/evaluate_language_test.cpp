#include "vitrail/train/study/evaluate_language.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "vitrail/models/text/text_model.h"
#include "vitrail/ops/math/softmax.h"
#include "vitrail/ops/shape/shape.h"

namespace vitrail::train {
namespace {

using test::error_of;

models::TextModel small_model() {
  return models::create_text_model(
      "gpt2", {.model_kwargs = R"({"vocab_size": 9, "n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 12})"});
}

std::vector<std::int64_t> some_text(std::int64_t length) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < length; ++i) {
    ids.push_back(i * i % 7 + i % 3);
  }
  return ids;
}

// The loss of token `place` with the `seen` tokens before it in view.
double loss_of(const models::TextModel& model, const std::vector<std::int64_t>& ids, std::int64_t place,
               std::int64_t seen) {
  const std::vector<std::int64_t> before(ids.begin() + place - seen, ids.begin() + place);
  nn::Pass pass;
  const Tensor logits = models::language_of(model).forward(Tensor::from(before, {1, seen}), pass);
  const Tensor target = Tensor::from<std::int64_t>({ids[static_cast<std::size_t>(place)]}, {1});
  return ops::cross_entropy(logits.select(1, seen - 1).contiguous(), target).item();
}

TEST(EvaluateLanguage, CountsEachTokenOnceWithWhatIsInView) {
  const models::TextModel model = small_model();
  const std::vector<std::int64_t> ids = some_text(31);
  for (const std::int64_t rows : {1, 2, 64}) {
    const LanguageEvaluation result =
        evaluate_language(models::language_of(model), ids, {.block_size = 8, .batch_size = rows});
    EXPECT_EQ(result.tokens, 30);
    double sum = 0;
    std::vector<double> by_position(8);
    for (std::int64_t place = 1; place < 31; ++place) {
      const double loss = loss_of(model, ids, place, (place - 1) % 8 + 1);
      sum += loss;
      by_position[static_cast<std::size_t>((place - 1) % 8)] += loss;
    }
    EXPECT_NEAR(result.loss, sum / 30, 1e-5);
    ASSERT_EQ(result.loss_by_position.size(), 8U);
    for (std::size_t n = 0; n < 8; ++n) {
      EXPECT_EQ(result.tokens_by_position[n], n < 6 ? 4 : 3);  // the last block is shorter
      EXPECT_NEAR(result.loss_by_position[n], by_position[n] / (n < 6 ? 4 : 3), 1e-5) << n;
    }
  }
}

TEST(EvaluateLanguage, KeepsMoreInViewWithAStride) {
  const models::TextModel model = small_model();
  const std::vector<std::int64_t> ids = some_text(30);
  std::vector<std::int64_t> done;
  const LanguageEvaluation result = evaluate_language(
      models::language_of(model), ids,
      {.block_size = 8, .stride = 3, .batch_size = 2, .advance = [&](std::int64_t n) { done.push_back(n); }});
  EXPECT_EQ(result.tokens, 29);
  EXPECT_EQ(done.back(), 29);
  double sum = 0;
  for (std::int64_t place = 1; place < 30; ++place) {
    // The first 8 are those of the first block; of each block behind it, the last three.
    sum += loss_of(model, ids, place, place <= 8 ? place : 6 + (place - 9) % 3);
  }
  EXPECT_NEAR(result.loss, sum / 29, 1e-5);
  EXPECT_EQ(std::accumulate(result.tokens_by_position.begin(), result.tokens_by_position.end(), std::int64_t{0}), 29);
}

TEST(EvaluateLanguage, SaysWhatCannotBe) {
  const models::TextModel model = small_model();
  const auto error = [&](std::int64_t length, const EvaluateLanguageOptions& options) {
    return error_of([&] { evaluate_language(models::language_of(model), some_text(length), options); });
  };
  EXPECT_EQ(error(1, {.block_size = 8}), "a text of 1 tokens has none to predict: it needs at least two");
  EXPECT_EQ(error(9, {.block_size = 13}), "a block of 13 tokens is more than the 12 positions of the model");
  EXPECT_EQ(error(9, {.block_size = 4, .stride = 5}), "a stride of 5 leaves tokens out between blocks of 4");
}

}  // namespace
}  // namespace vitrail::train
