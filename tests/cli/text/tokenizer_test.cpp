// vitrail tokenizer
#include "vitrail/text/tokenizer.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"
#include "vitrail/io/file.h"

namespace vitrail::test {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TokenizerCommand : public ::testing::Test {
 protected:
  TokenizerCommand() { text::byte_tokenizer().save(folder_.path()); }
  std::string bytes() const { return folder_.path().string(); }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  TemporaryFolder folder_;
};

TEST_F(TokenizerCommand, EncodesTextsAndLines) {
  EXPECT_EQ(vitrail("tokenizer encode " + bytes() + " ab 'c d'").out, "97 98\n99 32 100\n");
  EXPECT_EQ(vitrail("tokenizer encode " + bytes() + " --input -", "ab\n\nc\n").out, "97 98\n\n99\n");
  EXPECT_EQ(vitrail("tokenizer encode " + bytes() + " --input - --json-lines --threads 2", "\"a\\nb\"\n").out,
            "97 10 98\n");
  EXPECT_EQ(vitrail("tokenizer encode " + bytes() + " ab --show").out, "a\u200997 b\u200998\n");
  const json encoding = json::parse(vitrail("tokenizer encode " + bytes() + " é --json").out);
  EXPECT_EQ(encoding["ids"], json({0xC3, 0xA9}));
  EXPECT_EQ(encoding["tokens"], json({"Ã", "©"}));
  EXPECT_EQ(encoding["offsets"], json::parse("[[0, 1], [0, 1]]"));
  EXPECT_EQ(encoding["attention_mask"], json({true, true}));
}

TEST_F(TokenizerCommand, DecodesIds) {
  EXPECT_EQ(vitrail("tokenizer decode " + bytes() + " 97 98").out, "ab\n");
  EXPECT_EQ(vitrail("tokenizer decode " + bytes() + " --input - --json", "97 10\n98\n").out, "\"a\\n\"\n\"b\"\n");
  EXPECT_EQ(vitrail("tokenizer decode " + bytes() + " 97 256").err,
            "vitrail: the id 256 at position 1 is not in the vocabulary of 256 tokens\n");
  EXPECT_EQ(vitrail("tokenizer decode " + bytes() + " 97 x").err, "vitrail: the arguments: 'x' is not an id\n");
}

TEST_F(TokenizerCommand, TellsAboutATokenizer) {
  EXPECT_EQ(vitrail("tokenizer info " + bytes()).out, "BPE, 256 tokens\n");
  const json about = json::parse(vitrail("tokenizer info " + bytes() + " --json").out);
  EXPECT_EQ(about["vocab_size"], 256);
  EXPECT_EQ(about["kind"], "BPE");
  EXPECT_TRUE(about["max_length"].is_null());
}

TEST_F(TokenizerCommand, LearnsOne) {
  io::write_atomically(path("text"), std::string_view("the cat and the dog and the cow\nthe cat\n"));
  const std::string train = "tokenizer train " + path("text") + " --output " + path("new") + " ";
  const Outcome learned = vitrail(train + "--vocab-size 262 --special-tokens '<s>'");
  ASSERT_EQ(learned.status, 0) << learned.err;
  EXPECT_EQ(learned.out, "BPE, 262 tokens: " + path("new") + "\n");
  EXPECT_EQ(vitrail("tokenizer info " + path("new")).out, "BPE, 262 tokens\n         0  <s>\n");
  const std::string ids = vitrail("tokenizer encode " + path("new") + " '<s>the cow'").out;
  EXPECT_THAT(ids, StartsWith("0 "));
  const std::string decode = "tokenizer decode " + path("new") + " --input - ";
  EXPECT_EQ(vitrail(decode, ids).out, "the cow\n");
  EXPECT_EQ(vitrail(decode + "--keep-special-tokens", ids).out, "<s>the cow\n");
  EXPECT_THAT(vitrail(train).err, EndsWith("exists: choose another --output\n"));
  EXPECT_THAT(vitrail("tokenizer train " + path("text") + " --output " + path("other")).err,
              HasSubstr("the vocabulary is to have 30000"));
}

TEST_F(TokenizerCommand, SaysWhatIsWrong) {
  const auto nothing = vitrail("tokenizer encode " + bytes());
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.err, HasSubstr("give texts, a file by --input, or - for the standard input"));
  EXPECT_THAT(vitrail("tokenizer encode " + bytes() + " a --input -").err,
              HasSubstr("give texts or --input, not both"));
  EXPECT_EQ(vitrail("tokenizer encode " + bytes() + " --input -", "ab\nc\xff\n").err,
            "vitrail: standard input: line 2 is not UTF-8: byte 2 of it is 0xff\n");
  EXPECT_EQ(vitrail("tokenizer encode " + bytes() + " -", "ab\n").out,
            vitrail("tokenizer encode " + bytes() + " ab").out);
  EXPECT_THAT(vitrail("tokenizer encode " + bytes() + " --input " + path("none")).err,
              EndsWith("none': No such file or directory\n"));
  EXPECT_EQ(vitrail("tokenizer encode " + bytes() + " --input - --json-lines", "1\n").err,
            "vitrail: -: line 1: it must be a JSON string\n");
  EXPECT_EQ(vitrail("tokenizer").status, 2);
  EXPECT_THAT(vitrail("tokenizer encode " + bytes() + " a --shown").err,
              HasSubstr("vitrail tokenizer encode: there is no flag '--shown' (did you mean '--show'?)"));
  EXPECT_THAT(vitrail("tokenizer info " + path("nothing")).err, HasSubstr("nothing"));
}

class LearnedPieces : public InAFolder {};

TEST_F(LearnedPieces, HaveTheirSpecialTokens) {
  std::string corpus;
  for (int i = 0; i < 40; ++i) {
    corpus += "to be or not to be that is the question of all of them that are there\n";
  }
  const std::string command = "tokenizer train " + write("corpus.txt", corpus) + " --output ";
  for (const std::string model : {"unigram", "sentencepiece-bpe"}) {
    const std::string folder = path("pieces-" + model);
    const std::string flags = " --model " + model + " --vocab-size 28 --special-tokens ";
    const Outcome made = vitrail(command + folder + flags + "'<unk>' '<s>' 'a,b' '<sep>' 'x\"y' '<sep>'");
    ASSERT_EQ(made.status, 0) << made.err;
    EXPECT_EQ(made.err, "");
    const nlohmann::json info = nlohmann::json::parse(vitrail("tokenizer info " + folder + " --json").out);
    EXPECT_EQ(info["vocab_size"], 28);
    EXPECT_EQ(info["special_tokens"], (nlohmann::json{{"<s>", 1}, {"</s>", 2}, {"a,b", 3}, {"<sep>", 4}, {"x\"y", 5}}));
    refuses(command + path("none") + " --model " + model + " --vocab-size 4 --special-tokens '<a>' '<b>'",
            "a vocabulary of 4 tokens has no room for the 5 special tokens");
  }
}

}  // namespace
}  // namespace vitrail::test
