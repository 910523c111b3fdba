#include "vitrail/text/read_parts.h"

#include <map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "vitrail/io/suggest.h"
#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/unicode.h"

namespace vitrail::text {
namespace {

constexpr std::size_t most_members = 1000;

void collect(const Part& part, const std::string& members, std::vector<Part>& result) {
  if (part.json.is_null()) {
    return;
  }
  if (type_of(part) != "Sequence") {
    check(result.size() < most_members, "{}: more than {} parts", part.place, most_members);
    result.push_back(part);
    return;
  }
  io::Fields fields(part.json, part.place);
  fields.ignore("type");
  const nlohmann::json& list = fields.raw(members);
  check(list.is_array(), "{}: '{}' must be a list", part.place, members);
  fields.finish();
  for (std::size_t i = 0; i < list.size(); ++i) {
    collect({list[i], fmt::format("{}.{}[{}]", part.place, members, i)}, members, result);
  }
}

}  // namespace

std::vector<Part> members_of(const Part& part, const std::string& members) {
  std::vector<Part> result;
  collect(part, members, result);
  return result;
}

std::string type_of(const Part& part) { return io::Fields(part.json, part.place).get<std::string>("type"); }

void fail_unknown(const Part& part, const std::string& type, const std::vector<std::string>& known) {
  const std::string suggestion = io::did_you_mean(type, known);
  fail("{}: the type '{}' is not known{}", part.place, type,
       suggestion.empty() ? ": there are " + io::quoted_list(known, "and") : suggestion);
}

char32_t read_character(io::Fields& fields, const std::string& key) {
  const auto text = fields.get<std::string>(key);
  check(count_code_points(text) == 1, "{}: '{}' must be one character, but is '{}'", fields.source(), key, text);
  return code_point_at(text, 0).value;
}

SplitBehavior read_behavior(io::Fields& fields, const std::string& fallback) {
  static const std::map<std::string, SplitBehavior> behaviors = {
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous}};
  std::vector<std::string> names;
  names.reserve(behaviors.size());
  for (const auto& [name, value] : behaviors) {
    names.push_back(name);
  }
  return behaviors.at(fields.choice("behavior", fallback, names));
}

Regex read_pattern(io::Fields& fields) {
  io::Fields pattern = fields.object("pattern");
  const bool literal = pattern.kind("String") != io::Kind::absent;
  const auto text = pattern.get<std::string>(literal ? "String" : "Regex");
  pattern.finish();
  return literal ? Regex::literal(text) : Regex(text);
}

Metaspace read_metaspace(io::Fields& fields) {
  Metaspace metaspace;
  metaspace.replacement = read_character(fields, "replacement");
  const std::string scheme = fields.choice("prepend_scheme", "always", {"always", "first", "never"});
  using enum Metaspace::Prepend;
  metaspace.prepend_scheme = scheme == "always" ? always : scheme == "first" ? first : never;
  if (!fields.optional<bool>("add_prefix_space").value_or(true)) {
    check(metaspace.prepend_scheme == never || fields.kind("prepend_scheme") == io::Kind::absent,
          "{}: 'add_prefix_space' is false, but 'prepend_scheme' is '{}'", fields.source(), scheme);
    metaspace.prepend_scheme = never;
  }
  metaspace.split = fields.optional<bool>("split").value_or(true);
  fields.ignore("str_rep");
  return metaspace;
}

}  // namespace vitrail::text
