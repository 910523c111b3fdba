// The layouts of files, and what is said of broken ones.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/text/golden_text.h"
#include "vitrail/io/base64.h"
#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/text/parts/charsmap.h"
#include "vitrail/text/tokenizer.h"

namespace vitrail::text {
namespace {

using nlohmann::json;
using test::error_of;
using test::golden_json;
using test::tokenizer_of;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Files : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << content;
  }
  Tokenizer load(const std::string& name = "") const { return load_tokenizer(folder_.path() / name); }
  std::string complaint(const std::string& name = "") const {
    std::string sentence = error_of([&] { load(name); });
    const std::string path = folder_.path().string();
    for (std::size_t at = sentence.find(path); at != std::string::npos; at = sentence.find(path)) {
      sentence.replace(at, path.size(), "…");
    }
    return sentence;
  }
  test::TemporaryFolder folder_;
};

std::string merges_of(const json& model) {
  std::string text = "#version: 0.2\n";
  for (const json& merge : model["merges"]) {
    text += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  }
  return text;
}

// The lines of a vocab.txt.
std::string lines_of(const json& vocab, const char* end = "\n") {
  std::vector<std::string> tokens(vocab.size());
  for (const auto& [token, id] : vocab.items()) {
    tokens[id.get<std::size_t>()] = token;
  }
  std::string lines;
  for (const std::string& token : tokens) {
    lines += token + end;
  }
  return lines;
}

// The golden rows of a kind, which another layout of the same must give too.
void expect_golden(const Tokenizer& tokenizer, const std::string& kind) {
  const json golden = golden_json(kind);
  const auto texts = golden_json("texts").get<std::vector<std::string>>();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(texts[i]).ids, golden["single"][i][0].get<std::vector<std::int64_t>>()) << texts[i];
  }
}

TEST_F(Files, OfGpt2) {
  const json model = golden_json("gpt2")["tokenizer"]["model"];
  json vocab = model["vocab"];
  vocab["<|endoftext|>"] = vocab.size();
  write("vocab.json", vocab.dump());
  write("merges.txt", merges_of(model));
  const Tokenizer tokenizer = load();
  expect_golden(tokenizer, "gpt2");
  EXPECT_EQ(tokenizer.vocab_size(), 601);
  const test::TemporaryFolder copy;
  tokenizer.save(copy.path());
  EXPECT_EQ(io::read_json(copy / "tokenizer_config.json"), json({{"tokenizer_class", "PreTrainedTokenizerFast"},
                                                                 {"bos_token", "<|endoftext|>"},
                                                                 {"eos_token", "<|endoftext|>"}}));
  expect_golden(load_tokenizer(copy.path()), "gpt2");
}

TEST_F(Files, OfRoberta) {
  const json document = golden_json("roberta")["tokenizer"];
  json vocab = document["model"]["vocab"];
  for (const json& token : document["added_tokens"]) {
    vocab[token["content"].get<std::string>()] = token["id"];
  }
  write("vocab.json", vocab.dump());
  write("merges.txt", merges_of(document["model"]));
  write("tokenizer_config.json", R"({"add_prefix_space": true, "model_max_length": 512})");
  expect_golden(load(), "roberta");
  const Tokenizer roberta = load();
  EXPECT_EQ(roberta.encode("ab").size(), roberta.encode("ab", false).size() + 2);
  for (const auto& [file, says] : {std::pair("config.json", R"({"model_type": "gpt2"})"),
                                   {"tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})"}}) {
    write("tokenizer_config.json", R"({"add_prefix_space": true})");
    write(file, says);
    const Tokenizer gpt2 = load();
    EXPECT_EQ(gpt2.encode("ab").size(), gpt2.encode("ab", false).size()) << file;
  }
  write("config.json", "{}");
  write("tokenizer_config.json", "{}");
  vocab["<s>"] = "0";
  write("vocab.json", vocab.dump());
  EXPECT_EQ(complaint(), "…/vocab.json: the id of the token '<s>' must be a whole number from 0 to 4194303");
}

