// Which of the layouts a folder has, and tokenizers that are made of a corpus.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/documents.h"
#include "vitrail/text/older_layouts.h"
#include "vitrail/text/sentencepiece.h"
#include "vitrail/text/sentencepiece_file.h"
#include "vitrail/text/strings/byte_alphabet.h"
#include "vitrail/text/strings/unicode.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/text/tokenizer_config.h"
#include "vitrail/text/tokenizer_json.h"
#include "vitrail/text/unknown.h"

namespace vitrail::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The tokenizer_config.json beside a file; empty if there is none.
std::string config_beside(const fs::path& file) {
  const fs::path config = file.parent_path() / "tokenizer_config.json";
  return fs::exists(config) ? io::read_text(config) : "";
}

// The same beside an older layout, whose special tokens special_tokens_map.json may name.
std::string config_with_map(const fs::path& file) {
  const std::string own = config_beside(file);
  const fs::path map = file.parent_path() / "special_tokens_map.json";
  json config =
      own.empty() ? json({{"tokenizer_class", "PreTrainedTokenizerFast"}}) : io::parse_json(own, file.string());
  const json names = fs::exists(map) ? io::read_json(map) : json();
  if (!names.is_object() || !config.is_object() || config.contains("added_tokens_decoder")) {
    return own;
  }
  config.update(names);
  return config.dump(2) + "\n";
}

Tokenizer from_document(const json& document, const std::string& source, std::string config = {}) {
  Pipeline pipeline = make_pipeline(document, source);
  pipeline.config = std::move(config);
  return Tokenizer(make_engine(std::move(pipeline)));
}

Tokenizer load_file(const fs::path& file) {
  const std::string extension = file.extension().string();
  if (extension == ".model" || extension == ".spm") {
    const std::string kind = tokenizer_class_in(file.parent_path());
    if (kind == "SiglipTokenizer") {
      return Tokenizer(read_siglip(file, config_beside(file)));
    }
    const std::string bytes = kind == "LlamaTokenizer" ? io::read_text(file) : "";
    if (!bytes.empty() && is_sentencepiece_bpe(bytes, file.string())) {
      return from_document(llama_document(bytes, file), file.string(), config_with_map(file));
    }
    return Tokenizer(read_sentencepiece(file));
  }
  if (extension == ".txt") {
    return from_document(wordpiece_document(file), file.string(), config_with_map(file));
  }
  std::string text = io::read_text(file);
  json document = io::parse_json(text, file.string());
  if (obey_files_beside(document, file.parent_path())) {
    text.clear();
  }
  Pipeline pipeline = make_pipeline(document, file.string(), std::move(text));
  pipeline.config = config_beside(file);
  pipeline.splits_special_tokens = tokenizer_config(file.parent_path()).get("split_special_tokens", false);
  return Tokenizer(make_engine(std::move(pipeline)));
}

}  // namespace

Tokenizer load_tokenizer(const fs::path& path) {
  if (!fs::is_directory(path)) {
    return load_file(path);
  }
  const auto has = [&](const char* name) { return fs::is_regular_file(path / name); };
  if (has("tokenizer.json")) {
    return load_file(path / "tokenizer.json");
  }
  if (has("source.spm") && has("target.spm") && has("vocab.json")) {
    return Tokenizer(read_marian(path));
  }
  if (has("vocab.json") && has("merges.txt")) {
    const fs::path vocab = path / "vocab.json";
    return from_document(byte_level_bpe_document(path), vocab.string(), config_with_map(vocab));
  }
  for (const char* name : {"vocab.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model"}) {
    if (has(name)) {
      return load_file(path / name);
    }
  }
  fail(
      "{}: no tokenizer is there: neither tokenizer.json, nor source.spm, target.spm and vocab.json, nor vocab.json "
      "and "
      "merges.txt, nor vocab.txt, tokenizer.model, spiece.model or sentencepiece.bpe.model",
      path.string());
}

