#include "vitrail/text/strings/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace vitrail::text {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a pattern finds in a text.
std::vector<std::string> found(const Regex& regex, const std::string& text) {
  std::vector<std::string> matches;
  std::uint32_t end = 0;
  for (const Match& match : regex.find(text)) {
    EXPECT_EQ(match.range.begin, end);  // the ranges cover the text
    end = match.range.end;
    if (match.matches) {
      matches.push_back(text.substr(match.range.begin, match.range.end - match.range.begin));
    }
  }
  EXPECT_EQ(end, text.size());
  return matches;
}

TEST(Regex, KnowsUnicode) {
  EXPECT_THAT(found(Regex(R"(\p{L}+)"), "aé1ß 日本"), ElementsAre("aé", "ß", "日本"));
  EXPECT_THAT(found(Regex(R"(\p{^L}|\P{L})"), "a1"), ElementsAre("1"));
  EXPECT_THAT(found(Regex(R"(\p{Han}+)"), "、日本ー"), ElementsAre("日本"));  // not by script extensions
  EXPECT_THAT(found(Regex(R"((?i:'s))"), "'s 'S 'ſ"), ElementsAre("'s", "'S", "'ſ"));
  EXPECT_THAT(found(Regex(R"(\w+)"), "a_1² हिन्दी"), ElementsAre("a_1", "हिन्दी"));
  EXPECT_THAT(found(Regex(R"(\d)"), "1² ١"), ElementsAre("1", "١"));
}

TEST(Regex, HasRubysSyntax) {
  EXPECT_THAT(found(Regex(R"(\s)"), "a\u180Eb\u0085c\vd"), ElementsAre("\u0085", "\v"));
  EXPECT_THAT(found(Regex(R"([^\S\n]+)"), "a \n\tb"), ElementsAre(" ", "\t"));
  EXPECT_THAT(found(Regex("(?m:.)"), "a\nb"), ElementsAre("a", "\n", "b"));
  EXPECT_THAT(found(Regex("."), "a\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(found(Regex("^b$"), "a\nb\nc"), ElementsAre("b"));
  EXPECT_THAT(found(Regex("a{,2}b"), "aaab"), ElementsAre("aab"));
  EXPECT_THAT(found(Regex("a{x"), "a{x"), ElementsAre("a{x"));
  EXPECT_THAT(found(Regex(R"(\u00e9\h)"), "éf"), ElementsAre("éf"));
  EXPECT_THAT(found(Regex("a?+a|b"), "aab"), ElementsAre("aa", "b"));
}

TEST(Regex, FindsEmptyMatchesOnce) {
  EXPECT_THAT(found(Regex("x*"), "axé"), ElementsAre("", "x", ""));
  EXPECT_THAT(found(Regex("x*"), ""), ElementsAre(""));
}

TEST(Regex, OfALiteralIsThat) {
  EXPECT_THAT(found(Regex::literal(".+"), "a.+b..+"), ElementsAre(".+", ".+"));
  EXPECT_THAT(found(Regex::literal("▁"), "a▁b"), ElementsAre("▁"));
}

TEST(Regex, SaysWhatItDoesNotKnow) {
  const auto complaint = [](const std::string& pattern) { return error_of([&] { Regex regex(pattern); }); };
  EXPECT_THAT(complaint(R"(a\K)"), HasSubstr(R"(has '\K' at byte 1, which is not supported)"));
  EXPECT_THAT(complaint(R"(\p{Klingon})"), HasSubstr("neither a general category nor a script"));
  EXPECT_THAT(complaint(R"([^\W])"), HasSubstr("not supported inside of brackets"));
  EXPECT_THAT(complaint("[a"), HasSubstr("which is never closed"));
  EXPECT_THAT(complaint("(?<name>a)"), HasSubstr("a kind of group that is not supported"));
  EXPECT_THAT(complaint("a{2}+"), HasSubstr("repeats a repetition"));
  EXPECT_THAT(complaint("\\"), HasSubstr("escapes nothing"));
  EXPECT_THAT(complaint("*"), HasSubstr("is not valid: quantifier does not follow a repeatable item"));
  EXPECT_THAT(complaint(std::string(100'000, 'a')), HasSubstr("a regular expression of 100000 bytes is too long"));
}

TEST(Regex, EndsASearchThatTakesTooLong) {
  const Regex regex("(a|aa)+[bc]");
  EXPECT_THAT(error_of([&] { regex.find(std::string(10'000, 'a')); }), HasSubstr("fails at byte 0 of a text: "));
}

}  // namespace
}  // namespace vitrail::text