TEST_F(Files, OfBert) {
  const json vocab = golden_json("bert_cased")["tokenizer"]["model"]["vocab"];
  write("vocab.txt", lines_of(vocab, "\r\n"));
  write("tokenizer_config.json", R"({"do_lower_case": false})");
  const Tokenizer tokenizer = load();
  const Encoding encoding = tokenizer.encode_pair("ab", "ab");
  EXPECT_EQ(encoding.tokens.front(), "[CLS]");
  EXPECT_EQ(encoding.type_ids.back(), 1);
  const test::TemporaryFolder copy;
  tokenizer.save(copy.path());
  EXPECT_EQ(io::read_text(copy / "tokenizer_config.json"), R"({"do_lower_case": false})");
  EXPECT_EQ(tokenizer.encode("The café").ids,
            tokenizer_of(golden_json("bert_cased")["tokenizer"]).encode("The café").ids);
  EXPECT_EQ(load("vocab.txt").vocab_size(), tokenizer.vocab_size());
  write("vocab.txt", "[UNK]\n[CLS]\nab\nab\n");
  EXPECT_EQ(complaint(), "…/vocab.txt: line 4: the token 'ab' is there twice");
  write("vocab.txt", "[UNK]\n[CLS]\n");
  EXPECT_EQ(complaint(), "…/vocab.txt: the token '[SEP]' is missing");
  write("vocab.txt", "[UNK]\n\xff\n");
  EXPECT_EQ(complaint(), "…/vocab.txt is not UTF-8: byte 7 is 0xff");
}

// Tokens that were added to a vocabulary in the files of transformers' older classes, and Llama's tokenizer.model
// (tools/golden/older_layouts.py).
TEST_F(Files, TokensThatWereAddedToOlderLayouts) {
  const json layouts = golden_json("older_layouts");
  for (const auto& [layout, golden] : layouts.items()) {
    for (const auto& [name, beside] : golden["cases"].items()) {
      const test::TemporaryFolder folder;
      const auto put = [&](const std::string& file, const std::string& content) {
        std::ofstream(folder / file, std::ios::binary) << content;
      };
      if (layout == "gpt2") {
        json model = golden_json("gpt2")["tokenizer"]["model"];
        model["vocab"]["<|endoftext|>"] = model["vocab"].size();
        put("vocab.json", model["vocab"].dump());
        put("merges.txt", merges_of(model));
      } else if (layout == "bert") {
        put("vocab.txt", lines_of(golden_json("bert_uncased")["tokenizer"]["model"]["vocab"]));
      } else {
        put("tokenizer.model", io::decode_base64(golden["own"]["tokenizer.model"].get<std::string>()));
      }
      for (const auto& [file, content] : beside["files"].items()) {
        put(file, content.get<std::string>());
      }
      const Tokenizer tokenizer = load_tokenizer(folder.path());
      const test::TemporaryFolder copy;
      tokenizer.save(copy.path());
      const Tokenizer saved = load_tokenizer(copy.path());
      for (const json& row : beside["rows"]) {
        const auto text = row[0].get<std::string>();
        const auto ids = row[1].get<std::vector<std::int64_t>>();
        EXPECT_EQ(tokenizer.encode(text).ids, ids) << layout << " " << name << ": " << text;
        EXPECT_EQ(saved.encode(text).ids, ids) << layout << " " << name << ", saved: " << text;
        for (const bool skips : {true, false}) {
          EXPECT_EQ(tokenizer.decode(ids, skips), row[2][skips ? 0 : 1].get<std::string>())
              << layout << " " << name << ": " << text;
        }
      }
    }
  }
}

