#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/tensor/error.h"
#include "vitrail/text/parts/vocabulary.h"
#include "vitrail/text/read_parts.h"

namespace vitrail::text {
namespace {

// ["[SEP]", 102]
SpecialToken read_special(io::Fields& fields, const std::string& key) {
  const nlohmann::json& pair = fields.raw(key);
  check(pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_number_integer() &&
            pair[1].get<std::int64_t>() >= 0,
        "{}: '{}' must be a token and its id", fields.source(), key);
  return {pair[0].get<std::string>(), pair[1].get<std::int64_t>()};
}

// {"Sequence": {"id": "A", "type_id": 0}} or {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
TemplateProcessing::Piece read_piece(const Part& part, const std::map<std::string, std::vector<SpecialToken>>& special,
                                     bool pair) {
  io::Fields fields(part.json, part.place);
  TemplateProcessing::Piece piece;
  const bool is_text = fields.kind("Sequence") != io::Kind::absent;
  io::Fields inner = fields.object(is_text ? "Sequence" : "SpecialToken");
  fields.finish();
  piece.type_id = inner.get<std::int64_t>("type_id", io::Range{0, 1e9});
  const auto id = inner.get<std::string>("id");
  inner.finish();
  if (is_text) {
    check(id == "A" || (id == "B" && pair), "{}: the text '{}' must be 'A'{}", part.place, id, pair ? " or 'B'" : "");
    piece.text = id == "A" ? 0 : 1;
  } else {
    const auto found = special.find(id);
    check(found != special.end(), "{}: '{}' is not among the 'special_tokens'", part.place, id);
    piece.special = found->second;
  }
  return piece;
}

std::map<std::string, std::vector<SpecialToken>> read_specials(io::Fields fields, const nlohmann::json& json) {
  std::map<std::string, std::vector<SpecialToken>> result;
  for (const auto& [name, value] : json.items()) {
    io::Fields entry = fields.object(name);
    entry.ignore("id");
    const auto ids = entry.get<std::vector<std::int64_t>>("ids", io::Range{0, static_cast<double>(largest_id)});
    const auto tokens = entry.get<std::vector<std::string>>("tokens");
    entry.finish();
    check(ids.size() == tokens.size() && !ids.empty(), "{}: '{}' has {} ids and {} tokens", fields.source(), name,
          ids.size(), tokens.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      result[name].push_back({tokens[i], ids[i]});
    }
  }
  return result;
}

std::vector<TemplateProcessing::Piece> read_template(io::Fields& fields, const std::string& key,
                                                     const std::map<std::string, std::vector<SpecialToken>>& special) {
  const nlohmann::json& list = fields.raw(key);
  check(list.is_array() && list.size() <= 100, "{}: '{}' must be a list of at most 100 pieces", fields.source(), key);
  std::vector<TemplateProcessing::Piece> pieces;
  for (std::size_t i = 0; i < list.size(); ++i) {
    pieces.push_back(read_piece({list[i], fmt::format("{}.{}[{}]", fields.source(), key, i)}, special, key == "pair"));
  }
  return pieces;
}

PostProcessor read_post_processor(const Part& part) {
  io::Fields fields(part.json, part.place);
  const std::string type = type_of(part);
  fields.ignore("type");
  const auto finished = [&](PostProcessor processor) {
    fields.finish();
    return processor;
  };
  if (type == "ByteLevel") {
    fields.ignore("use_regex");  // means something where it stands among the pre-tokenizers
    return finished(TrimOffsets{fields.get<bool>("trim_offsets"), fields.get<bool>("add_prefix_space")});
  }
  if (type == "BertProcessing") {
    return finished(BertProcessing{read_special(fields, "sep"), read_special(fields, "cls")});
  }
  if (type == "RobertaProcessing") {
    return finished(RobertaProcessing{read_special(fields, "sep"),
                                      read_special(fields, "cls"),
                                      {fields.get<bool>("trim_offsets"), fields.get<bool>("add_prefix_space")}});
  }
  if (type == "TemplateProcessing") {
    const auto special = read_specials(fields.object("special_tokens"), fields.raw("special_tokens"));
    TemplateProcessing processing;
    processing.single = read_template(fields, "single", special);
    processing.pair = read_template(fields, "pair", special);
    return finished(std::move(processing));
  }
  fail_unknown(part, type, {"BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence", "TemplateProcessing"});
}

}  // namespace

std::vector<PostProcessor> read_post_processors(const Part& part) {
  std::vector<PostProcessor> processors;
  for (const Part& member : members_of(part, "processors")) {
    processors.push_back(read_post_processor(member));
  }
  return processors;
}

}  // namespace vitrail::text
