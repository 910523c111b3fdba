#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/text/unknown.h"

namespace vitrail::text {
namespace {

using ::testing::ElementsAre;

TEST(WordTokenizer, HasTheWordsOfItsTexts) {
  const std::vector<std::string> texts = {"Is the bird red?", "is the Éclair red, or blue?"};
  const Tokenizer words = word_tokenizer(texts);
  EXPECT_EQ(words.vocab_size(), 4 + 9);  // is the bird red ? éclair , or blue
  const Encoding encoding = words.encode("Is the éclair blue");
  EXPECT_THAT(encoding.tokens, ElementsAre("[CLS]", "is", "the", "éclair", "blue", "[SEP]"));
  EXPECT_EQ(encoding.ids.front(), 2);
  EXPECT_EQ(encoding.ids.back(), 3);
  EXPECT_LT(*words.id_of("is"), *words.id_of("bird"));  // the more frequent first
  EXPECT_THAT(unknown_words(words, "is the Giraffe red, or übergrün?"), ElementsAre("Giraffe", "übergrün"));
  EXPECT_TRUE(unknown_words(words, "").empty());
}

TEST(WordTokenizer, KeepsTheMostFrequentAndIsReadAgain) {
  const std::vector<std::string> texts = {"a a a b b c"};
  const Tokenizer words = word_tokenizer(texts, 2);
  EXPECT_EQ(words.vocab_size(), 6);
  const test::TemporaryFolder folder;
  words.save(folder.path());
  const Tokenizer again = load_tokenizer(folder.path());
  EXPECT_EQ(again.encode("b c a").ids, words.encode("b c a").ids);
  EXPECT_THAT(words.encode("b c a").ids, ElementsAre(2, 5, 1, 4, 3));
  EXPECT_THAT(unknown_words(again, "b c a"), ElementsAre("c"));
}

TEST(WordTokenizer, GrowsByTheWordsThatItDoesNotKnow) {
  const Tokenizer words = word_tokenizer(std::vector<std::string>{"is it red?", "is it"});
  const Tokenizer grown = word_tokenizer(std::vector<std::string>{"Is the fox Red, the fox?"}, 0, &words);
  EXPECT_EQ(grown.vocab_size(), words.vocab_size() + 3);
  for (std::int64_t id = 0; id < words.vocab_size(); ++id) {
    EXPECT_EQ(grown.token_of(id), words.token_of(id));
  }
  EXPECT_TRUE(unknown_words(grown, "is the fox red, it?").empty());
  EXPECT_TRUE(have_the_same_tokens(word_tokenizer(std::vector<std::string>{"red is"}, 0, &words), words));
  const Tokenizer characters = char_tokenizer("abc");
  EXPECT_THROW(word_tokenizer(std::vector<std::string>{"a"}, 0, &characters), Error);
}

}  // namespace
}  // namespace vitrail::text