// What transformers changes in a tokenizer.json by the tokenizer_config.json beside it
// (tools/golden/tokenizer_config.py).
TEST_F(Files, AConfigChangesATokenizerJson) {
  const json tokenizers = golden_json("tokenizer_config");
  for (const auto& [kind, cases] : tokenizers.items()) {
    const std::string document = golden_json(kind)["tokenizer"].dump();
    for (const auto& [name, golden] : cases.items()) {
      const test::TemporaryFolder folder;
      std::ofstream(folder / "tokenizer.json") << document;
      for (const auto& [file, content] : golden["files"].items()) {
        std::ofstream(folder / file) << content.get<std::string>();
      }
      const Tokenizer tokenizer = load_tokenizer(folder.path());
      const test::TemporaryFolder copy;
      tokenizer.save(copy.path());
      const Tokenizer saved = load_tokenizer(copy.path());
      for (const json& row : golden["rows"]) {
        const auto text = row[0].get<std::string>();
        const auto ids = row[1].get<std::vector<std::int64_t>>();
        EXPECT_EQ(tokenizer.encode(text).ids, ids) << kind << " " << name << ": " << text;
        EXPECT_EQ(saved.encode(text).ids, ids) << kind << " " << name << ", saved: " << text;
        EXPECT_EQ(tokenizer.decode(ids, true), row[2][0].get<std::string>()) << kind << " " << name << ": " << text;
        EXPECT_EQ(saved.decode(ids, true), row[2][0].get<std::string>()) << kind << " " << name << ", saved: " << text;
      }
    }
  }
  write("tokenizer.json", golden_json("gpt2")["tokenizer"].dump());
  EXPECT_EQ(load().encode("king").ids.size(), 2U);
  const Tokenizer before = load();
  const test::TemporaryFolder copy;
  before.save(copy.path());
  EXPECT_EQ(io::read_text(copy / "tokenizer.json"), io::read_text(folder_ / "tokenizer.json")) << "to the byte";
}

TEST_F(Files, OfLlama) {
  const json golden = golden_json("older_layouts")["llama"];
  write("tokenizer.model", io::decode_base64(golden["own"]["tokenizer.model"].get<std::string>()));
  write("config.json", R"({"model_type": "llama"})");
  const Tokenizer plain = load();
  EXPECT_EQ(plain.kind(), "SentencePiece") << "as a Llama that was trained here has it";
  write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizerFast"})");
  const Tokenizer tokenizer = load();
  EXPECT_EQ(tokenizer.kind(), "BPE");
  for (const char* text : {"Hello world", "naïve 12 tests", "日本"}) {
    std::vector<std::int64_t> ids = plain.encode(text).ids;
    EXPECT_EQ(tokenizer.encode(text, false).ids, ids) << text;
    ids.insert(ids.begin(), 1);
    EXPECT_EQ(tokenizer.encode(text).ids, ids) << text;
    ids.insert(ids.end(), ids.begin(), ids.end());
    EXPECT_EQ(tokenizer.encode_pair(text, text).ids, ids) << text;
  }
  EXPECT_TRUE(tokenizer.encode("a").special.front());
  write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "bos_token": "<begin>"})");
  EXPECT_EQ(load().encode("a").tokens.front(), "<begin>") << "a token that is named is added";
  write("tokenizer_config.json", R"({"tokenizer_class": "T5Tokenizer"})");
  EXPECT_EQ(load().kind(), "SentencePiece");
}

