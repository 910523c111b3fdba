// CLIP's tokenizer, and new ones of its kind.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "vitrail/io/json.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/text/train.h"

namespace vitrail::text {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

// What transformers' CLIPTokenizer gives (tools/golden/clip.py): texts of 16 tokens, padded with end tokens and cut.
void expect_golden_ids(const Tokenizer& tokenizer) {
  const json golden = io::read_json(test::golden_path("models/joint/clip/captions.json"));
  const Tokenizer cutting = tokenizer.with_padding(std::nullopt).with_truncation(Truncation{.max_length = 16});
  for (std::size_t i = 0; i < golden["captions"].size(); ++i) {
    std::vector<std::int64_t> ids = cutting.encode(golden["captions"][i].get<std::string>()).ids;
    ids.resize(16, *tokenizer.id_of("<|endoftext|>"));
    EXPECT_EQ(ids, golden["ids"][i].get<std::vector<std::int64_t>>()) << golden["captions"][i];
  }
}

TEST(ClipTokenizer, GivesTransformersIds) {
  const auto folder = test::golden_path("models/joint/clip");
  expect_golden_ids(load_tokenizer(folder));
  const json model = io::read_json(folder / "tokenizer.json")["model"];
  const test::TemporaryFolder older;  // vocab.json and merges.txt in place of tokenizer.json
  std::ofstream(older / "vocab.json") << model["vocab"];
  std::ofstream merges(older / "merges.txt");
  merges << "#version: 0.2\n";
  for (const json& merge : model["merges"]) {
    merges << merge[0].get<std::string>() << " " << merge[1].get<std::string>() << "\n";
  }
  merges.close();
  expect_golden_ids(load_tokenizer(older.path()));
}

// What transformers' tokenizers give (tools/golden/siglip.py): texts of 16 tokens, padded and cut.
class SiglipTokenizer : public ::testing::TestWithParam<const char*> {};

TEST_P(SiglipTokenizer, GivesTransformersIds) {
  const auto folder = test::golden_path("models/joint") / GetParam();
  const json golden = io::read_json(folder / "captions.json");
  const test::TemporaryFolder saved;
  load_tokenizer(folder).save(saved.path());
  const std::int64_t padding = golden["ids"][9].get<std::vector<std::int64_t>>().back();  // of the empty text
  for (const auto& place : {folder, saved.path()}) {
    const Tokenizer tokenizer = load_tokenizer(place).with_truncation(Truncation{.max_length = 16});
    for (std::size_t i = 0; i < golden["captions"].size(); ++i) {
      std::vector<std::int64_t> ids = tokenizer.encode(golden["captions"][i].get<std::string>()).ids;
      ids.resize(16, padding);
      EXPECT_EQ(ids, golden["ids"][i].get<std::vector<std::int64_t>>()) << golden["captions"][i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SiglipTokenizer, ::testing::Values("siglip", "siglip_json"),
                         [](const ::testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST(SiglipTokenizer, KnowsWhereItsTokensComeFrom) {
  const Tokenizer tokenizer = load_tokenizer(test::golden_path("models/joint/siglip"));
  const std::string text = "  Two,  \u00e9 Birds!";
  const Encoding encoding = tokenizer.encode(text);
  EXPECT_EQ(encoding.tokens.back(), "</s>");
  EXPECT_TRUE(encoding.special.back());
  EXPECT_TRUE(tokenizer.is_special(1));
  std::int64_t last = 0;
  for (std::size_t i = 0; i + 1 < encoding.size(); ++i) {
    EXPECT_GE(encoding.offsets[i].first, last);
    last = encoding.offsets[i].first;
  }
  EXPECT_EQ(encoding.offsets[encoding.size() - 2].second, 15);  // behind the s, in front of the !
}

TEST(ClipTokenizer, IsLearned) {
  const std::vector<std::string> texts = {"A red bird", "a RED circle", "the red bird's wing", "a caf\u00e9"};
  const Tokenizer tokenizer = train_clip_bpe(texts, 10'000, 20);
  // 256 bytes, and the same at the end of a word; then the merges of these words; then the two special tokens.
  EXPECT_EQ(tokenizer.token_of(0), "!");
  EXPECT_EQ(tokenizer.token_of(256), "!</w>");
  EXPECT_EQ(tokenizer.id_of("<|endoftext|>"), tokenizer.vocab_size() - 1);
  EXPECT_LT(tokenizer.vocab_size(), 600);
  const std::int64_t red = *tokenizer.id_of("red</w>");
  const std::int64_t a = *tokenizer.id_of("a</w>");
  const std::int64_t start = tokenizer.vocab_size() - 2;
  EXPECT_THAT(tokenizer.encode("a  Red bird").ids, ElementsAre(start, a, red, *tokenizer.id_of("bird</w>"), start + 1));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("A red\tcafe\u0301").ids), "a red caf\u00e9");
  EXPECT_EQ(train_clip_bpe(texts, 520).vocab_size(), 520);

  const test::TemporaryFolder folder;
  tokenizer.save(folder.path());
  EXPECT_EQ(load_tokenizer(folder.path()).encode("a red wing").ids, tokenizer.encode("a red wing").ids);
  const json config = io::read_json(folder / "tokenizer_config.json");
  EXPECT_EQ(config["tokenizer_class"], "CLIPTokenizer");
  EXPECT_EQ(config["model_max_length"], 20);
}

}  // namespace
}  // namespace vitrail::text
