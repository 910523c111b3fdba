#include "vitrail/text/documents.h"

#include <utility>

namespace vitrail::text {

using nlohmann::json;

namespace {
constexpr const char* clip_start = "<|startoftext|>";
constexpr const char* clip_end = "<|endoftext|>";
}  // namespace

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

json bert_template(const json& vocab, const std::string& cls, const std::string& sep) {
  const auto text = [](const char* name, int type) { return json{{"Sequence", {{"id", name}, {"type_id", type}}}}; };
  const auto token = [](const std::string& name, int type) {
    return json{{"SpecialToken", {{"id", name}, {"type_id", type}}}};
  };
  json special = json::object();
  for (const std::string& name : {cls, sep}) {
    special[name] = {{"id", name}, {"ids", json::array({vocab.at(name)})}, {"tokens", json::array({name})}};
  }
  return {{"type", "TemplateProcessing"},
          {"single", json::array({token(cls, 0), text("A", 0), token(sep, 0)})},
          {"pair", json::array({token(cls, 0), text("A", 0), token(sep, 0), text("B", 1), token(sep, 1)})},
          {"special_tokens", special}};
}

json clip_decoder() {
  return {{"type", "Sequence"},
          {"decoders",
           {byte_level(true, true),
            {{"type", "Replace"}, {"pattern", {{"String", "</w>"}}}, {"content", " "}},
            {{"type", "Strip"}, {"content", " "}, {"start", 0}, {"stop", 1}}}}};
}

json clip_document(json vocab, json merges) {
  const json start = vocab.at(clip_start);
  const json end = vocab.at(clip_end);
  json document = empty_document({{"type", "BPE"},
                                  {"unk_token", clip_end},
                                  {"continuing_subword_prefix", ""},
                                  {"end_of_word_suffix", "</w>"},
                                  {"fuse_unk", false},
                                  {"vocab", std::move(vocab)},
                                  {"merges", std::move(merges)}});
  document["normalizer"] = {{"type", "Sequence"},
                            {"normalizers",
                             {{{"type", "NFC"}},
                              {{"type", "Replace"}, {"pattern", {{"Regex", "\\s+"}}}, {"content", " "}},
                              {{"type", "Lowercase"}}}}};
  document["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"},
         {"pattern",
          {{"Regex",
            R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)"}}},
         {"behavior", "Removed"},
         {"invert", true}},
        byte_level(false, true)}}};
  document["post_processor"] = {{"type", "RobertaProcessing"},
                                {"sep", {clip_end, end}},
                                {"cls", {clip_start, start}},
                                {"trim_offsets", false},
                                {"add_prefix_space", false}};
  document["decoder"] = clip_decoder();
  document["added_tokens"] = {added_token(clip_start, start), added_token(clip_end, end)};
  return document;
}

std::string clip_tokenizer_config(std::int64_t model_max_length) {
  const json config = {{"tokenizer_class", "CLIPTokenizer"},
                       {"bos_token", clip_start},
                       {"eos_token", clip_end},
                       {"pad_token", clip_end},
                       {"unk_token", clip_end},
                       {"model_max_length", model_max_length}};
  return config.dump(2) + "\n";
}

}  // namespace vitrail::text