TEST_F(Files, SayWhatIsWrongBesideOlderLayouts) {
  write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  write("merges.txt", "#version: 0.2\na b\nab b\n");
  EXPECT_EQ(complaint(), "…/merges.txt: line 3: 'ab b' needs the token 'abb', which is not in vocab.json");
  write("merges.txt", "#version: 0.2\nab\n");
  EXPECT_EQ(complaint(), "…/merges.txt: line 2: 'ab' is not two tokens with a space between");
  write("merges.txt", "#version: 0.2\na b\n");
  EXPECT_EQ(load().vocab_size(), 3);
  write("added_tokens.json", R"({"<new>": 3, "b": 1})");
  EXPECT_EQ(load().encode("ab<new>b").ids, (std::vector<std::int64_t>{0, 1, 3, 1})) << "b is found before it is joined";
  write("added_tokens.json", R"({"<new>": 7})");
  EXPECT_EQ(complaint(), "…/: the token '<new>' was added with the id 7, but the vocabulary beside it gives it 3");
  write("added_tokens.json", R"({"<new>": "3"})");
  EXPECT_EQ(complaint(), "…/added_tokens.json: the id of the token '<new>' must be a whole number from 0 to 4194303");
  write("added_tokens.json", R"(["<new>"])");
  EXPECT_EQ(complaint(), "…/added_tokens.json: it must be an object");
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"3x": {"content": "<new>"}}})");
  EXPECT_EQ(
      complaint(),
      "…/tokenizer_config.json: 'added_tokens_decoder': '3x' must be an id with an object that describes its token");
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"3": {}}})");
  EXPECT_EQ(complaint(),
            "…/tokenizer_config.json: 'added_tokens_decoder': '3' must be a token, with at least one character");
  write("tokenizer_config.json",
        R"({"added_tokens_decoder": {"3": {"content": "<new>"}, "03": {"content": "<newer>"}}})");
  EXPECT_EQ(complaint(), "…/tokenizer_config.json: 'added_tokens_decoder': two tokens have the id 3");
  write("tokenizer_config.json", R"({"pad_token": 5})");
  EXPECT_EQ(complaint(), "…/tokenizer_config.json: 'pad_token' must be a token, with at least one character");
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"3": {"content": "<new>"}}})");
  EXPECT_EQ(load().id_of("<new>"), 3);
  write("vocab.json", R"({"a": 0, "b": 1, "ab": 9223372036854775807})");
  EXPECT_THAT(complaint(), HasSubstr("the vocabulary beside it gives it 4194304"));
}

TEST_F(Files, OfSentencepiece) {
  const json golden = golden_json("sentencepiece");
  const auto texts = golden["texts"].get<std::vector<std::string>>();
  for (const char* kind : {"unigram", "bpe"}) {
    write("spiece.model", io::decode_base64(golden[kind]["model"].get<std::string>()));
    const Tokenizer tokenizer = load();
    EXPECT_EQ(tokenizer.kind(), "SentencePiece");
    for (std::size_t i = 0; i < texts.size(); ++i) {
      SCOPED_TRACE(std::string(kind) + " " + json(texts[i]).dump());
      const json& row = golden[kind]["rows"][i];
      const Encoding encoding = tokenizer.encode(texts[i]);
      EXPECT_EQ(encoding.ids, row[0].get<std::vector<std::int64_t>>());
      std::vector<std::int64_t> bounds;
      for (const auto& [begin, end] : encoding.offsets) {
        bounds.insert(bounds.end(), {begin, end});
      }
      EXPECT_EQ(bounds, row[1].get<std::vector<std::int64_t>>());
      EXPECT_EQ(encoding.tokens, row[2].get<std::vector<std::string>>());
      EXPECT_EQ(tokenizer.decode(encoding.ids), row[3].get<std::string>());
    }
    EXPECT_EQ(tokenizer.id_of("no such piece"), std::nullopt);
    EXPECT_TRUE(tokenizer.is_special(*tokenizer.id_of("</s>")));
  }
}

TEST_F(Files, OfSentencepieceThatAreBroken) {
  const std::string model = io::decode_base64(golden_json("sentencepiece")["unigram"]["model"].get<std::string>());
  write("tokenizer.model", model.substr(0, 1000));
  EXPECT_THAT(complaint(), StartsWith("…/tokenizer.model: not a model of sentencepiece: cut off or broken at byte "));
  write("tokenizer.model", "");
  EXPECT_EQ(complaint(), "…/tokenizer.model: not a model of sentencepiece: it has no pieces");
  write("tokenizer.model", "{\"a\": 1}");
  EXPECT_THAT(complaint(), StartsWith("…/tokenizer.model: not a model of sentencepiece: cut off or broken at byte "));
}

