#include "vitrail/text/score/bleu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/text/score/chrf.h"
#include "vitrail/text/strings/encoding.h"

namespace vitrail::text {
namespace {

using test::error_of;
using test::golden_path;
using ::testing::HasSubstr;

constexpr double tolerance = 1e-9;

const nlohmann::json& scores() {
  static const nlohmann::json json = io::read_json(golden_path("text/bleu/scores.json"));
  return json;
}

Segments read(const std::string& name) { return parse_segments(io::read_text(golden_path("text/bleu/" + name)), name); }

// The translations that sacrebleu scored, and their references.
struct Corpus {
  Segments hypotheses = read("hyp.txt");
  std::vector<Segments> references = {read("ref0.txt"), read("ref1.txt")};

  std::vector<Segments> first(std::size_t count) const {
    return {references.begin(), references.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  // One line of all files.
  Corpus line(std::size_t i) const { return {{hypotheses[i]}, {{references[0][i]}, {references[1][i]}}}; }
};

BleuOptions bleu_options(const nlohmann::json& json) {
  BleuOptions options;
  options.tokenize = json.value("tokenize", options.tokenize);
  options.lowercase = json.value("lowercase", false);
  options.smooth_method = json.value("smooth_method", options.smooth_method);
  options.effective_order = json.value("effective_order", false);
  if (json.contains("smooth_value")) {
    options.smooth_value = json["smooth_value"].get<double>();
  }
  return options;
}

void expect_near(const std::vector<double>& actual, const nlohmann::json& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i].get<double>(), tolerance) << what;
  }
}

void expect_bleu(const Corpus& corpus, const nlohmann::json& expected) {
  const std::string what = expected.dump();
  const BleuOptions options = bleu_options(expected["options"]);
  const auto count = expected["references"].get<std::size_t>();
  const BleuScore score = bleu(corpus.hypotheses, corpus.first(count), options);
  EXPECT_NEAR(score.score, expected["score"].get<double>(), tolerance) << what;
  expect_near(score.counts, expected["counts"], what);
  expect_near(score.totals, expected["totals"], what);
  expect_near(score.precisions, expected["precisions"], what);
  EXPECT_NEAR(score.brevity_penalty, expected["bp"].get<double>(), tolerance) << what;
  EXPECT_EQ(score.hypothesis_length, expected["sys_len"].get<std::int64_t>()) << what;
  EXPECT_EQ(score.reference_length, expected["ref_len"].get<std::int64_t>()) << what;
  EXPECT_EQ(bleu_signature(options, count), expected["signature"].get<std::string>());
  EXPECT_EQ(short_signature(bleu_signature(options, count)), expected["short_signature"].get<std::string>());
  EXPECT_EQ(bleu_details(score), expected["verbose"].get<std::string>());
}

TEST(Bleu, HasSacrebleusScoresOfACorpus) {
  const Corpus corpus;
  for (const nlohmann::json& expected : scores()["bleu"]) {
    expect_bleu(corpus, expected);
  }
}

TEST(Bleu, HasSacrebleusScoresOfSentences) {
  const Corpus corpus;
  for (const nlohmann::json& expected : scores()["sentences"]) {
    expect_bleu(corpus.line(expected["line"].get<std::size_t>()), expected);
  }
}

TEST(Bleu, CutsLinesAsSacrebleuDoes) {
  const Corpus corpus;
  Segments lines = corpus.hypotheses;
  for (const Segments& references : corpus.references) {
    lines.insert(lines.end(), references.begin(), references.end());
  }
  for (const auto& [name, expected] : scores()["tokenized"].items()) {
    ASSERT_EQ(lines.size(), expected.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const Segments wanted = parse_segments(expected[i].get<std::string>() + "\n", "expected");
      EXPECT_EQ(bleu_tokenized(lines[i], name), wanted.at(0)) << name << ": " << expected[i];
    }
  }
}

TEST(Bleu, RefusesWhatCannotBeScored) {
  const Segments one = {U"a"};
  EXPECT_THAT(error_of([&] { bleu(one, {one}, {.tokenize = "14a"}); }),
              HasSubstr("there is no tokenizer '14a', only '13a', 'intl', 'zh', 'char' and 'none'"));
  EXPECT_THAT(error_of([&] { bleu(one, {one}, {.smooth_method = "log"}); }), HasSubstr("there is no smoothing 'log'"));
  EXPECT_THAT(error_of([&] { bleu({}, {{}}); }), HasSubstr("at least one segment"));
  EXPECT_THAT(error_of([&] { bleu(one, {}); }), HasSubstr("at least one segment and one reference"));
  EXPECT_THAT(error_of([&] {
                bleu(one, {one, {U"a", U"b", U"c"}});
              }),
              HasSubstr("'the hypotheses' has 1 line, but 'a reference' has 3 lines: only one of them has line 2"));
}

TEST(Chrf, HasSacrebleusScores) {
  const Corpus corpus;
  for (const nlohmann::json& expected : scores()["chrf"]) {
    const nlohmann::json& json = expected["options"];
    ChrfOptions options;
    options.char_order = json.value("char_order", options.char_order);
    options.word_order = json.value("word_order", options.word_order);
    options.beta = json.value("beta", options.beta);
    options.lowercase = json.value("lowercase", false);
    options.whitespace = json.value("whitespace", false);
    options.eps_smoothing = json.value("eps_smoothing", false);
    const auto count = expected["references"].get<std::size_t>();
    EXPECT_NEAR(chrf(corpus.hypotheses, corpus.first(count), options), expected["score"].get<double>(), tolerance)
        << expected;
    EXPECT_EQ(chrf_name(options), expected["name"].get<std::string>());
    EXPECT_EQ(chrf_signature(options, count), expected["signature"].get<std::string>());
    EXPECT_EQ(short_signature(chrf_signature(options, count)), expected["short_signature"].get<std::string>());
  }
}

TEST(Chrf, RefusesWhatCannotBeScored) {
  const Segments one = {U"a"};
  EXPECT_THAT(error_of([&] { chrf(one, {one}, {.char_order = 0}); }), HasSubstr("not 0, 2 and 0"));
  EXPECT_THAT(error_of([&] { chrf({}, {{}}); }), HasSubstr("at least one segment"));
  EXPECT_THAT(error_of([&] { chrf(one, {{}}); }), HasSubstr("only one of them has line 1"));
}

TEST(Segments, EndAtLineFeedsAlone) {
  EXPECT_EQ(parse_segments("a\nb \r\n\n c\vd\xe2\x80\xa8", "x"), (Segments{U"a", U"b", U"", U" c\vd"}));
  EXPECT_EQ(parse_segments("", "x"), Segments{});
  EXPECT_EQ(parse_segments("a", "x"), Segments{U"a"});
  EXPECT_EQ(parse_segments("\n", "x"), Segments{U""});
}

TEST(Segments, MustBeUtf8) {
  for (const char* wrong : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_THAT(error_of([&] { parse_segments("a\nbc" + std::string(wrong) + "\n", "file"); }),
                HasSubstr("file: line 2 is not UTF-8: byte 3 of it is 0x"));
  }
}

TEST(Encoding, IsWhateverIcuKnows) {
  EXPECT_EQ(to_utf8("f\xfcr", "latin-1", "x"), "für");
  EXPECT_EQ(to_utf8("\x80 1", "windows-1252", "x"), "€ 1");
  EXPECT_EQ(to_utf8(std::string("\xff\xfeh\0i\0", 6), "utf-16", "x"), "hi");
  EXPECT_EQ(to_utf8("\xff", "UTF-8", "x"), "\xff");  // whoever reads it says where it is wrong
  EXPECT_EQ(error_of([] { to_utf8("\x81", "shift_jis", "hyp.txt"); }), "hyp.txt: not a text in shift_jis");
  EXPECT_EQ(error_of([] { to_utf8("x", "latin-77", "x"); }), "no encoding has the name 'latin-77'");
  EXPECT_EQ(error_of([] { to_utf8("x", "", "x"); }), "no encoding has the name ''");
}

}  // namespace
}  // namespace vitrail::text
