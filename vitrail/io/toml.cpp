#include "vitrail/io/toml.h"

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>
#include <toml++/toml.h>

#include "vitrail/io/file.h"
#include "vitrail/io/json.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {

using Json = nlohmann::json;

namespace {

Json to_json(const toml::node& node, const std::string& source) {
  if (const toml::table* table = node.as_table()) {
    Json object = Json::object();
    for (const auto& [key, value] : *table) {
      object[std::string(key.str())] = to_json(value, source);
    }
    return object;
  }
  if (const toml::array* array = node.as_array()) {
    Json list = Json::array();
    for (const toml::node& value : *array) {
      list.push_back(to_json(value, source));
    }
    return list;
  }
  if (const auto* value = node.as_string()) {
    return value->get();
  }
  if (const auto* value = node.as_integer()) {
    return value->get();
  }
  if (const auto* value = node.as_floating_point()) {
    return value->get();
  }
  if (const auto* value = node.as_boolean()) {
    return value->get();
  }
  fail("{}: line {}: dates and times are not supported", source, node.source().begin.line);
}

bool is_bare(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '-';
}

// The position after the string that begins at `at`, whichever of TOML's four kinds it is.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string closing(text.substr(at, 3) == std::string(3, quote) ? 3 : 1, quote);
  at += closing.size();
  while (at < text.size() && text.substr(at, closing.size()) != closing) {
    if (closing.size() == 1 && text[at] == '\n') {
      return at;  // malformed: the parser will say so
    }
    at += quote == '"' && text[at] == '\\' ? 2 : 1;
  }
  at = std::min(text.size(), at + closing.size());
  for (int i = 0; closing.size() == 3 && i < 2 && at < text.size() && text[at] == quote; ++i) {
    ++at;  // up to two quotes may stand in front of the closing three
  }
  return at;
}

// Limits the number of parts of dotted keys: toml++ limits the nesting of lists and inline tables, but not that of
// dotted keys, and its destructors recurse.
void check_dotted_keys(std::string_view text, const std::string& source) {
  constexpr int most = 32;
  int dots = 0;
  bool part = false;  // whether a part of a key was the last thing seen
  for (std::size_t i = 0; i < text.size();) {
    const char letter = text[i];
    if (letter == '"' || letter == '\'') {
      i = end_of_string(text, i);
      part = true;
      continue;
    }
    if (letter == '#') {
      i = std::min(text.size(), text.find('\n', i));
      continue;
    }
    if (letter == '.' && part) {
      check(++dots <= most, "{}: a key has more than {} parts", source, most);
      part = false;
    } else if (is_bare(letter)) {
      part = true;
    } else if (letter != ' ' && letter != '\t') {
      dots = 0;
      part = false;
    }
    ++i;
  }
}

bool plain(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return code >= 0x20 && code != 0x7f;
}

void check_utf8(const std::string& text) {
  const std::string valid = as_utf8(text);
  check(valid == text, "'{}' is not valid UTF-8, so it cannot be written as TOML", valid);
}

}  // namespace

Json parse_toml(std::string_view text, const std::string& source) {
  check_dotted_keys(text, source);
  try {
    const toml::table table = toml::parse(text);
    return to_json(table, source);
  } catch (const toml::parse_error& error) {
    fail("{}: not valid TOML: line {}, column {}: {}", source, error.source().begin.line, error.source().begin.column,
         error.description());
  }
}

Json read_toml(const std::filesystem::path& path) { return parse_toml(read_text(path), path.string()); }

std::string toml_value(bool value) { return value ? "true" : "false"; }

std::string toml_value(std::int64_t value) { return fmt::format("{}", value); }

std::string toml_value(double value) {
  const std::string text = fmt::format("{}", value);  // the shortest text that reads back as the same bits
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

std::string toml_value(const std::string& value) {
  check_utf8(value);
  if (value.find_first_of("\"\\") != std::string::npos && value.find('\'') == std::string::npos &&
      std::all_of(value.begin(), value.end(), plain)) {
    return "'" + value + "'";  // a literal string keeps quotes and backslashes readable
  }
  std::string text = "\"";
  for (const char letter : value) {
    if (letter == '"' || letter == '\\') {
      text += '\\';
    }
    text += plain(letter) ? std::string(1, letter) : fmt::format("\\u{:04X}", static_cast<unsigned char>(letter));
  }
  return text + "\"";
}

std::string toml_value(const char* value) { return toml_value(std::string(value)); }

std::string toml_key(const std::string& key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), is_bare) ? key : toml_value(key);
}

}  // namespace vitrail::io
