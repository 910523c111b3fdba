#include "vitrail/io/json.h"

#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "vitrail/io/file.h"
#include "vitrail/io/suggest.h"
#include "vitrail/tensor/error.h"

namespace vitrail::io {

using Json = nlohmann::json;

namespace {

// The limit of nesting: deeper than any configuration, shallow enough for code that recurses through a document.
constexpr int max_depth = 64;

// Follows the parser through a text, of which no document is made, and stops at the first thing that is wrong, or that
// JSON's grammar allows but a configuration must not have. Where a file is cut short that takes no memory; a callback
// of the parser that does make a document would take a time that grows with the square of a list's length.
class Watch {
 public:
  explicit Watch(const std::string& source) : source_(source) {}

  bool null() { return true; }
  bool boolean(bool /*value*/) { return true; }
  bool number_integer(Json::number_integer_t /*value*/) { return true; }
  bool number_unsigned(Json::number_unsigned_t /*value*/) { return true; }
  bool number_float(Json::number_float_t /*value*/, const std::string& /*text*/) { return true; }
  bool string(std::string& /*value*/) { return true; }
  bool binary(Json::binary_t& /*value*/) { return true; }
  bool start_object(std::size_t /*size*/) {
    enter();
    keys_.emplace_back();
    return true;
  }
  bool key(std::string& key) {
    check(keys_.back().insert(key).second, "{}: the key '{}' is there twice in one object", source_, key);
    return true;
  }
  bool end_object() {
    --depth_;
    keys_.pop_back();
    return true;
  }
  bool start_array(std::size_t /*size*/) {
    enter();
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t /*byte*/, const std::string& /*token*/, const Json::exception& error) {
    fail("{}: not valid JSON: {}", source_, json_reason(error.what()));
  }

 private:
  void enter() {
    check(depth_ < max_depth, "{}: nested deeper than {} levels", source_, max_depth);
    ++depth_;
  }

  const std::string& source_;
  int depth_ = 0;
  std::vector<std::set<std::string>> keys_;  // of each object that is open, those seen so far
};

// Formats a value for an error message.
std::string shown_value(const Json& value) {
  if (value.is_object()) {
    return "an object";
  }
  if (value.is_array()) {
    return fmt::format("a list of {}", value.size());
  }
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 80) + "…";
}

void check_range(double value, Range range, const std::string& where) {
  if (value >= range.low && value <= range.high) {
    return;
  }
  check(!std::isnan(value), "{} must be a number, but is nan", where);
  if (std::isinf(range.high)) {
    fail("{} must be at least {}, but is {}", where, range.low, value);
  }
  if (std::isinf(range.low)) {
    fail("{} must be at most {}, but is {}", where, range.high, value);
  }
  fail("{} must be from {} to {}, but is {}", where, range.low, range.high, value);
}

template <class T>
struct Reader;

template <>
struct Reader<bool> {
  static bool read(const Json& value, Range, const std::string& where) {
    check(value.is_boolean(), "{} must be true or false, but is {}", where, shown_value(value));
    return value.get<bool>();
  }
};

template <>
struct Reader<std::int64_t> {
  static std::int64_t read(const Json& value, Range range, const std::string& where) {
    const bool fits = value.is_number_unsigned()
                          ? value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}
                          : value.is_number_integer();
    check(fits, "{} must be a whole number, but is {}", where, shown_value(value));
    const auto result = value.get<std::int64_t>();
    check_range(static_cast<double>(result), range, where);
    return result;
  }
};

template <>
struct Reader<double> {
  static double read(const Json& value, Range range, const std::string& where) {
    check(value.is_number(), "{} must be a number, but is {}", where, shown_value(value));
    const auto result = value.get<double>();
    check_range(result, range, where);
    return result;
  }
};

template <>
struct Reader<std::string> {
  static std::string read(const Json& value, Range, const std::string& where) {
    check(value.is_string(), "{} must be a string, but is {}", where, shown_value(value));
    return value.get<std::string>();
  }
};

