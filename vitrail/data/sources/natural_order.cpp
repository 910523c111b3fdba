#include <algorithm>
#include <string_view>

#include "vitrail/data/sources/sources.h"

namespace vitrail::data {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
unsigned char lower(char c) { return static_cast<unsigned char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); }

// Removes the leading run of digits (or, if not `digits`, of other characters) from `text` and returns it.
std::string_view take_run(std::string_view& text, bool digits) {
  const auto end = std::find_if(text.begin(), text.end(), [&](char c) { return is_digit(c) != digits; });
  const std::string_view run = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(run.size());
  return run;
}

int compare_text(std::string_view a, std::string_view b) {
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (lower(a[i]) != lower(b[i])) {
      return lower(a[i]) < lower(b[i]) ? -1 : 1;
    }
  }
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

int compare_numbers(std::string_view a, std::string_view b) {
  a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
  b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
  return a.size() != b.size() ? (a.size() < b.size() ? -1 : 1) : a.compare(b);
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  std::string_view x = a;
  std::string_view y = b;
  for (bool digits = false; !x.empty() || !y.empty(); digits = !digits) {
    const std::string_view run_x = take_run(x, digits);
    const std::string_view run_y = take_run(y, digits);
    if (digits && run_x.empty() != run_y.empty()) {
      return run_x.empty();  // the text that has ended comes first
    }
    const int order = digits ? compare_numbers(run_x, run_y) : compare_text(run_x, run_y);
    if (order != 0) {
      return order < 0;
    }
  }
  return a < b;  // equal up to case and leading zeros
}

}  // namespace vitrail::data
