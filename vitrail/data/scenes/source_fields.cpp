#include "vitrail/data/scenes/source_fields.h"

#include <charconv>
#include <system_error>

namespace vitrail::data {

bool is_set_source(const std::filesystem::path& source) { return source.native().starts_with(set_scheme); }

bool read_whole_number(std::string_view text, std::int64_t& value) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size();
}

std::vector<std::string> parts_between(std::string_view list, char separator) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    std::string_view part = list.substr(0, list.find(separator));
    list.remove_prefix(std::min(part.size() + 1, list.size()));
    const std::size_t first = std::min(part.find_first_not_of(' '), part.size());
    part = part.substr(first, part.find_last_not_of(' ') + 1 - first);
    parts.emplace_back(part);
  }
  return parts;
}

std::int64_t number_of_field(std::string_view key, std::string_view value, std::int64_t low, std::int64_t high) {
  std::int64_t number = 0;
  check(read_whole_number(value, number) && number >= low && number <= high,
        "'{}' is a whole number from {} to {}, not '{}'", key, low, high, value);
  return number;
}

bool switch_of_field(std::string_view key, std::string_view value) {
  check(value.empty() || value == "true" || value == "false", "'{}' is true or false, not '{}'", key, value);
  return value != "false";
}

std::pair<std::int64_t, std::int64_t> range_of_field(std::string_view name, std::string_view value) {
  const std::size_t dash = value.find('-');
  std::pair<std::int64_t, std::int64_t> range;
  const bool right = read_whole_number(value.substr(0, dash), range.first) &&
                     read_whole_number(dash == std::string_view::npos ? value : value.substr(dash + 1), range.second);
  check(right, "{} takes a number or a range of numbers, as in 2-6, not '{}'", name, value);
  return range;
}

}  // namespace vitrail::data