std::optional<Tokenizer> tokenizer_in(const fs::path& folder) {
  try {
    return load_tokenizer(folder);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool have_the_same_tokens(const Tokenizer& a, const Tokenizer& b) {
  if (a.kind() != b.kind() || a.vocab_size() != b.vocab_size()) {
    return false;
  }
  for (std::int64_t id = 0; id < a.vocab_size(); ++id) {
    if (a.has(id) != b.has(id) || (a.has(id) && a.token_of(id) != b.token_of(id))) {
      return false;
    }
  }
  return true;
}

Tokenizer load_target_tokenizer(const fs::path& path) {
  const bool is_marian = fs::exists(path / "target.spm") && !fs::exists(path / "tokenizer.json");
  return is_marian ? Tokenizer(read_marian_target(path)) : load_tokenizer(path);
}

Tokenizer char_tokenizer(std::string_view corpus) {
  check_utf8(corpus, "the corpus");
  std::set<char32_t> characters;
  for_each_code_point(corpus, [&](char32_t c, std::size_t) { characters.insert(c); });
  check(!characters.empty(), "the corpus is empty, so that there are no characters to tell apart");
  json vocab = json::object();
  std::int64_t id = 0;
  for (const char32_t c : characters) {
    vocab[to_utf8(c)] = id++;
  }
  vocab["[UNK]"] = id;
  json document = empty_document({{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "[UNK]"}});
  document["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(?m:.)"}}}, {"behavior", "Isolated"}, {"invert", false}};
  document["decoder"] = {{"type", "Fuse"}};
  return from_document(document, "the tokenizer of characters");
}

Tokenizer word_tokenizer(std::span<const std::string> texts, std::int64_t most, const Tokenizer* grown) {
  const std::vector<std::string> specials = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
  json vocab = json::object();
  for (const std::string& special : specials) {
    vocab[special] = vocab.size();
  }
  if (grown != nullptr) {
    const bool lowers = grown->encode("A").ids == grown->encode("a").ids;
    for (std::int64_t id = 0; id < grown->vocab_size(); ++id) {
      const bool fits = grown->has(id) && (id >= std::ssize(specials) ? !vocab.contains(grown->token_of(id))
                                                                      : grown->token_of(id) == specials[id]);
      check(fits && lowers && grown->kind() == "WordLevel",
            "the tokenizer is not one of words, to which others could be added");
      vocab[grown->token_of(id)] = id;
    }
  }
  const auto known = std::ssize(vocab);
  const auto document_of = [&] {
    json document = empty_document({{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "[UNK]"}});
    for (const std::string& special : specials) {
      document["added_tokens"].push_back(added_token(special, vocab.at(special).get<std::int64_t>()));
    }
    document["normalizer"] = {{"type", "Lowercase"}};
    document["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
    document["post_processor"] = bert_template(vocab);
    return document;
  };
  // The words are where this tokenizer, which does not know them yet, finds tokens.
  const Tokenizer cuts = from_document(document_of(), "the tokenizer of words");
  std::map<std::string, std::int64_t> counts;
  for (const std::string& text : texts) {
    for (const std::string& word : unknown_words(cuts, text)) {
      std::string lower;
      for_each_code_point(word, [&](char32_t c, std::size_t) { append_utf8(lower, lowercase(c)); });
      ++counts[lower];
    }
  }
  std::vector<std::pair<std::string, std::int64_t>> words(counts.begin(), counts.end());
  std::ranges::stable_sort(words, std::greater{}, &std::pair<std::string, std::int64_t>::second);
  for (const auto& [word, count] : words) {
    if (most > 0 && std::ssize(vocab) >= most + known) {
      break;
    }
    vocab.emplace(word, vocab.size());
  }
  return from_document(document_of(), "the tokenizer of words");
}

Tokenizer marian_tokenizer(const fs::path& sentencepiece_file) {
  return Tokenizer(make_marian(io::read_text(sentencepiece_file), sentencepiece_file.string()));
}

Tokenizer byte_tokenizer() {
  json vocab = json::object();
  for (unsigned byte = 0; byte < 256; ++byte) {
    vocab[to_utf8(character_of_byte(static_cast<unsigned char>(byte)))] = byte;
  }
  json document = empty_document({{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}});
  document["pre_tokenizer"] = byte_level(false, false, false);
  document["decoder"] = byte_level(false, false, false);
  return from_document(document, "the tokenizer of bytes");
}

}  // namespace vitrail::text
