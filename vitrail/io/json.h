/// \file
/// Strict parsing of JSON, and typed access to the fields of a configuration.
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

/// Parses JSON (RFC 8259) strictly: no comments, no NaN, no repeated key in an object, at most 64 levels of nesting,
/// valid UTF-8. Throws Error naming `source` and what is wrong; for a syntax error also the line and the column.
nlohmann::json parse_json(std::string_view text, const std::string& source);
nlohmann::json read_json(const std::filesystem::path& path);

/// The text of an exception of nlohmann's parser about malformed input without its error number, shortened if it is
/// long: "line 1, column 7: syntax error while …".
std::string json_reason(std::string_view what);

/// `text` with U+FFFD in the place of what is not UTF-8, such as a file's name can be; JSON can hold nothing else.
std::string as_utf8(const std::string& text);

/// The closed range of values that a number, or each number of a list, may have.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};
inline constexpr Range at_least(double low) { return {low, std::numeric_limits<double>::infinity()}; }

/// The type of a field's value, or that the object does not have the field.
enum class Kind { absent, null, boolean, integer, number, string, list, object };

/// Reads the fields of an object one by one, each with its type, default and range. It keeps track of the keys that
/// were read, so that finish() can report all others:
///
/// ```cpp
/// Fields fields(json, "config.json");
/// const auto depth = fields.get<std::int64_t>("depth", 12, {1, 1000});
/// const auto init_values = fields.optional<double>("init_values");  // absent or null: none
/// fields.finish();  // Error: config.json: unknown key 'dept' (did you mean 'depth'?)
/// ```
///
/// T is bool, std::int64_t, double, std::string, or a std::vector of one of these. An integer is accepted as a double,
/// but 4.0 is not accepted as a std::int64_t. Errors name `source`, the key, what was expected and what was found.
class Fields {
 public:
  /// Throws Error unless `object`, which must outlive the Fields, is a JSON object.
  Fields(const nlohmann::json& object, std::string source);
  Fields(nlohmann::json&&, std::string) = delete;

  /// The value of `key`. Throws Error if it is absent, of another type or out of range.
  template <class T>
  T get(std::string_view key, Range range = {});
  /// The value of `key`, or `fallback` if it is absent. null is an Error: use optional() where null has a meaning.
  template <class T>
  T get(std::string_view key, T fallback, Range range = {}) {
    return kind(key) == Kind::absent ? fallback : get<T>(key, range);
  }
  /// The value of `key`, or nothing if it is absent or null.
  template <class T>
  std::optional<T> optional(std::string_view key, Range range = {}) {
    return is_unset(key) ? std::nullopt : std::optional<T>(get<T>(key, range));
  }
  /// The string at `key`, which must be one of `allowed`, or `fallback` if it is absent.
  std::string choice(std::string_view key, const std::string& fallback, const std::vector<std::string>& allowed);

  /// The type of the value of `key`, for fields that take several (timm's img_size is a number or a pair).
  Kind kind(std::string_view key);
  /// Whether `key` is absent or null.
  bool is_unset(std::string_view key) { return kind(key) == Kind::absent || kind(key) == Kind::null; }
  /// The value of `key` as it is. Throws Error if it is absent.
  const nlohmann::json& raw(std::string_view key);
  /// The fields of the object at `key`. Throws Error if it is absent or not an object.
  Fields object(std::string_view key);

  /// Marks `key` as known without reading it.
  void ignore(std::string_view key) { known_.emplace(key); }
  /// The keys that have been read, or marked as known.
  const std::set<std::string, std::less<>>& known() const { return known_; }
  /// Throws Error naming the keys that were never read; for a single one it suggests known keys that are similar.
  void finish() const;
  const std::string& source() const { return source_; }

 private:
  const nlohmann::json* find(std::string_view key);
  const nlohmann::json* object_;
  std::string source_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace vitrail::io
