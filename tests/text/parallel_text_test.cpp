#include "vitrail/text/parallel_text.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace vitrail::text {
namespace {

using test::error_of;

// The pairs of a table of this name and content and how many were left out, or what is wrong with it.
std::string pairs(const std::string& name, const std::string& content, std::int64_t* skipped = nullptr) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / name) << content;
  std::string all;
  const std::string error = error_of([&] {
    const ParallelText read = read_parallel_text((folder / name).string(), "", skipped);
    for (std::size_t i = 0; i < read.source.size(); ++i) {
      all += "[" + read.source[i] + "|" + read.target[i] + "]";
    }
    all += read.left_out > 0 ? " without " + std::to_string(read.left_out) : "";
  });
  return error == "no error" ? all : error.substr(error.find(name));
}

TEST(TablesOfPairs, AreReadByTheirFormats) {
  EXPECT_EQ(pairs("a.tsv", "Hallo \"du\"!\tHello \"you\"!\tby somebody\r\n\nja\tyes\n \tno\n"),
            "[Hallo \"du\"!|Hello \"you\"!][ja|yes] without 1");
  EXPECT_EQ(pairs("a.TSV", "id\tTarget\tSource\n1\tyes\tja\n"), "[ja|yes]");
  EXPECT_EQ(pairs("a.csv", "de,en\n\"ja, doch\",yes\n"), "[ja, doch|yes]");
  EXPECT_EQ(pairs("a.tsv", "1 + 1\t2\n2 + 2\t4\n"), "[1 + 1|2][2 + 2|4]");
  EXPECT_EQ(pairs("a.csv", "id,src,tgt\n1,ja,yes\n"), "[ja|yes]");
  EXPECT_EQ(pairs("a.jsonl", R"({"translation": {"en": "yes", "de": "ja"}}
{"source": "nein", "target": "no"}

{"tgt": "dog", "src": "Hund", "id": 3}
{"src": "", "tgt": "empty"})"),
            "[yes|ja][nein|no][Hund|dog] without 1");
  // The first line says which language is the source.
  EXPECT_EQ(pairs("a.jsonl", R"({"translation": {"de": "ja", "en": "yes"}}
{"translation": {"en": "no", "de": "nein"}})"),
            "[ja|yes][nein|no]");
  std::int64_t skipped = 0;
  EXPECT_EQ(pairs("a.tsv", "sch\xf6n\tnice\nja\tyes\n", &skipped), "[ja|yes]");
  EXPECT_EQ(skipped, 1);
}

TEST(TablesOfPairs, MayBeOfParts) {
  const test::TemporaryFolder folder;
  const auto parts = [&](const std::string& name, const std::string& content) {
    std::ofstream(folder / name) << content;
    return read_parallel_text((folder / name).string(), "").split;
  };
  const std::vector<std::string> expected = {"train", "validation"};
  EXPECT_EQ(parts("a.csv", "src,tgt,is_valid\nja,yes,False\nnein,no,True\n"), expected);
  EXPECT_EQ(parts("a.jsonl", R"({"src": "ja", "tgt": "yes", "is_valid": false}
{"translation": {"de": "nein", "en": "no"}, "is_valid": true})"),
            expected);
  EXPECT_EQ(parts("b.jsonl", R"({"src": "ja", "tgt": "yes", "is_valid": "checked"})"), std::vector<std::string>());
}

TEST(TablesOfPairs, SayWhatIsWrong) {
  EXPECT_EQ(
      pairs("a.tsv", "17\tja\tyes\n18\tnein\tno\n"),
      "a.tsv: the first column has numbers alone, where texts and then their translations were expected: name the "
      "columns 'src' and 'tgt' in a first line");
  EXPECT_EQ(pairs("a.jsonl", R"({"src": "ja", "tgt": "yes", "split": "train"}
{"src": "nein", "tgt": "no"})"),
            "a.jsonl: line 2 has no 'split', but the lines before it have one");
  EXPECT_EQ(pairs("a.jsonl", R"({"src": "ja", "tgt": "yes", "split": [1]})"),
            "a.jsonl: line 1: its 'split' is no text");
  EXPECT_EQ(pairs("a.tsv", "ja\tyes\nnein\n"),
            "a.tsv: line 2 has 1 field, but a text and its translation were expected");
  EXPECT_EQ(pairs("a.csv", "id,de,en\n1,ja,yes\n"),
            "a.csv: the first line must name the columns 'src' and 'tgt', but has 'id', 'de' and 'en'");
  EXPECT_EQ(pairs("a.csv", "de,en\n"), "a.csv' has no pair of texts that are not empty");
  EXPECT_EQ(pairs("a.tsv", "sch\xf6n\tnice\n"), "a.tsv: line 1 is not UTF-8: byte 4 of it is 0xf6");
  EXPECT_EQ(pairs("a.jsonl", "[1]"), "a.jsonl: line 1 is no object, as one a line was expected");
  for (const char* line : {R"({"src": "ja"})", R"({"src": "ja", "tgt": 3})", R"({"translation": {"de": "ja"}})",
                           R"({"de": "ja", "en": "yes"})", R"({"translation": {"de": "a", "en": "b", "fr": "c"}})"}) {
    EXPECT_EQ(pairs("a.jsonl", line),
              "a.jsonl: line 1 has no pair: the fields 'src' and 'tgt', or a 'translation' into another language, were "
              "expected");
  }
  EXPECT_EQ(pairs("a.jsonl", R"({"translation": {"de": "ja", "en": "yes"}}
{"translation": {"fr": "oui", "en": "yes"}})"),
            "a.jsonl: line 2 has no pair: the fields 'src' and 'tgt', or a 'translation' into another language, were "
            "expected, here 'de' and 'en'");
  EXPECT_NE(pairs("a.jsonl", "{").find("a.jsonl: line 1"), std::string::npos);
}

TEST(TablesOfPairs, AreToldByTheirNames) {
  EXPECT_TRUE(are_pairs_named("a.de", "a.en"));
  EXPECT_TRUE(are_pairs_named("a.tsv", ""));
  EXPECT_FALSE(are_pairs_named("a.de", ""));
  EXPECT_FALSE(are_pairs_named("", "a.en"));
  EXPECT_EQ(shown_pairs("a.de", "a.en"), "'a.de' and 'a.en'");
  EXPECT_EQ(shown_pairs("a.tsv", ""), "'a.tsv'");
}

}  // namespace
}  // namespace vitrail::text
