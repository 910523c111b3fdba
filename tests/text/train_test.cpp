#include "vitrail/text/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/text/golden_text.h"
#include "vitrail/io/json.h"
#include "vitrail/text/parts/learn_bpe.h"

namespace vitrail::text {
namespace {

using nlohmann::json;
using test::error_of;
using test::golden_json;
using ::testing::ElementsAre;
using ::testing::StartsWith;

json saved(const Tokenizer& tokenizer) {
  const test::TemporaryFolder folder;
  tokenizer.save(folder.path());
  return io::read_json(folder.path() / "tokenizer.json");
}

TEST(TrainTokenizer, LearnsTheMergesOfBpeTrainer) {
  const json golden = golden_json("training");
  const auto lines = golden["lines"].get<std::vector<std::string>>();
  TokenizerTraining training;
  training.vocab_size = 700;
  training.special_tokens = {"<|endoftext|>"};
  const Tokenizer tokenizer = train_byte_level_bpe(lines, training);
  const json model = saved(tokenizer)["model"];
  EXPECT_EQ(model["vocab"], golden["model"]["vocab"]);
  EXPECT_EQ(model["merges"], golden["model"]["merges"]);
  EXPECT_EQ(tokenizer.vocab_size(), 700);
  const Encoding encoding = tokenizer.encode("First<|endoftext|>");
  EXPECT_EQ(encoding.ids.back(), 0);
  EXPECT_EQ(tokenizer.decode(encoding.ids), "First");
}

TEST(TrainTokenizer, JoinsEquallyFrequentPairsOfTheSmallestIdsFirst) {
  BpeLearning learning;
  learning.vocab_size = 7;
  const LearnedBpe learned = learn_bpe({{"cd", 2}, {"ab", 2}, {"xa", 1}}, learning);
  EXPECT_THAT(learned.tokens, ElementsAre("a", "b", "c", "d", "x", "ab", "cd"));
  learning.vocab_size = 100;
  learning.min_frequency = 2;
  EXPECT_EQ(learn_bpe({{"cd", 2}, {"ab", 2}, {"xa", 1}}, learning).merges.size(), 2U);
  learning.vocab_size = 4;
  EXPECT_EQ(error_of([&] {
              learn_bpe({{"cd", 2}, {"ab", 2}, {"xa", 1}}, learning);
            }),
            "a vocabulary of 4 tokens has no room for the 5 special tokens and characters");
}

TEST(TrainTokenizer, LearnsPiecesOfWords) {
  const auto lines = golden_json("training")["lines"].get<std::vector<std::string>>();
  TokenizerTraining training;
  training.vocab_size = 400;
  training.lowercase = true;
  const Tokenizer tokenizer = train_wordpiece(lines, training);
  EXPECT_EQ(saved(tokenizer), saved(train_wordpiece(lines, training)));
  EXPECT_EQ(tokenizer.kind(), "WordPiece");
  const Encoding encoding = tokenizer.encode("We know the Citizens");
  EXPECT_EQ(encoding.tokens.front(), "[CLS]");
  EXPECT_EQ(encoding.tokens.back(), "[SEP]");
  EXPECT_EQ(tokenizer.decode(encoding.ids), "we know the citizens");
}

TEST(TrainTokenizer, LetsSentencepieceLearn) {
  auto lines = golden_json("training")["lines"].get<std::vector<std::string>>();
  for (std::string& line : lines) {
    line.pop_back();
  }
  TokenizerTraining training;
  training.vocab_size = 300;
  training.special_tokens = {"<mask>"};
  for (const char* kind : {"unigram", "bpe"}) {
    const Tokenizer tokenizer = train_sentencepiece(lines, kind, training);
    EXPECT_EQ(tokenizer.vocab_size(), 300);
    EXPECT_TRUE(tokenizer.is_special(*tokenizer.id_of("<mask>")));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("First Citizen: speak.").ids), "First Citizen: speak.");
    const test::TemporaryFolder folder;
    tokenizer.save(folder.path());
    EXPECT_EQ(load_tokenizer(folder.path()).encode("speak").ids, tokenizer.encode("speak").ids);
  }
  EXPECT_EQ(error_of([&] { train_sentencepiece(lines, "word", training); }),
            "sentencepiece is to learn 'unigram' or 'bpe', not 'word'");
  training.vocab_size = 100'000;
  EXPECT_THAT(error_of([&] { train_sentencepiece(lines, "unigram", training); }),
              StartsWith("sentencepiece cannot learn 100000 tokens (--vocab-size): "));
}

TEST(TrainTokenizer, MakesATranslatorsOfOneFileOfSentencepiece) {
  auto lines = golden_json("training")["lines"].get<std::vector<std::string>>();
  for (std::string& line : lines) {
    line.pop_back();
  }
  TokenizerTraining training;
  training.vocab_size = 300;
  const Tokenizer tokenizer = train_marian(lines, "bpe", training);
  EXPECT_EQ(tokenizer.vocab_size(), 300);
  EXPECT_EQ(tokenizer.id_of("</s>"), 0);
  EXPECT_EQ(tokenizer.id_of("<unk>"), 1);
  EXPECT_EQ(tokenizer.id_of("<pad>"), 299);
  EXPECT_EQ(tokenizer.id_of("<s>"), std::nullopt);
  const Encoding encoding = tokenizer.encode("First Citizen: speak.");
  EXPECT_EQ(encoding.ids.back(), 0);
  EXPECT_EQ(tokenizer.decode(encoding.ids), "First Citizen: speak.");
  const test::TemporaryFolder folder;
  tokenizer.save(folder.path());
  EXPECT_EQ(load_tokenizer(folder.path()).encode("First Citizen: speak.").ids, encoding.ids);
  EXPECT_EQ(load_target_tokenizer(folder.path()).encode("First Citizen: speak.").ids, encoding.ids);
  EXPECT_EQ(marian_tokenizer(folder / "source.spm").encode("First Citizen: speak.").ids, encoding.ids);
  // The language that is translated to may have pieces of its own.
  const test::TemporaryFolder other;
  training.vocab_size = 200;
  train_marian(lines, "bpe", training).save(other.path());
  std::filesystem::copy_file(other / "target.spm", folder / "target.spm",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(load_tokenizer(folder.path()).encode("First Citizen: speak.").ids, encoding.ids);
  const Encoding target = load_target_tokenizer(folder.path()).encode("First Citizen: speak.");
  EXPECT_GT(target.ids.size(), encoding.ids.size());
  EXPECT_EQ(load_tokenizer(folder.path()).decode(target.ids), "First Citizen: speak.");
}

TEST(TrainTokenizer, SaysWhatIsWrong) {
  TokenizerTraining training;
  const std::vector<std::string> none = {"", ""};
  EXPECT_EQ(error_of([&] { train_byte_level_bpe(none, training); }), "there is no text to learn a tokenizer from");
  const std::vector<std::string> broken = {"a", "b\xff"};
  EXPECT_EQ(error_of([&] { train_wordpiece(broken, training); }), "text 1 is not UTF-8: byte 2 is 0xff");
  const std::vector<std::string> little = {"abab"};
  EXPECT_EQ(error_of([&] { train_byte_level_bpe(little, training); }),
            "the texts have enough for 258 tokens, but the vocabulary is to have 30000 (--vocab-size)");
}

}  // namespace
}  // namespace vitrail::text
