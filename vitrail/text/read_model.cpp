#include <nlohmann/json.hpp>

#include "vitrail/tensor/error.h"
#include "vitrail/text/parts/bpe.h"
#include "vitrail/text/parts/unigram.h"
#include "vitrail/text/parts/wordlevel.h"
#include "vitrail/text/parts/wordpiece.h"
#include "vitrail/text/read_parts.h"

namespace vitrail::text {
namespace {

using ModelPointer = std::unique_ptr<const Model>;

Vocabulary read_vocabulary(io::Fields& fields) {
  const nlohmann::json& json = fields.raw("vocab");
  check(json.is_object(), "{}: 'vocab' must be an object of tokens and ids", fields.source());
  Vocabulary vocab(json.size());
  for (const auto& [token, id] : json.items()) {
    check(id.is_number_integer(), "{}: the id of the token '{}' must be a whole number", fields.source(), token);
    vocab.add(token, id.get<std::int64_t>());
  }
  return vocab;
}

// Pairs of tokens, or as in older files "a b" (and a first line with a version).
std::vector<std::pair<std::string, std::string>> read_merges(io::Fields& fields) {
  const nlohmann::json& json = fields.raw("merges");
  check(json.is_array(), "{}: 'merges' must be a list", fields.source());
  std::vector<std::pair<std::string, std::string>> merges;
  for (const nlohmann::json& merge : json) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    check(merge.is_string(), "{}: merge {} must be two tokens", fields.source(), merges.size());
    const auto& text = merge.get_ref<const std::string&>();
    if (text.starts_with("#version")) {
      continue;
    }
    const std::size_t space = text.find(' ');
    check(space != std::string::npos && text.find(' ', space + 1) == std::string::npos,
          "{}: merge {} is '{}', which is not two tokens with a space between", fields.source(), merges.size(), text);
    merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return merges;
}

ModelPointer read_bpe(io::Fields& fields) {
  BpeConfig config;
  config.vocab = read_vocabulary(fields);
  config.merges = read_merges(fields);
  config.unk_token = fields.optional<std::string>("unk_token");
  config.continuing_subword_prefix = fields.optional<std::string>("continuing_subword_prefix").value_or("");
  config.end_of_word_suffix = fields.optional<std::string>("end_of_word_suffix").value_or("");
  config.fuse_unk = fields.optional<bool>("fuse_unk").value_or(false);
  config.byte_fallback = fields.optional<bool>("byte_fallback").value_or(false);
  config.ignore_merges = fields.optional<bool>("ignore_merges").value_or(false);
  const double dropout = fields.optional<double>("dropout").value_or(0.0);
  check(dropout == 0.0, "{}: 'dropout' is {}, with which every encoding would be another; it must be 0 or null",
        fields.source(), dropout);
  return make_bpe(std::move(config));
}

ModelPointer read_wordpiece(io::Fields& fields) {
  WordPieceConfig config;
  config.vocab = read_vocabulary(fields);
  config.unk_token = fields.get<std::string>("unk_token");
  config.continuing_subword_prefix = fields.get<std::string>("continuing_subword_prefix");
  config.max_input_chars_per_word =
      static_cast<std::size_t>(fields.get<std::int64_t>("max_input_chars_per_word", io::Range{0, 1e6}));
  return make_wordpiece(std::move(config));
}

ModelPointer read_wordlevel(io::Fields& fields) {
  Vocabulary vocab = read_vocabulary(fields);
  return make_wordlevel(std::move(vocab), fields.get<std::string>("unk_token"));
}

ModelPointer read_unigram(io::Fields& fields) {
  const nlohmann::json& json = fields.raw("vocab");
  check(json.is_array(), "{}: 'vocab' must be a list of tokens with their scores", fields.source());
  UnigramConfig config;
  for (const nlohmann::json& entry : json) {
    check(entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number(),
          "{}: token {} of 'vocab' must be a pair of a token and its score", fields.source(), config.vocab.size());
    config.vocab.emplace_back(entry[0].get<std::string>(), entry[1].get<double>());
  }
  if (const auto id = fields.optional<std::int64_t>("unk_id", io::at_least(0))) {
    config.unk_id = static_cast<std::size_t>(*id);
  }
  config.byte_fallback = fields.optional<bool>("byte_fallback").value_or(false);
  return make_unigram(std::move(config));
}

// The kind of a model; files of before version 0.8 do not say it.
std::string kind_of(const Part& part) {
  io::Fields fields(part.json, part.place);
  if (fields.kind("type") != io::Kind::absent) {
    return type_of(part);
  }
  return fields.kind("merges") != io::Kind::absent                      ? "BPE"
         : fields.kind("continuing_subword_prefix") != io::Kind::absent ? "WordPiece"
         : fields.kind("vocab") == io::Kind::list                       ? "Unigram"
                                                                        : "WordLevel";
}

}  // namespace

std::pair<std::string, ModelPointer> read_model(const Part& part) {
  io::Fields fields(part.json, part.place);
  const std::string kind = kind_of(part);
  fields.ignore("type");
  ModelPointer model;
  if (kind == "BPE") {
    model = read_bpe(fields);
  } else if (kind == "WordPiece") {
    model = read_wordpiece(fields);
  } else if (kind == "WordLevel") {
    model = read_wordlevel(fields);
  } else if (kind == "Unigram") {
    model = read_unigram(fields);
  } else {
    fail_unknown(part, kind, {"BPE", "Unigram", "WordLevel", "WordPiece"});
  }
  fields.finish();
  return {kind, std::move(model)};
}

}  // namespace vitrail::text
