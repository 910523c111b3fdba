#include "vitrail/text/score/captions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/json.h"

namespace vitrail::text {
namespace {

using ::testing::HasSubstr;

const nlohmann::json& captions_golden() {
  static const nlohmann::json json = io::read_json(test::golden_path("text/captions.json"));
  return json;
}

void expect_all_near(const std::vector<double>& actual, const nlohmann::json& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i].get<double>(), 1e-9) << what << ' ' << i;
  }
}

TEST(CaptionScores, ArePycocoevalcaps) {
  ASSERT_GE(captions_golden()["corpora"].size(), 5U);
  for (const auto& [name, corpus] : captions_golden()["corpora"].items()) {
    const CaptionScores scores = caption_scores(corpus["candidates"].get<std::vector<std::string>>(),
                                                corpus["references"].get<std::vector<std::vector<std::string>>>());
    expect_all_near({scores.bleu.begin(), scores.bleu.end()}, corpus["bleu"], name + " BLEU");
    EXPECT_NEAR(scores.rouge_l, corpus["rouge_l"].get<double>(), 1e-9) << name;
    EXPECT_NEAR(scores.cider, corpus["cider"].get<double>(), 1e-9) << name;
    expect_all_near(scores.rouge_l_of, corpus["rouge_l_of"], name + " ROUGE-L");
    expect_all_near(scores.cider_of, corpus["cider_of"], name + " CIDEr");
  }
  EXPECT_EQ(captions_golden()["corpora"]["one image"]["cider"], 0);
}

TEST(CaptionScores, RefuseWhatCannotBeScored) {
  EXPECT_EQ(test::error_of([] { caption_scores({"a"}, {}); }),
            "1 caption cannot be scored by the references of 0 images");
  EXPECT_EQ(test::error_of([] { caption_scores({}, {}); }), "there are no captions to score");
  EXPECT_EQ(test::error_of([] { caption_scores({"a", "b"}, {{"a"}, {}}); }), "image 1 has no references");
  EXPECT_THAT(test::error_of([] { caption_scores({"\xff"}, {{"a"}}); }), HasSubstr("a caption: line 1 is not UTF-8"));
}

TEST(CaptionTokenized, CutsPlainCaptionsAsPtbTokenizerDoes) {
  ASSERT_GE(captions_golden()["tokenized"].size(), 20U);
  for (const nlohmann::json& pair : captions_golden()["tokenized"]) {
    EXPECT_EQ(caption_tokenized(pair[0].get<std::string>()), pair[1].get<std::string>()) << pair[0];
  }
  EXPECT_EQ(caption_tokenized("A line.\nAnother (line)."), "a line another -lrb- line -rrb-");
}

}  // namespace
}  // namespace vitrail::text
