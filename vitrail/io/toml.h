/// \file
/// TOML, for the file config.toml of a run folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace vitrail::io {

/// Parses TOML 1.0 into the JSON value of the same tables, lists and values, which Fields can read. Throws Error naming
/// `source`, line and column, and what was found there; dates and times, which JSON does not have, are an Error too.
nlohmann::json parse_toml(std::string_view text, const std::string& source);
nlohmann::json read_toml(const std::filesystem::path& path);

// These format a value as TOML text that reads back as the same value, to the last bit. They throw Error if a string is
// not UTF-8.

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

/// Formats a key: bare if TOML allows that, otherwise quoted.
std::string toml_key(const std::string& key);

}  // namespace vitrail::io
