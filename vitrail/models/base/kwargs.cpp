#include "vitrail/models/base/kwargs.h"

#include <cctype>
#include <optional>
#include <sstream>
#include <string_view>

#include <nlohmann/json.hpp>

#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"

namespace vitrail::models {
namespace {

using Json = nlohmann::json;

// Splits a tuple or list into its elements, at the commas of its own nesting level.
std::vector<std::string_view> split_elements(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' || text[i] == '[' || text[i] == '{' ? 1 : 0;
    depth -= text[i] == ')' || text[i] == ']' || text[i] == '}' ? 1 : 0;
    if (text[i] == ',' && depth == 0) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (!io::trimmed(text.substr(begin)).empty()) {
    parts.push_back(text.substr(begin));  // the trailing comma of (1, 2,) does not begin another element
  }
  return parts;
}

constexpr int deepest = 64;  // lists within lists

Json literal(std::string_view text, int depth = 0) {
  check(depth <= deepest, "--model-kwargs takes lists that are nested at most {} deep", deepest);
  text = io::trimmed(text);
  if (text == "True" || text == "true") {
    return true;
  }
  if (text == "False" || text == "false") {
    return false;
  }
  if (text == "None" || text == "null") {
    return nullptr;
  }
  const auto enclosed = [&](char open, char close) {
    return text.size() >= 2 && text.front() == open && text.back() == close;
  };
  if (enclosed('\'', '\'') || enclosed('"', '"')) {
    return std::string(text.substr(1, text.size() - 2));
  }
  if (enclosed('(', ')') || enclosed('[', ']')) {
    Json list = Json::array();
    for (const std::string_view element : split_elements(text.substr(1, text.size() - 2))) {
      list.push_back(literal(element, depth + 1));
    }
    return list;
  }
  if (enclosed('{', '}')) {
    Json object = Json::object();
    for (const std::string_view element : split_elements(text.substr(1, text.size() - 2))) {
      const std::size_t colon = element.find(':');
      check(colon != std::string_view::npos, "'{}' is no 'key': value of a dictionary", io::trimmed(element));
      const Json key = literal(element.substr(0, colon), depth + 1);
      check(key.is_string() && !object.contains(key.get<std::string>()), "'{}' is no new key of a dictionary",
            io::trimmed(element.substr(0, colon)));
      object[key.get<std::string>()] = literal(element.substr(colon + 1), depth + 1);
    }
    return object;
  }
  std::string number(text.substr(text.starts_with('+') ? 1 : 0));
  if (number.starts_with('.')) {
    number = '0' + number;
  }
  if (number.ends_with('.')) {
    number += '0';
  }
  const Json value = Json::parse(number, nullptr, false);
  return value.is_number() ? value : Json(std::string(text));
}

}  // namespace

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) {
    result.push_back(word);
  }
  return result;
}

std::string kwargs_to_json(const std::vector<std::string>& items) {
  Json result = Json::object();
  for (const std::string& item : items) {
    const std::size_t equals = item.find('=');
    check(equals != std::string::npos && equals > 0,
          "--model-kwargs takes key=value, e.g. --model-kwargs img_size=32 patch_size=4, not '{}'", item);
    const std::string key = item.substr(0, equals);
    check(!result.contains(key), "--model-kwargs gives '{}' twice", key);
    result[key] = literal(std::string_view(item).substr(equals + 1));
  }
  try {
    return result.dump();
  } catch (const Json::type_error&) {
    fail("--model-kwargs takes text in UTF-8, which this is not");
  }
}

std::string set_kwarg(std::string& kwargs, const std::string& key, const std::string& value) {
  Json all = Json::parse(kwargs);
  const Json wanted = Json::parse(value);
  const Json given = all.value(key, wanted);
  const auto sides = [](const Json& size) { return size.is_array() ? size : Json::array({size, size}); };
  all[key] = wanted;
  kwargs = all.dump();
  return sides(given) == sides(wanted) ? "" : key + "=" + given.dump();
}

}  // namespace vitrail::models