template <class T>
struct Reader<std::vector<T>> {
  static std::vector<T> read(const Json& value, Range range, const std::string& where) {
    check(value.is_array(), "{} must be a list, but is {}", where, shown_value(value));
    std::vector<T> result;
    for (std::size_t i = 0; i < value.size(); ++i) {
      result.push_back(Reader<T>::read(value[i], range, fmt::format("{}[{}]", where, i)));
    }
    return result;
  }
};

}  // namespace

std::string as_utf8(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

std::string json_reason(std::string_view what) {
  // For example "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while …".
  for (const std::string_view noise : {"] ", "parse error at ", "parse error: "}) {
    const std::size_t at = what.find(noise);
    if (at != std::string_view::npos && (noise == "] " ? what.front() == '[' : at == 0)) {
      what.remove_prefix(at + noise.size());
    }
  }
  constexpr std::size_t most = 240;
  return what.size() <= most ? std::string(what) : std::string(what.substr(0, most)) + "…";
}

Json parse_json(std::string_view text, const std::string& source) {
  // The parser would take a NUL byte for the end of the text.
  check(text.find('\0') == std::string_view::npos, "{}: not valid JSON: it has a NUL byte", source);
  Watch watch(source);
  Json::sax_parse(text.begin(), text.end(), &watch);
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception& error) {
    fail("{}: not valid JSON: {}", source, json_reason(error.what()));
  }
}

Json read_json(const std::filesystem::path& path) { return parse_json(read_text(path), path.string()); }

Fields::Fields(const Json& object, std::string source) : object_(&object), source_(std::move(source)) {
  check(object.is_object(), "{}: must be an object, but is {}", source_, shown_value(object));
}

const Json* Fields::find(std::string_view key) {
  known_.emplace(key);
  const auto found = object_->find(key);
  return found == object_->end() ? nullptr : &*found;
}

const Json& Fields::raw(std::string_view key) {
  const Json* value = find(key);
  check(value != nullptr, "{}: '{}' is missing", source_, key);
  return *value;
}

Kind Fields::kind(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) {
    return Kind::absent;
  }
  switch (value->type()) {
    case Json::value_t::boolean:
      return Kind::boolean;
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return Kind::integer;
    case Json::value_t::number_float:
      return Kind::number;
    case Json::value_t::string:
      return Kind::string;
    case Json::value_t::array:
      return Kind::list;
    case Json::value_t::object:
      return Kind::object;
    default:
      return Kind::null;
  }
}

template <class T>
T Fields::get(std::string_view key, Range range) {
  const Json& value = raw(key);
  return Reader<T>::read(value, range, fmt::format("{}: '{}'", source_, key));
}

template bool Fields::get(std::string_view, Range);
template std::int64_t Fields::get(std::string_view, Range);
template double Fields::get(std::string_view, Range);
template std::string Fields::get(std::string_view, Range);
template std::vector<bool> Fields::get(std::string_view, Range);
template std::vector<std::int64_t> Fields::get(std::string_view, Range);
template std::vector<double> Fields::get(std::string_view, Range);
template std::vector<std::string> Fields::get(std::string_view, Range);

std::string Fields::choice(std::string_view key, const std::string& fallback, const std::vector<std::string>& allowed) {
  std::string value = get<std::string>(key, fallback);
  for (const std::string& one : allowed) {
    if (value == one) {
      return value;
    }
  }
  if (kind(key) == Kind::absent) {
    return value;  // the caller's default need not be one of the allowed values
  }
  fail("{}: '{}' must be {}, but is '{}'{}", source_, key, quoted_list(allowed), value,
       allowed.size() > 1 ? did_you_mean(value, allowed) : "");
}

Fields Fields::object(std::string_view key) { return {raw(key), fmt::format("{}, '{}'", source_, key)}; }

void Fields::finish() const {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : object_->items()) {
    if (!known_.contains(key)) {
      unknown.push_back(key);
    }
  }
  if (unknown.empty()) {
    return;
  }
  const std::vector<std::string> known(known_.begin(), known_.end());
  if (unknown.size() == 1) {
    fail("{}: unknown key '{}'{}", source_, unknown[0], did_you_mean(unknown[0], known));
  }
  fail("{}: unknown keys {}", source_, quoted_list(unknown, "and"));
}

}  // namespace vitrail::io
