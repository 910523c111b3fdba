#include "vitrail/io/wording.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace vitrail::io {
namespace {

std::string singular(std::string_view plural) {
  constexpr std::array<std::string_view, 4> with_e = {"ches", "shes", "sses", "xes"};
  const bool two = std::ranges::any_of(with_e, [&](std::string_view ending) { return plural.ends_with(ending); });
  const bool three = plural.ends_with("ries");
  plural.remove_suffix(three ? 3 : two ? 2 : plural.ends_with('s') ? 1 : 0);
  return std::string(plural) + (three ? "y" : "");
}

}  // namespace

std::string counted(std::int64_t count, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? singular(plural) : std::string(plural));
}

std::string capitalized(std::string_view words) {
  std::string result(words);
  if (!result.empty() && result[0] >= 'a' && result[0] <= 'z') {
    result[0] = static_cast<char>(result[0] - 'a' + 'A');
  }
  return result;
}

std::string shown(std::string_view text) {
  constexpr std::size_t most = 80;
  return text.size() <= most ? std::string(text) : std::string(text.substr(0, most)) + "…";
}

std::string shell_word(std::string_view word) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c < 0 ||
           std::string_view("_-./+,:=@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

std::string wrapped(std::string_view text, std::size_t width) {
  std::string result;
  std::size_t used = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const auto letters = static_cast<std::size_t>(
        std::ranges::count_if(word, [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
    if (used > 0) {
      const bool fits = used + 1 + letters <= width;
      result += fits ? ' ' : '\n';
      used = fits ? used + 1 : 0;
    }
    result += word;
    used += letters;
    begin = end + 1;
  }
  return result;
}

std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      line += c;
    } else {
      line += c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : fmt::format("\\x{:02x}", byte);
    }
  }
  return line;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view spaces = " \t\r\n\f\v";
  const std::size_t begin = std::min(text.find_first_not_of(spaces), text.size());
  return text.substr(begin, text.find_last_not_of(spaces) + 1 - begin);
}

}  // namespace vitrail::io
