#include "vitrail/text/older_layouts.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/documents.h"
#include "vitrail/text/parts/vocabulary.h"
#include "vitrail/text/sentencepiece_file.h"
#include "vitrail/text/strings/unicode.h"
#include "vitrail/text/tokenizer_config.h"

namespace vitrail::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t longest_piece = 1 << 9;              // bytes; sentencepiece makes none of more than 16 characters
constexpr std::size_t most_merged = std::size_t{1} << 28;  // bytes of all merges

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

json read_merges(const fs::path& file, const json& vocab) {
  json merges = json::array();
  std::size_t number = 0;
  for (const std::string& line : lines_in(file)) {
    ++number;
    if (line.empty() || line.starts_with("#version")) {
      continue;
    }
    const std::size_t space = line.find(' ');
    check(space != std::string::npos && line.find(' ', space + 1) == std::string::npos,
          "{}: line {}: '{}' is not two tokens with a space between", file.string(), number, line);
    const std::string left = line.substr(0, space);
    const std::string right = line.substr(space + 1);
    for (const std::string& token : {left, right, left + right}) {
      check(vocab.contains(token), "{}: line {}: '{}' needs the token '{}', which is not in vocab.json", file.string(),
            number, line, token);
    }
    merges.push_back(line);
  }
  return merges;
}

// The pairs that are joined to a piece, those that give the earliest piece first, and of one piece those with the
// shorter left one (generate_merges() of transformers' tokenization_utils_base.py).
json merges_of_pieces(const std::vector<std::string>& pieces, const std::vector<bool>& joined, const fs::path& file) {
  std::set<std::string_view> known;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (joined[i]) {
      known.insert(pieces[i]);
    }
  }
  json merges = json::array();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::string_view piece = pieces[i];
    for (std::size_t at = 1; joined[i] && at < piece.size(); ++at) {
      const std::string_view left = piece.substr(0, at);
      const std::string_view right = piece.substr(at);
      if (known.contains(left) && known.contains(right)) {
        bytes += piece.size();
        check(bytes <= most_merged, "{}: its pieces are joined in too many ways", file.string());
        merges.push_back({std::string(left), std::string(right)});
      }
    }
  }
  return merges;
}

// A token and its id.
using NamedToken = std::pair<std::string, std::int64_t>;

// A template with a token in front of each text and one behind it, where they are.
json template_of(const std::optional<NamedToken>& begin, const std::optional<NamedToken>& end) {
  json special = json::object();
  const auto around = [&](const char* text, int type) {
    json parts = json::array();
    const auto put = [&](const auto& token) {
      if (token) {
        const auto& name = token->first;
        parts.push_back({{"SpecialToken", {{"id", name}, {"type_id", type}}}});
        special[name] = {{"id", name}, {"ids", json::array({token->second})}, {"tokens", json::array({name})}};
      }
    };
    put(begin);
    parts.push_back({{"Sequence", {{"id", text}, {"type_id", type}}}});
    put(end);
    return parts;
  };
  const json single = around("A", 0);
  json pair = single;
  for (const json& part : around("B", 1)) {
    pair.push_back(part);
  }
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special}};
}

// The token that begins or ends a text, which tokenizer_config.json may name otherwise than `usual`, if "add_bos_token"
// or "add_eos_token" there wants it, or else `wanted`.
std::optional<NamedToken> token_around(const json& document, const ConfigFile& config, const std::string& end,
                                       const std::string& usual, bool wanted) {
  if (!config.get("add_" + end + "_token", wanted)) {
    return std::nullopt;
  }
  const std::string key = end + "_token";
  const std::string name = config.token(key, usual);
  const json& added = document["added_tokens"];
  const auto found = std::ranges::find_if(added, [&](const json& one) { return one["content"] == name; });
  check(found != added.end(), "{}: '{}' is '{}', which is no special token", config.source(), key, name);
  return NamedToken(name, (*found)["id"].get<std::int64_t>());
}

// The class of a tokenizer of vocab.json and merges.txt: as the folder says, or else as its vocabulary looks.
std::string byte_level_class(const fs::path& folder, const json& vocab) {
  const std::string kind = tokenizer_class_of(folder);
  constexpr std::array known = {"CLIPTokenizer", "GPT2Tokenizer", "Qwen2Tokenizer", "RobertaTokenizer"};
  if (std::ranges::find(known, kind) != known.end()) {
    return kind;
  }
  if (vocab.contains("<|startoftext|>") && vocab.contains("<|endoftext|>")) {
    return "CLIPTokenizer";
  }
  return vocab.contains("<s>") && vocab.contains("</s>") && vocab.contains("<mask>") ? "RobertaTokenizer"
                                                                                     : "GPT2Tokenizer";
}

// What cuts a text into words in Qwen2Tokenizer.
constexpr const char* qwen2_words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

