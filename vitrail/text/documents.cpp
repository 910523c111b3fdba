#include "vitrail/text/documents.h"

#include <utility>

namespace vitrail::text {

using nlohmann::json;

json empty_document(json model) {
  return {{"version", "1.0"},          {"truncation", nullptr},
          {"padding", nullptr},        {"added_tokens", json::array()},
          {"normalizer", nullptr},     {"pre_tokenizer", nullptr},
          {"post_processor", nullptr}, {"decoder", nullptr},
          {"model", std::move(model)}};
}

json added_token(const std::string& content, std::int64_t id, bool lstrip) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", lstrip},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

json byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", trim_offsets},
          {"use_regex", use_regex}};
}

json bert_document(json vocab, bool lowercase, bool split_ideographs, std::optional<bool> strip_accents) {
  json document = empty_document({{"type", "WordPiece"},
                                  {"unk_token", "[UNK]"},
                                  {"continuing_subword_prefix", "##"},
                                  {"max_input_chars_per_word", 100},
                                  {"vocab", std::move(vocab)}});
  document["normalizer"] = {{"type", "BertNormalizer"},
                            {"clean_text", true},
                            {"handle_chinese_chars", split_ideographs},
                            {"strip_accents", strip_accents ? json(*strip_accents) : json()},
                            {"lowercase", lowercase}};
  document["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  document["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  return document;
}

json bert_template(const json& vocab) {
  const auto text = [](const char* name, int type) { return json{{"Sequence", {{"id", name}, {"type_id", type}}}}; };
  const auto token = [](const char* name, int type) {
    return json{{"SpecialToken", {{"id", name}, {"type_id", type}}}};
  };
  json special = json::object();
  for (const char* name : {"[CLS]", "[SEP]"}) {
    special[name] = {{"id", name}, {"ids", json::array({vocab.at(name)})}, {"tokens", json::array({name})}};
  }
  return {{"type", "TemplateProcessing"},
          {"single", json::array({token("[CLS]", 0), text("A", 0), token("[SEP]", 0)})},
          {"pair", json::array({token("[CLS]", 0), text("A", 0), token("[SEP]", 0), text("B", 1), token("[SEP]", 1)})},
          {"special_tokens", special}};
}

}  // namespace vitrail::text
