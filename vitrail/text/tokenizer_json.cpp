#include "vitrail/text/tokenizer_json.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/json.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/parts/vocabulary.h"
#include "vitrail/text/read_parts.h"

namespace vitrail::text {
namespace {

constexpr double longest = 1 << 17;  // tokens to which a file may have texts padded

Side read_side(io::Fields& fields, const std::string& fallback) {
  return fields.choice("direction", fallback, {"Left", "Right"}) == "Left" ? Side::left : Side::right;
}

Truncation read_truncation(io::Fields fields) {
  Truncation truncation;
  truncation.max_length = fields.get<std::int64_t>("max_length", io::Range{0, 1e12});
  truncation.side = read_side(fields, "Right");
  const std::string strategy = fields.choice("strategy", "LongestFirst", {"LongestFirst", "OnlyFirst", "OnlySecond"});
  using enum Truncation::Strategy;
  truncation.strategy = strategy == "LongestFirst" ? longest_first : strategy == "OnlyFirst" ? only_first : only_second;
  fields.ignore("stride");  // of what is cut off, which is lost here
  fields.finish();
  return truncation;
}

Padding read_padding(io::Fields fields) {
  Padding padding;
  if (fields.kind("strategy") == io::Kind::object) {
    io::Fields strategy = fields.object("strategy");
    padding.length = strategy.get<std::int64_t>("Fixed", io::Range{0, longest});
    strategy.finish();
  } else {
    fields.choice("strategy", "BatchLongest", {"BatchLongest"});
  }
  padding.side = read_side(fields, "Right");
  padding.multiple_of =
      std::max<std::int64_t>(fields.optional<std::int64_t>("pad_to_multiple_of", io::Range{0, longest}).value_or(1), 1);
  padding.id = fields.get<std::int64_t>("pad_id", io::Range{0, static_cast<double>(largest_id)});
  padding.type_id = fields.get<std::int64_t>("pad_type_id", io::Range{0, longest});
  padding.token = fields.get<std::string>("pad_token");
  fields.finish();
  return padding;
}

std::vector<AddedToken> read_added_tokens(const nlohmann::json& list, const std::string& place) {
  check(list.is_array() || list.is_null(), "{}: 'added_tokens' must be a list", place);
  std::vector<AddedToken> tokens;
  for (const nlohmann::json& json : list) {
    io::Fields fields(json, fmt::format("{}: added_tokens[{}]", place, tokens.size()));
    AddedToken token;
    token.content = fields.get<std::string>("content");
    token.single_word = fields.get<bool>("single_word");
    token.lstrip = fields.get<bool>("lstrip");
    token.rstrip = fields.get<bool>("rstrip");
    token.normalized = fields.get<bool>("normalized");
    token.special = fields.get<bool>("special");
    fields.ignore("id");  // the reference does not take it from here either: it follows from the order
    fields.finish();
    tokens.push_back(std::move(token));
  }
  return tokens;
}

Pipeline read(const nlohmann::json& json, const std::string& source) {
  static const nlohmann::json none;
  io::Fields fields(json, source);
  const auto part = [&](const std::string& key) {
    return Part{fields.kind(key) == io::Kind::absent ? none : fields.raw(key), fmt::format("{}: {}", source, key)};
  };
  const auto has = [&](const std::string& key) {
    return fields.kind(key) != io::Kind::absent && fields.kind(key) != io::Kind::null;
  };
  fields.choice("version", "1.0", {"1.0"});
  Pipeline pipeline;
  if (has("truncation")) {
    pipeline.truncation = read_truncation(fields.object("truncation"));
  }
  if (has("padding")) {
    pipeline.padding = read_padding(fields.object("padding"));
  }
  pipeline.added_tokens = read_added_tokens(part("added_tokens").json, source);
  pipeline.normalizers = read_normalizers(part("normalizer"));
  pipeline.pre_tokenizers = read_pre_tokenizers(part("pre_tokenizer"));
  pipeline.post_processors = read_post_processors(part("post_processor"));
  pipeline.decoders = read_decoders(part("decoder"));
  fields.raw("model");
  std::tie(pipeline.kind, pipeline.model) = read_model(part("model"));
  fields.finish();
  return pipeline;
}

// What is wrong inside of a part, such as a regular expression, does not know in which file it stands.
Pipeline read_with_source(const nlohmann::json& json, const std::string& source) {
  try {
    return read(json, source);
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(source)) {
      throw;
    }
    fail("{}: {}", source, error.what());
  }
}

}  // namespace

Pipeline read_pipeline(std::string document, const std::string& source) {
  const nlohmann::json json = io::parse_json(document, source);
  return make_pipeline(json, source, std::move(document));
}

Pipeline make_pipeline(const nlohmann::json& document, const std::string& source, std::string text) {
  Pipeline pipeline = read_with_source(document, source);
  pipeline.document = text.empty() ? document.dump(2) + "\n" : std::move(text);
  return pipeline;
}

}  // namespace vitrail::text