json byte_level_bpe_document(const fs::path& folder) {
  const fs::path file = folder / "vocab.json";
  const json vocab = io::read_json(file);
  check(vocab.is_object(), "{}: it must be an object of tokens and ids", file.string());
  const json merges = read_merges(folder / "merges.txt", vocab);
  const std::string kind = byte_level_class(folder, vocab);
  const auto id_of = [&](const std::string& token) { return id_in(vocab, token, file); };
  if (kind == "CLIPTokenizer") {
    for (const char* token : {"<|startoftext|>", "<|endoftext|>"}) {
      id_of(token);
    }
    return with_tokens_beside(clip_document(vocab, merges), folder);
  }
  json document = empty_document({{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}});
  const ConfigFile config = tokenizer_config(folder);
  const bool prefix = config.get("add_prefix_space", false);
  document["pre_tokenizer"] = byte_level(prefix, true);
  document["decoder"] = byte_level(true, true);
  const auto add = [&](const char* token, bool lstrip = false) {
    if (vocab.contains(token)) {
      document["added_tokens"].push_back(added_token(token, id_of(token), lstrip));
    }
  };
  if (kind == "RobertaTokenizer") {
    for (const char* token : {"<s>", "<pad>", "</s>", "<unk>"}) {
      add(token);
    }
    add("<mask>", true);
    document["post_processor"] = {{"type", "RobertaProcessing"},
                                  {"sep", {"</s>", id_of("</s>")}},
                                  {"cls", {"<s>", id_of("<s>")}},
                                  {"trim_offsets", true},
                                  {"add_prefix_space", prefix}};
    return with_tokens_beside(std::move(document), folder);
  }
  if (kind == "Qwen2Tokenizer") {
    document["normalizer"] = {{"type", "NFC"}};
    const json split = {
        {"type", "Split"}, {"pattern", {{"Regex", qwen2_words}}}, {"behavior", "Isolated"}, {"invert", false}};
    document["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, byte_level(prefix, true, false)}}};
  }
  const char* const text_end = "<|endoftext|>";
  add(text_end);
  document = with_tokens_beside(std::move(document), folder);
  const auto begin = token_around(document, config, "bos", text_end, false);
  const auto end = token_around(document, config, "eos", text_end, false);
  document["post_processor"] = begin || end ? template_of(begin, end) : byte_level(true, false);
  return document;
}

json wordpiece_document(const fs::path& file) {
  json vocab = json::object();
  std::int64_t id = 0;
  for (const std::string& line : lines_in(file)) {
    check(vocab.emplace(line, id++).second, "{}: line {}: the token '{}' is there twice", file.string(), id, line);
  }
  const ConfigFile config = tokenizer_config(file.parent_path());
  const std::string unknown = config.token("unk_token", "[UNK]");
  const std::string begin = config.token("cls_token", "[CLS]");
  const std::string end = config.token("sep_token", "[SEP]");
  for (const std::string& token : {unknown, begin, end}) {
    check(vocab.contains(token), "{}: the token '{}' is missing", file.string(), token);
  }
  json document = bert_document(vocab, config.get("do_lower_case", true), config.get("tokenize_chinese_chars", true),
                                config.optional<bool>("strip_accents"));
  document["model"]["unk_token"] = unknown;
  for (const std::string& token :
       {config.token("pad_token", "[PAD]"), unknown, begin, end, config.token("mask_token", "[MASK]")}) {
    if (vocab.contains(token)) {
      document["added_tokens"].push_back(added_token(token, vocab[token].get<std::int64_t>()));
    }
  }
  document["post_processor"] = bert_template(vocab, begin, end);
  return with_tokens_beside(std::move(document), file.parent_path());
}

json llama_document(std::string_view bytes, const fs::path& file) {
  check_sentencepiece(bytes, file.string());
  std::vector<std::string> pieces;
  std::vector<bool> joined;
  json vocab = json::object();
  json added = json::array();
  json unknown;
  for (const auto& [piece, kind] : sentencepieces_in(bytes, file.string())) {
    const auto id = std::ssize(pieces);
    const std::string place = fmt::format("{}: piece {}", file.string(), id);
    check(!piece.empty() && piece.size() <= longest_piece, "{} has {} bytes, expected 1 to {}", place, piece.size(),
          longest_piece);
    check_utf8(piece, place);
    const bool special = kind == PieceKind::control || kind == PieceKind::unknown;
    pieces.push_back(piece);
    joined.push_back(!special && kind != PieceKind::byte);
    check(vocab.emplace(piece, id).second, "{}: the token '{}' is there twice", file.string(), piece);
    if (special || kind == PieceKind::user_defined) {
      added.push_back(added_token(piece, id));
      added.back()["special"] = special;
    }
    if (kind == PieceKind::unknown) {
      unknown = piece;
    }
  }
  json document = empty_document({{"type", "BPE"},
                                  {"unk_token", unknown},
                                  {"fuse_unk", true},
                                  {"byte_fallback", true},
                                  {"vocab", vocab},
                                  {"merges", merges_of_pieces(pieces, joined, file)}});
  document["added_tokens"] = std::move(added);
  const ConfigFile config = tokenizer_config(file.parent_path());
  const bool prefix = config.get("add_prefix_space", true);
  document["pre_tokenizer"] = {{"type", "Metaspace"},
                               {"replacement", "▁"},
                               {"prepend_scheme", !prefix                       ? "never"
                                                  : config.get("legacy", false) ? "always"
                                                                                : "first"},
                               {"split", false}};
  json decoders = {{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
                   {{"type", "ByteFallback"}},
                   {{"type", "Fuse"}}};
  if (prefix) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  document["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
  document = with_tokens_beside(std::move(document), file.parent_path());
  document["post_processor"] = template_of(token_around(document, config, "bos", "<s>", true),
                                           token_around(document, config, "eos", "</s>", false));
  return document;
}

}  // namespace vitrail::text
