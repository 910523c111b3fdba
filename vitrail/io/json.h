// JSON read strictly, and the typed fields of a configuration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace vitrail::io {

// Parses JSON (RFC 8259): no comments, no NaN, no key twice in an object, at most 64 levels deep, valid UTF-8. Error
// names `source`, line and column, and what was found there.
nlohmann::json parse_json(std::string_view text, const std::string& source);
nlohmann::json read_json(const std::filesystem::path& path);

// What nlohmann's parser says about broken input, without its error numbers: "line 1, column 7: syntax error while …".
std::string json_reason(std::string_view what);

// The values that a number, or each number of a list, may have.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};
inline constexpr Range at_least(double low) { return {low, std::numeric_limits<double>::infinity()}; }

enum class Kind { absent, null, boolean, integer, number, string, list, object };

// Reads the fields of an object one by one, each with its type, default and range, and in the end knows which ones
// nobody asked for:
//
//   Fields fields(json, "config.json");
//   const auto depth = fields.get<std::int64_t>("depth", 12, {1, 1000});
//   const auto init_values = fields.optional<double>("init_values");  // absent or null: none
//   fields.finish();  // Error: config.json: unknown key 'dept' (did you mean 'depth'?)
//
// T is bool, std::int64_t, double, std::string, or a std::vector of one of these. A whole number does for a double, but
// 4.0 is not a std::int64_t. Errors name `source`, the key, what was expected and what is there.
class Fields {
 public:
  // Error unless `object` is one. It must outlive this.
  Fields(const nlohmann::json& object, std::string source);
  Fields(nlohmann::json&&, std::string) = delete;

  // The value of `key`; Error if absent.
  template <class T>
  T get(std::string_view key, Range range = {});
  // The value of `key`, or `fallback` if absent. (null is an Error: use optional() where it has a meaning.)
  template <class T>
  T get(std::string_view key, T fallback, Range range = {}) {
    return kind(key) == Kind::absent ? fallback : get<T>(key, range);
  }
  // The value of `key`, or nothing if absent or null.
  template <class T>
  std::optional<T> optional(std::string_view key, Range range = {}) {
    return kind(key) == Kind::absent || kind(key) == Kind::null ? std::nullopt : std::optional<T>(get<T>(key, range));
  }
  // A string that is one of `allowed`, or `fallback` if absent.
  std::string choice(std::string_view key, const std::string& fallback, const std::vector<std::string>& allowed);

  // For fields of several forms (timm's img_size is a number or a pair): what is there, and the value as it is.
  Kind kind(std::string_view key);
  const nlohmann::json& raw(std::string_view key);  // Error if absent
  Fields object(std::string_view key);              // an object inside; Error if absent or something else

  void ignore(std::string_view key) { known_.emplace(key); }  // known, but of no interest here
  // Error naming every key that was never asked for, with the known ones near it.
  void finish() const;
  const std::string& source() const { return source_; }

 private:
  const nlohmann::json* find(std::string_view key);
  const nlohmann::json* object_;
  std::string source_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace vitrail::io