TEST_F(Files, OfMarian) {
  const std::string model = io::decode_base64(golden_json("sentencepiece")["unigram"]["model"].get<std::string>());
  write("source.spm", model);
  write("target.spm", model);
  write("vocab.json",
        R"({"</s>": 0, "<unk>": 1, "▁H": 2, "e": 3, "l": 4, "o": 5, ">>de<<": 6, "▁": 7, "<pad>": 8, "H": 9})");
  const Tokenizer tokenizer = load();
  const Encoding encoding = tokenizer.encode(">>de<< o");
  EXPECT_THAT(encoding.ids, ElementsAre(6, 7, 5, 0));
  EXPECT_EQ(encoding.offsets[0], (std::pair<std::int64_t, std::int64_t>{0, 6}));
  EXPECT_EQ(encoding.offsets[2], (std::pair<std::int64_t, std::int64_t>{7, 8}));
  EXPECT_EQ(tokenizer.decode(std::vector<std::int64_t>{8, 2, 3, 4, 4, 5, 0}), "Hello");
  EXPECT_EQ(tokenizer.decode(std::vector<std::int64_t>{8, 2, 3, 0}, false), "<pad> He</s>");
  const test::TemporaryFolder copy;
  tokenizer.save(copy.path());
  EXPECT_EQ(load_tokenizer(copy.path()).encode("Hello").ids, tokenizer.encode("Hello").ids);
  write("vocab.json", R"({"</s>": 0})");
  EXPECT_EQ(complaint(), "…/vocab.json: the token '<unk>' is missing");
}

TEST_F(Files, OfMarianWithSpecialTokensInTexts) {
  const std::string model = io::decode_base64(golden_json("sentencepiece")["unigram"]["model"].get<std::string>());
  write("source.spm", model);
  write("target.spm", model);
  const json golden = golden_json("marian");
  write("vocab.json", golden["vocab"].dump());
  const Tokenizer tokenizer = load();
  for (const json& row : golden["rows"]) {
    const auto text = row[0].get<std::string>();
    const Encoding encoding = tokenizer.encode(text);
    EXPECT_EQ(encoding.ids, row[1].get<std::vector<std::int64_t>>()) << text;
  }
  const Encoding encoding = tokenizer.encode("ü</s> o");
  EXPECT_EQ(encoding.offsets[encoding.size() - 2], (std::pair<std::int64_t, std::int64_t>{6, 7}));
}

TEST_F(Files, ThatAreNotThere) {
  EXPECT_THAT(complaint(), StartsWith("…/: no tokenizer is there: neither tokenizer.json, nor "));
  EXPECT_THAT(complaint("nothing.json"), HasSubstr("…/nothing.json"));
}

// What is said of a small tokenizer.json in which one thing is changed.
class Document : public Files {
 protected:
  std::string complaint_about(const std::string& change) {
    json document = json::parse(R"({"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2},
                                    "merges": ["a b"]}})");
    document.merge_patch(json::parse(change));
    write("tokenizer.json", document.dump());
    return complaint();
  }
};

