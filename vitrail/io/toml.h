// TOML, for the run folder's config.toml.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace vitrail::io {

// TOML 1.0 as the JSON value of the same tables, lists and values, to be read through Fields. Error names `source`,
// line and column, and what was found there; dates and times, which JSON does not have, are an Error too.
nlohmann::json parse_toml(std::string_view text, const std::string& source);
nlohmann::json read_toml(const std::filesystem::path& path);

// A value as TOML text that reads back as the same value, to the last bit. Error if a string is not UTF-8.
std::string toml_value(bool value);
std::string toml_value(std::int64_t value);
std::string toml_value(double value);
std::string toml_value(const std::string& value);
std::string toml_value(const char* value);
template <class T>
std::string toml_value(const std::vector<T>& values) {
  std::string text;
  for (const auto& value : values) {
    text += (text.empty() ? "" : ", ") + toml_value(static_cast<T>(value));
  }
  return "[" + text + "]";
}

// A key: as it is if it may stand bare, else quoted.
std::string toml_key(const std::string& key);

}  // namespace vitrail::io
