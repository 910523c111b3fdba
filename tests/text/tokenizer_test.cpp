// Tokenizers of every kind against Hugging Face's: ids, tokens, offsets and decodings of hard texts.
#include "vitrail/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/text/golden_text.h"
#include "vitrail/io/file.h"

namespace vitrail::text {
namespace {

using nlohmann::json;
using test::error_of;
using test::golden_json;
using test::tokenizer_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::int64_t> bounds_of(const Encoding& encoding) {
  std::vector<std::int64_t> bounds;
  for (const auto& [begin, end] : encoding.offsets) {
    bounds.insert(bounds.end(), {begin, end});
  }
  return bounds;
}

std::vector<int> numbers(const std::vector<bool>& flags) { return {flags.begin(), flags.end()}; }

void expect_row(const Encoding& ours, const json& row) {
  EXPECT_EQ(ours.ids, row[0].get<std::vector<std::int64_t>>());
  EXPECT_EQ(bounds_of(ours), row[1].get<std::vector<std::int64_t>>());
  EXPECT_EQ(ours.tokens, row[2].get<std::vector<std::string>>());
}

void expect_row_and_masks(const Encoding& ours, const json& row) {
  expect_row(ours, row);
  EXPECT_EQ(ours.type_ids, row[3].get<std::vector<std::int64_t>>());
  EXPECT_EQ(numbers(ours.special), row[4].get<std::vector<int>>());
  EXPECT_EQ(numbers(ours.attention_mask), row[5].get<std::vector<int>>());
}

class Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Golden, EncodesAndDecodesAsTheReference) {
  const json golden = golden_json(GetParam());
  const auto texts = golden_json("texts").get<std::vector<std::string>>();
  const Tokenizer tokenizer = tokenizer_of(golden["tokenizer"]);
  const json& rows = golden["single"];
  ASSERT_EQ(rows.size(), texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(json(texts[i]).dump());
    expect_row(tokenizer.encode(texts[i]), rows[i]);
    const auto ids = rows[i][0].get<std::vector<std::int64_t>>();
    EXPECT_EQ(tokenizer.decode(ids), golden["decoded"][i][0].get<std::string>());
    EXPECT_EQ(tokenizer.decode(ids, false), golden["decoded"][i][1].get<std::string>());
  }
  expect_row_and_masks(tokenizer.encode_pair(texts[0], "¿Qué? 2"), golden["pair"]);
  expect_row_and_masks(tokenizer.encode(texts[0], false), golden["plain"]);
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, Golden,
                         ::testing::Values("gpt2", "roberta", "llama3", "qwen2", "o200k", "deepseek", "clip",
                                           "bert_uncased", "bert_cased", "bert_accents", "sentence_embedding",
                                           "cut_left", "llama2", "mistral", "unigram", "unigram_bytes", "wordlevel",
                                           "marked", "added", "normalized_bytes"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Tokenizer, KnowsItsVocabulary) {
  const Tokenizer gpt2 = tokenizer_of(golden_json("gpt2")["tokenizer"]);
  EXPECT_EQ(gpt2.kind(), "BPE");
  const std::int64_t end = *gpt2.id_of("<|endoftext|>");
  EXPECT_EQ(gpt2.vocab_size(), end + 1);
  EXPECT_EQ(gpt2.token_of(end), "<|endoftext|>");
  EXPECT_TRUE(gpt2.is_special(end));
  EXPECT_FALSE(gpt2.is_special(0));
  EXPECT_EQ(gpt2.id_of("no such token"), std::nullopt);
  EXPECT_FALSE(gpt2.has(-1));
  EXPECT_EQ(error_of([&] { gpt2.token_of(end + 1); }), "the id 601 is not in the vocabulary of 601 tokens");
  EXPECT_EQ(error_of([&] {
              gpt2.decode(std::vector<std::int64_t>{5, 7, -3});
            }),
            "the id -3 at position 2 is not in the vocabulary of 601 tokens");
}

TEST(Tokenizer, TakesOnlyUtf8) {
  const Tokenizer tokenizer = byte_tokenizer();
  EXPECT_EQ(error_of([&] { tokenizer.encode("ab\xff"); }), "the text is not UTF-8: byte 3 is 0xff");
  EXPECT_EQ(error_of([&] { tokenizer.encode_pair("ab", "\xed\xa0\x80"); }),
            "the second text is not UTF-8: byte 1 is 0xed");
  EXPECT_EQ(error_of([&] { tokenizer.encode("é\xc3"); }), "the text is not UTF-8: byte 3 is 0xc3");
}

TEST(Tokenizer, EncodesABatchByThreads) {
  const auto texts = golden_json("texts").get<std::vector<std::string>>();
  const Tokenizer tokenizer = tokenizer_of(golden_json("unigram")["tokenizer"]);
  const std::vector<Encoding> one = tokenizer.encode_batch(texts, true, 1);
  const std::vector<Encoding> four = tokenizer.encode_batch(texts, true, 4);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(one[i].ids, tokenizer.encode(texts[i]).ids);
    EXPECT_EQ(one[i].ids, four[i].ids);
  }
  EXPECT_THAT(tokenizer.encode_batch({}), IsEmpty());
  std::vector<std::string> bad = texts;
  bad[70] = "\x80";
  EXPECT_EQ(error_of([&] { tokenizer.encode_batch(bad, true, 3); }), "the text is not UTF-8: byte 1 is 0x80");
}

TEST(Tokenizer, PadsABatchToItsLongest) {
  Padding padding;
  padding.id = 7;
  padding.token = "pad";
  const Tokenizer tokenizer = byte_tokenizer().with_padding(padding);
  const std::vector<std::string> texts = {"ab", "abcd", ""};
  const std::vector<Encoding> batch = tokenizer.encode_batch(texts);
  EXPECT_THAT(batch[0].ids, ElementsAre(97, 98, 7, 7));
  EXPECT_THAT(batch[0].tokens, ElementsAre("a", "b", "pad", "pad"));
  EXPECT_THAT(numbers(batch[0].attention_mask), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(batch[2].ids, ElementsAre(7, 7, 7, 7));
  padding.multiple_of = 0;
  EXPECT_EQ(error_of([&] { tokenizer.with_padding(padding); }), "padding to a multiple of 0");
}

TEST(Tokenizer, SaysWhatCannotBeCut) {
  Truncation truncation;
  truncation.max_length = 1;
  const Tokenizer bert = tokenizer_of(golden_json("bert_uncased")["tokenizer"]);
  EXPECT_EQ(error_of([&] { bert.with_truncation(truncation).encode("a"); }),
            "truncation to 1 tokens leaves no room for the 2 special tokens");
  truncation.max_length = 2;
  EXPECT_EQ(bert.with_truncation(truncation).encode("a b c").size(), 2U);
  truncation.max_length = 6;
  truncation.strategy = Truncation::Strategy::only_second;
  EXPECT_EQ(error_of([&] { bert.with_truncation(truncation).encode("a b c d e f g h"); }),
            "only a second text may be cut to 6 tokens, but there is none");
  EXPECT_EQ(error_of([&] { bert.with_truncation(truncation).encode_pair("a b c d", "e f"); }),
            "the second text is too short to be cut: 4 tokens would remain where 3 are allowed");
}

TEST(Tokenizer, OfBytesHasTheBytesAsIds) {
  const Tokenizer tokenizer = byte_tokenizer();
  EXPECT_EQ(tokenizer.vocab_size(), 256);
  const Encoding encoding = tokenizer.encode("aé\n");
  EXPECT_THAT(encoding.ids, ElementsAre(97, 0xC3, 0xA9, 10));
  EXPECT_THAT(bounds_of(encoding), ElementsAre(0, 1, 1, 2, 1, 2, 2, 3));
  EXPECT_EQ(tokenizer.decode(encoding.ids), "aé\n");
  EXPECT_EQ(tokenizer.decode(std::vector<std::int64_t>{0xE2, 0x82, 'x'}), "\uFFFDx");
}

TEST(Tokenizer, OfCharactersIsSavedAndReadAgain) {
  const Tokenizer tokenizer = char_tokenizer("hello\nwörld");
  EXPECT_EQ(tokenizer.vocab_size(), 10);
  const test::TemporaryFolder folder;
  tokenizer.save(folder.path());
  const Tokenizer again = load_tokenizer(folder.path());
  for (const Tokenizer& each : {tokenizer, again}) {
    const Encoding encoding = each.encode("dö\n!");
    EXPECT_THAT(encoding.ids, ElementsAre(1, 8, 0, 9));
    EXPECT_EQ(each.decode(encoding.ids), "dö\n[UNK]");
  }
  EXPECT_EQ(error_of([] { char_tokenizer(""); }), "the corpus is empty, so that there are no characters to tell apart");
  EXPECT_EQ(error_of([] { char_tokenizer("a\xff"); }), "the corpus is not UTF-8: byte 2 is 0xff");
}

}  // namespace
}  // namespace vitrail::text