TEST_F(Document, IsReadOrSaysWhy) {
  EXPECT_EQ(complaint_about("{}"), "no error");
  const std::string place = "…/tokenizer.json: ";
  const auto expect = [&](const std::string& change, const std::string& sentence) {
    EXPECT_EQ(complaint_about(change), place + sentence) << change;
  };
  expect(R"({"version": "2.0"})", "'version' must be '1.0', but is '2.0'");
  expect(R"({"more": 1})", "unknown key 'more'");
  expect(R"({"normalizer": {"type": "NFX"}})",
         "normalizer: the type 'NFX' is not known (did you mean 'NFC' or 'NFD'?)");
  expect(R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase", "x": 1}]}})",
         "normalizer.normalizers[1]: unknown key 'x'");
  expect(R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated", "invert": false}})",
         "the regular expression '(a' is not valid: missing closing parenthesis");
  expect(
      R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "[a&&b]"}, "behavior": "Isolated", "invert": false}})",
      "the regular expression '[a&&b]' has '&&' at byte 2, brackets in brackets, which are not supported");
  expect(R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Split", "invert": false}})",
         "pre_tokenizer: 'behavior' must be 'Contiguous', 'Isolated', 'MergedWithNext', 'MergedWithPrevious' or "
         "'Removed', but is 'Split'");
  expect(R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "__"}})",
         "pre_tokenizer: 'replacement' must be one character, but is '__'");
  expect(R"({"decoder": {"type": "Bert"}})",
         "decoder: the type 'Bert' is not known: there are 'BPEDecoder', 'ByteFallback', 'ByteLevel', 'CTC', 'Fuse', "
         "'Metaspace', 'Replace', 'Sequence', 'Strip' and 'WordPiece'");
  expect(R"({"model": {"dropout": 0.1}})",
         "model: 'dropout' is 0.1, with which every encoding would be another; it must be 0 or null");
  expect(R"({"model": {"merges": ["a c"]}})", "the merge 0 has the token 'c', which the vocabulary has not");
  expect(R"({"model": {"merges": ["ab"]}})", "model: merge 0 is 'ab', which is not two tokens with a space between");
  expect(R"({"model": {"vocab": {"a": 5, "b": 5}}})", "the tokens 'a' and 'b' have the same id 5");
  expect(R"({"model": {"vocab": {"a": -5}}})", "the token 'a' has the id -5, which is not between 0 and 65541");
  expect(R"({"model": {"type": "Unigram", "vocab": [["a", 1]], "merges": null, "unk_id": 1}})",
         "'unk_id' is 1, but the vocabulary has 1 tokens");
  expect(R"({"model": {"type": "Bigram"}})", "model: the type 'Bigram' is not known (did you mean 'Unigram'?)");
  expect(R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}})",
         "the charsmap has 3 bytes and no trie");
  expect(R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "A?AA"}})",
         "character 1 of a text in base 64 is '?'");
  expect(R"({"added_tokens": [{"content": "x", "single_word": false, "lstrip": false, "rstrip": false,
              "normalized": false}]})",
         "added_tokens[0]: 'special' is missing");
  expect(R"({"post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "B", "type_id": 0}}],
              "pair": [], "special_tokens": {}}})",
         "post_processor.single[0]: the text 'B' must be 'A'");
  expect(R"({"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[X]", "type_id": 0}}],
              "pair": [], "special_tokens": {}}})",
         "post_processor.single[0]: '[X]' is not among the 'special_tokens'");
  EXPECT_THAT(complaint_about(R"({"model": {"vocab": []}})"), EndsWith("'vocab' must be an object of tokens and ids"));
}

TEST(RulesThatGoOnDoubling, EndWithAnError) {
  json document = json::parse(R"({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
                                  "normalizer": {"type": "Sequence", "normalizers": []},
                                  "decoder": {"type": "Sequence", "decoders": []}})");
  const json doubling = json::parse(R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})");
  for (int i = 0; i < 40; ++i) {
    document["normalizer"]["normalizers"].push_back(doubling);
    document["decoder"]["decoders"].push_back(doubling);
  }
  const Tokenizer tokenizer = tokenizer_of(document);
  EXPECT_THAT(error_of([&] { tokenizer.encode("a"); }), EndsWith(" bytes of 1: 1048640 are allowed"));
  EXPECT_THAT(error_of([&] { tokenizer.decode(std::vector<std::int64_t>{0}); }), EndsWith(" are allowed"));
}

TEST(CharactersWithoutAToken, AreAnError) {
  const Tokenizer words =
      tokenizer_of(json::parse(R"({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "<unk>"}})"));
  EXPECT_EQ(error_of([&] { words.encode("b"); }),
            "the text has 'b', and the vocabulary has neither that nor the token '<unk>' for unknown ones");
  const Tokenizer unigram = tokenizer_of(json::parse(R"({"model": {"type": "Unigram", "vocab": [["a", -1.5]]}})"));
  EXPECT_EQ(unigram.encode("aa").size(), 2U);
  EXPECT_EQ(error_of([&] { unigram.encode("ab"); }),
            "the text has 'b', for which the vocabulary has no token, and no 'unk_id'");
}

}  // namespace
}  // namespace vitrail::text
