#include "vitrail/generate/translate.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/models/text/text_model.h"

namespace vitrail::generate {
namespace {

using Ids = std::vector<std::int64_t>;
using test::error_of;

// A small translator with random weights, whose tokens are bytes below 50; 0 ends a text.
class Translate : public testing::Test {
 protected:
  Translate()
      : folder_(test::golden_path("models/text/marian")),
        model_(models::load_text_model(folder_)),
        config_(read_generation_config(folder_)) {
    config_.max_length = 12;
    config_.num_beams = 2;
  }
  std::vector<LineTranslations> translated(const std::vector<std::string>& lines,
                                           const TranslateOptions& options = {}) const {
    return translate(models::translator_of(model_), text::byte_tokenizer(), config_, lines, options);
  }

  std::filesystem::path folder_;
  models::TextModel model_;
  GenerationConfig config_;
};

TEST_F(Translate, GivesEachLineWhatItWouldGetAlone) {
  const std::vector<std::string> lines = {"!!", "\"#!+-)(", "", "$", "&%!", "  "};
  for (const std::int64_t tokens : {1, 8, 1000}) {
    std::vector<std::int64_t> seen;
    TranslateOptions options;
    options.batch_tokens = tokens;
    options.advance = [&](std::int64_t done) { seen.push_back(done); };
    const std::vector<LineTranslations> all = translated(lines, options);
    ASSERT_EQ(all.size(), lines.size());
    EXPECT_EQ(seen.back(), 6);
    EXPECT_TRUE(std::ranges::is_sorted(seen));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(all[i].best.front().ids, translated({lines[i]}).front().best.front().ids) << i;
    }
    EXPECT_EQ(all[2].best.front().text, "");
    EXPECT_EQ(all[1].tokens.size(), 7U);
  }
}

// A line draws by its own number, whichever lines are translated with it; equal lines draw each by itself.
TEST_F(Translate, DrawsForEachLineByItself) {
  const std::vector<std::string> lines = {"!!", "\"#!+-)(", "!!", "$", "&%!", "!!"};
  config_.num_beams = 1;
  config_.do_sample = true;
  config_.temperature = 3;
  const auto drawn = [&](std::int64_t batch_lines, std::uint64_t seed) {
    TranslateOptions options;
    options.batch_lines = batch_lines;
    options.generate.seed = seed;
    std::vector<Ids> all;
    for (const LineTranslations& line : translated(lines, options)) {
      all.push_back(line.best.front().ids);
    }
    return all;
  };
  const std::vector<Ids> together = drawn(0, 0);
  EXPECT_EQ(drawn(1, 0), together);
  EXPECT_EQ(drawn(2, 0), together);
  EXPECT_NE(drawn(0, 1), together);
  EXPECT_NE(together[0], together[2]);
  const Ids later =
      translate(models::translator_of(model_), text::byte_tokenizer(), config_, std::vector{lines[5]}, {}, 6)
          .front()
          .best.front()
          .ids;
  EXPECT_EQ(later, together[5]);
}

TEST_F(Translate, LimitsBatchesByLinesAndTranslationsByTheirLines) {
  TranslateOptions options;
  options.batch_lines = 1;
  int batches = 0;
  options.advance = [&](std::int64_t) { ++batches; };
  translated({"!", "!!", "!!!"}, options);
  EXPECT_EQ(batches, 3);
  config_.eos_token_id = {};
  config_.forced_eos_token_id = {};
  config_.max_length = 30;
  options.most_growth = 2;
  EXPECT_EQ(translated({"!!"}, options).front().best.front().ids.size(), 14U);
  EXPECT_EQ(translated({"!!"}).front().best.front().ids.size(), 29U);
}

TEST_F(Translate, AlignsEachTokenWithOneOfTheLine) {
  config_.num_return_sequences = 2;
  TranslateOptions options;
  options.alignment = true;
  const LineTranslations line = translated({"!+#"}, options).front();
  ASSERT_EQ(line.best.size(), 2U);
  EXPECT_GE(line.best[0].score, line.best[1].score);
  for (const TranslatedLine& one : line.best) {
    ASSERT_EQ(one.alignment.size(), one.ids.size());
    for (std::size_t i = 0; i < one.alignment.size(); ++i) {
      EXPECT_EQ(one.alignment[i].second, static_cast<std::int64_t>(i));
      EXPECT_LT(one.alignment[i].first, 3);
    }
  }
}

// Recurrent networks of Sutskever's kind and of Bahdanau's translate by the same search.
TEST_F(Translate, TranslatesByRecurrentNetworks) {
  const std::vector<std::string> lines = {"!!", "\"#!+&)%", "$", "&%!"};
  TranslateOptions options;
  for (const char* name : {"seq2seq_lstm", "seq2seq_gru_bahdanau"}) {
    model_ = models::load_text_model(test::golden_path("models/text") / name);
    const std::vector<LineTranslations> all = translated(lines, options);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const TranslatedLine alone = translated({lines[i]}, options).front().best.front();
      EXPECT_EQ(all[i].best.front().ids, alone.ids) << name << " " << i;
      EXPECT_NEAR(all[i].best.front().score, alone.score, 1e-5);
      EXPECT_EQ(alone.alignment.size(), options.alignment ? alone.ids.size() : 0);
    }
    if (name == std::string("seq2seq_lstm")) {
      options.alignment = true;
      EXPECT_EQ(error_of([&] { translated({"!"}, options); }),
                "the model looks at no token of the source, so that there is no alignment");
    }
  }
}

TEST_F(Translate, SaysWhatCannotBe) {
  EXPECT_EQ(error_of([&] {
              translated({"!", std::string(33, '!')});
            }),
            "line 2 has 33 tokens, but the model is made for at most 32: `vitrail translate --truncate` cuts it");
  EXPECT_EQ(error_of([&] { translated({"!", "\xff"}); }).substr(0, 8), "line 2: ");
  config_.decoder_start_token_id.reset();
  EXPECT_EQ(error_of([&] { translated({"!"}); }),
            "neither decoder_start_token_id nor bos_token_id says with which token translations begin");
}

}  // namespace
}  // namespace vitrail::generate
