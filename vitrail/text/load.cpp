// Which of the layouts a folder has, and the older ones as the tokenizer.json that means the same.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/documents.h"
#include "vitrail/text/sentencepiece.h"
#include "vitrail/text/strings/byte_alphabet.h"
#include "vitrail/text/strings/unicode.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/text/tokenizer_json.h"
#include "vitrail/text/unknown.h"

namespace vitrail::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::int64_t id_in(const json& vocab, const std::string& token, const fs::path& file) {
  const json& id = vocab.at(token);
  check(id.is_number_integer(), "{}: the id of the token '{}' must be a whole number", file.string(), token);
  return id.get<std::int64_t>();
}

// The switches of tokenizer_config.json that matter here; the file may be missing, and has much else.
class Switches {
 public:
  explicit Switches(const fs::path& folder) {
    const fs::path file = folder / "tokenizer_config.json";
    if (fs::exists(file)) {
      json_ = io::read_json(file);
      source_ = file.string();
    }
  }
  bool get(const std::string& key, bool fallback) const {
    return io::Fields(json_, source_).optional<bool>(key).value_or(fallback);
  }
  std::string tokenizer_class() const {
    return io::Fields(json_, source_).optional<std::string>("tokenizer_class").value_or("");
  }
  std::optional<bool> optional(const std::string& key) const { return io::Fields(json_, source_).optional<bool>(key); }

 private:
  json json_ = json::object();
  std::string source_;
};

std::vector<std::string> lines_in(const fs::path& file) {
  std::istringstream text(io::read_text(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) {
      line.pop_back();
    }
    lines.push_back(std::move(line));
  }
  check_utf8(text.view(), file.string());
  return lines;
}

// GPT-2's vocab.json and merges.txt, or RoBERTa's, which has other special tokens, or CLIP's (GPT2Converter,
// RobertaConverter and CLIPConverter of transformers' convert_slow_tokenizer.py).
json read_byte_level_bpe(const fs::path& folder) {
  const json vocab = io::read_json(folder / "vocab.json");
  const Switches switches(folder);
  json document = empty_document({{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}});
  for (const std::string& line : lines_in(folder / "merges.txt")) {
    if (!line.empty() && !line.starts_with("#version")) {
      document["model"]["merges"].push_back(line);
    }
  }
  if (vocab.is_object() && vocab.contains("<|startoftext|>") && vocab.contains("<|endoftext|>")) {
    return clip_document(vocab, document["model"]["merges"]);
  }
  const bool prefix = switches.get("add_prefix_space", false);
  document["pre_tokenizer"] = byte_level(prefix, true);
  document["decoder"] = byte_level(true, true);
  const auto has = [&](const std::string& token) { return vocab.is_object() && vocab.contains(token); };
  const auto id_of = [&](const std::string& token) { return id_in(vocab, token, folder / "vocab.json"); };
  if (has("<s>") && has("</s>") && has("<mask>")) {
    for (const char* token : {"<s>", "<pad>", "</s>", "<unk>"}) {
      if (has(token)) {
        document["added_tokens"].push_back(added_token(token, id_of(token)));
      }
    }
    document["added_tokens"].push_back(added_token("<mask>", id_of("<mask>"), true));
    document["post_processor"] = {{"type", "RobertaProcessing"},
                                  {"sep", {"</s>", id_of("</s>")}},
                                  {"cls", {"<s>", id_of("<s>")}},
                                  {"trim_offsets", true},
                                  {"add_prefix_space", prefix}};
  } else {
    document["post_processor"] = byte_level(true, false);
    if (has("<|endoftext|>")) {
      document["added_tokens"].push_back(added_token("<|endoftext|>", id_of("<|endoftext|>")));
    }
  }
  return document;
}

// BERT's vocab.txt, a token a line (BertConverter).
json read_wordpiece_lines(const fs::path& file) {
  json vocab = json::object();
  std::int64_t id = 0;
  for (const std::string& line : lines_in(file)) {
    check(vocab.emplace(line, id++).second, "{}: line {}: the token '{}' is there twice", file.string(), id, line);
  }
  for (const char* token : {"[UNK]", "[CLS]", "[SEP]"}) {
    check(vocab.contains(token), "{}: the token '{}' is missing", file.string(), token);
  }
  const Switches switches(file.parent_path());
  json document = bert_document(vocab, switches.get("do_lower_case", true),
                                switches.get("tokenize_chinese_chars", true), switches.optional("strip_accents"));
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    if (vocab.contains(token)) {
      document["added_tokens"].push_back(added_token(token, vocab[token].get<std::int64_t>()));
    }
  }
  document["post_processor"] = bert_template(vocab);
  return document;
}

// The tokenizer_config.json beside a file; empty if there is none.
std::string config_beside(const fs::path& file) {
  const fs::path config = file.parent_path() / "tokenizer_config.json";
  return fs::exists(config) ? io::read_text(config) : "";
}

Tokenizer from_document(const json& document, const std::string& source, std::string config = {}) {
  Pipeline pipeline = make_pipeline(document, source);
  pipeline.config = std::move(config);
  return Tokenizer(make_engine(std::move(pipeline)));
}

Tokenizer load_file(const fs::path& file) {
  const std::string extension = file.extension().string();
  if (extension == ".model" || extension == ".spm") {
    const Switches switches(file.parent_path());
    return Tokenizer(switches.tokenizer_class() == "SiglipTokenizer" ? read_siglip(file, config_beside(file))
                                                                     : read_sentencepiece(file));
  }
  if (extension == ".txt") {
    return from_document(read_wordpiece_lines(file), file.string(), config_beside(file));
  }
  Pipeline pipeline = read_pipeline(io::read_text(file), file.string());
  pipeline.config = config_beside(file);
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
    return from_document(read_byte_level_bpe(path), vocab.string(), config_beside(vocab));
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
