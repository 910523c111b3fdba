/// \file
/// Sources of data that is drawn when it is asked for: "scenes:seed=0,count=8000", a scheme and fields between commas.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/io/suggest.h"
#include "vitrail/tensor/error.h"

namespace vitrail::data {

/// The scheme of sets that are drawn (sets/sets.h), and whether a source has it: "sets:task=sort,count=20000".
constexpr std::string_view set_scheme = "sets:";
bool is_set_source(const std::filesystem::path& source);

/// Reads a whole number that is all of a text; returns false if it is none.
bool read_whole_number(std::string_view text, std::int64_t& value);
/// The parts of a list, without the spaces around them.
std::vector<std::string> parts_between(std::string_view list, char separator);

/// The value of a field: a whole number from `low` to `high`, a switch (which stands alone, or has true or false), and
/// a range of whole numbers, "2-6", or "3" for 3 to 3. Throws Error, naming the field, for another value.
std::int64_t number_of_field(std::string_view key, std::string_view value, std::int64_t low, std::int64_t high);
bool switch_of_field(std::string_view key, std::string_view value);
std::pair<std::int64_t, std::int64_t> range_of_field(std::string_view name, std::string_view value);
/// The place among `names` of the value of a field.
template <class T, class Names>
T choice_of_field(std::string_view key, std::string_view value, const Names& names) {
  const auto found = std::ranges::find(names, value);
  check(found != names.end(), "'{}' is {}, not '{}'", key, io::quoted_list({names.begin(), names.end()}), value);
  return static_cast<T>(found - names.begin());
}

/// What each field sets, by its name: a function of what is set and the field's value.
template <class What>
using SourceFields = std::map<std::string, std::function<void(What&, const std::string& value)>>;

/// Sets the fields of `text`, and returns the names of those that it has. Throws Error for a field that there is not,
/// or that is there twice.
template <class What>
std::set<std::string> read_source_fields(std::string_view text, const SourceFields<What>& fields, What& what) {
  std::vector<std::string> names;
  names.reserve(fields.size());
  for (const auto& [name, set] : fields) {
    names.push_back(name);
  }
  std::set<std::string> given;
  for (const std::string& part : parts_between(text, ',')) {
    const std::string key = part.substr(0, part.find('='));
    const auto field = fields.find(key);
    check(field != fields.end(), "there is no field '{}'{}, only {}", key, io::did_you_mean(key, names),
          io::quoted_list(names, "and"));
    check(given.insert(key).second, "'{}' is there twice", key);
    field->second(what, key.size() < part.size() ? part.substr(key.size() + 1) : "");
  }
  return given;
}

}  // namespace vitrail::data
