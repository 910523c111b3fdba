#include "vitrail/train/study/text_predictions.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/json.h"
#include "vitrail/ops/math/reduce.h"
#include "vitrail/ops/math/softmax.h"

namespace vitrail::train {
namespace {

using nlohmann::json;
using test::error_of;
using test::expect_close;

// A small model with its tokenizer, and what transformers' pipelines give (tools/golden/text_predictions.py).
struct Predicting {
  explicit Predicting(const std::string& name)
      : folder(test::golden_path("models/predictions") / name),
        model(models::load_text_model(folder)),
        tokenizer(text::load_tokenizer(folder)),
        expected(io::read_json(folder / "expected.json")),
        texts(expected["texts"].get<std::vector<std::string>>()) {}

  std::filesystem::path folder;
  models::TextModel model;
  text::Tokenizer tokenizer;
  json expected;
  std::vector<std::string> texts;
};

// Texts that stand alone, without labels.
std::vector<text::LabelledText> alone(const std::vector<std::string>& texts) {
  std::vector<text::LabelledText> result;
  for (const std::string& text : texts) {
    result.push_back({text, "", ""});
  }
  return result;
}

void expect_masks(const std::vector<FilledMask>& masks, const json& expected) {
  ASSERT_EQ(masks.size(), expected.size());
  for (std::size_t i = 0; i < masks.size(); ++i) {
    EXPECT_NEAR(masks[i].score, expected[i]["score"].get<double>(), 1e-6);
    EXPECT_EQ(masks[i].token, expected[i]["token"]);
    EXPECT_EQ(masks[i].token_str, expected[i]["token_str"].get<std::string>());
    EXPECT_EQ(masks[i].sequence, expected[i]["sequence"].get<std::string>());
  }
}

TEST(TextPredictions, FillMasksAsTransformers) {
  const Predicting p("fill_mask");
  for (std::size_t i = 0; i < p.texts.size(); ++i) {
    const auto masks = fill_masks(p.model, p.tokenizer, p.texts[i], 5);
    const json expected = p.expected["results"][i];
    if (masks.size() == 1) {
      expect_masks(masks[0], expected);
      continue;
    }
    ASSERT_EQ(masks.size(), expected.size());
    for (std::size_t m = 0; m < masks.size(); ++m) {
      expect_masks(masks[m], expected[m]);
    }
  }
  const auto targets = p.expected["targets"].get<std::vector<std::string>>();
  expect_masks(fill_masks(p.model, p.tokenizer, p.texts[0], 5, targets)[0], p.expected["with_targets"]);
  // transformers' pipeline decodes a token alone with all that it is, special ones too.
  const std::vector<std::string> special = {"[UNK]"};
  EXPECT_EQ(fill_masks(p.model, p.tokenizer, p.texts[0], 1, special)[0][0].token_str, "[UNK]");
  EXPECT_EQ(error_of([&] { fill_masks(p.model, p.tokenizer, "a man", 5); }), "there is no [MASK] in 'a man'");
  std::string long_text = p.texts[0];
  for (int i = 0; i < 600; ++i) {
    long_text += " man";
  }
  EXPECT_THAT(error_of([&] { fill_masks(p.model, p.tokenizer, long_text, 5); }),
              testing::HasSubstr("--truncate cuts it"));
  EXPECT_EQ(fill_masks(p.model, p.tokenizer, long_text, 5, {}, true).size(),
            fill_masks(p.model, p.tokenizer, p.texts[0], 5).size());
  EXPECT_THAT(
      error_of([&] { fill_masks(p.model, p.tokenizer, long_text.substr(long_text.size() - 2400), 5, {}, true); }),
      testing::HasSubstr("tokens of '"));
  EXPECT_EQ(error_of([&] { mask_token(text::byte_tokenizer()); }),
            "the tokenizer has no token for what is masked: neither [MASK] nor <mask>");
}

TEST(TextPredictions, ClassifyAsTransformers) {
  const Predicting p("classes");
  const std::vector<std::string> labels = models::labels_of(p.model);
  const auto expect = [&](const models::TextModel& model, const char* key) {
    const Tensor all = classify_texts(model, p.tokenizer, alone(p.texts), false, {.batch_size = 2});
    for (std::size_t i = 0; i < p.texts.size(); ++i) {
      const std::vector<float> row = all.select(0, static_cast<std::int64_t>(i)).values();
      for (const json& of : p.expected[key][i]) {
        const auto c =
            static_cast<std::size_t>(std::ranges::find(labels, of["label"].get<std::string>()) - labels.begin());
        EXPECT_NEAR(row.at(c), of["score"].get<double>(), 1e-6);
      }
    }
  };
  expect(p.model, "results");
  const models::TextModel each =
      models::load_text_model(p.folder, {.model_kwargs = R"({"problem_type": "multi_label_classification"})"});
  expect(each, "alone");
  // The pipeline leaves the logits of a regression as they are.
  const models::TextModel numbers =
      models::load_text_model(p.folder, {.model_kwargs = R"({"problem_type": "regression"})"});
  const Tensor values = classify_texts(numbers, p.tokenizer, alone(p.texts), false);
  expect_close(ops::softmax(values, -1), classify_texts(p.model, p.tokenizer, alone(p.texts), false), 1e-6);
  EXPECT_GT(std::abs(ops::sum(values.select(0, 0)).item() - 1), 1e-3);
}

TEST(TextPredictions, LabelTokensAsTransformers) {
  const Predicting p("tokens");
  const auto all = label_tokens(p.model, p.tokenizer, p.texts, false, {.batch_size = 2});
  for (std::size_t i = 0; i < p.texts.size(); ++i) {
    const std::vector<TokenLabel>& found = all[i];
    const json expected = p.expected["results"][i];
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t t = 0; t < found.size(); ++t) {
      EXPECT_EQ(found[t].entity, expected[t]["entity"].get<std::string>());
      EXPECT_NEAR(found[t].score, expected[t]["score"].get<double>(), 1e-6);
      EXPECT_EQ(found[t].index, expected[t]["index"]);
      EXPECT_EQ(found[t].word, expected[t]["word"].get<std::string>());
      EXPECT_EQ(found[t].start, expected[t]["start"]);
      EXPECT_EQ(found[t].end, expected[t]["end"]);
    }
  }
}

TEST(TextPredictions, SayWhatIsTooLongOrOfAnotherKind) {
  const Predicting classes("classes");
  const Predicting tokens("tokens");
  const std::vector<std::string> longer = {"a", "a a a a a a a a a a a a a a a a a a a"};
  EXPECT_EQ(error_of([&] { classify_texts(classes.model, classes.tokenizer, alone(longer), false); }),
            "text 2 has 21 tokens, but the model is made for at most 20: --truncate cuts it");
  EXPECT_EQ(classify_texts(classes.model, classes.tokenizer, alone(longer), true).shape(), (Shape{2, 3}));
  EXPECT_EQ(error_of([&] { classify_texts(tokens.model, tokens.tokenizer, alone(longer), true); }),
            "BertForTokenClassification labels tokens, not texts");
  EXPECT_EQ(error_of([&] { label_tokens(classes.model, classes.tokenizer, longer, true); }),
            "BertForSequenceClassification labels texts, not tokens");
}

}  // namespace
}  // namespace vitrail::train
