// Ruby's syntax of regular expressions in PCRE2's. Most of it means the same; the rest is rewritten or refused.
#include <algorithm>
#include <string>

#include <fmt/core.h>
#include <unicode/uchar.h>

#include "vitrail/tensor/error.h"
#include "vitrail/text/strings/regex.h"

namespace vitrail::text {
namespace {

// The property White_Space, for which PCRE2's \s has U+180E too, and what is left without it.
constexpr std::string_view white_space =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view not_white_space =
    R"(\x00-\x08\x0e-\x1f\x21-\x84\x86-\x9f\xa1-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e})"
    R"(\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr std::string_view word = R"(\p{L}\p{M}\p{Nd}\p{Pc})";

class Translation {
 public:
  explicit Translation(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        character_class();
      } else if (c == '(') {
        group();
      } else if (c == '{') {
        interval();
      } else {
        // A # or a space is itself in both; whatever else stands here means the same.
        take(1);
      }
    }
    return result_;
  }

 private:
  [[noreturn]] void refuse(std::size_t begin, std::size_t end, std::string_view why) const {
    fail("the regular expression '{}' has '{}' at byte {}, {}", pattern_, pattern_.substr(begin, end - begin), begin,
         why);
  }
  void take(std::size_t count) {
    result_ += pattern_.substr(at_, count);
    at_ += count;
  }
  bool follows(std::string_view what) const { return pattern_.substr(at_).starts_with(what); }

  // \p{Name}, \p{^Name} and \P{Name}: general categories as they are, names of scripts marked as such, because PCRE2
  // would take the script extensions.
  void property() {
    const std::size_t begin = at_;
    const std::size_t end = pattern_.find('}', at_);
    bool negated = pattern_[at_ + 1] == 'P';
    if (at_ + 2 >= pattern_.size() || pattern_[at_ + 2] != '{' || end == std::string_view::npos) {
      refuse(begin, std::min(begin + 3, pattern_.size()), "which must be a property such as \\p{L}");
    }
    std::string name(pattern_.substr(at_ + 3, end - at_ - 3));
    if (name.starts_with('^')) {
      negated = !negated;
      name.erase(0, 1);
    }
    if (u_getPropertyValueEnum(UCHAR_GENERAL_CATEGORY_MASK, name.c_str()) != UCHAR_INVALID_CODE) {
      const auto mask = u_getPropertyValueEnum(UCHAR_GENERAL_CATEGORY_MASK, name.c_str());
      name = u_getPropertyValueName(UCHAR_GENERAL_CATEGORY_MASK, mask, U_SHORT_PROPERTY_NAME);
      name = name == "LC" ? "L&" : name;
    } else if (const auto script = u_getPropertyValueEnum(UCHAR_SCRIPT, name.c_str()); script != UCHAR_INVALID_CODE) {
      name = std::string("sc:") + u_getPropertyValueName(UCHAR_SCRIPT, script, U_LONG_PROPERTY_NAME);
    } else {
      refuse(begin, end + 1, "which is neither a general category nor a script");
    }
    result_ += fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', name);
    at_ = end + 1;
  }

  void put_class(std::string_view members, bool negated, bool in_class) {
    if (in_class && negated) {
      refuse(at_, at_ + 2, "which is not supported inside of brackets");
    }
    result_ += in_class ? std::string(members) : fmt::format("[{}{}]", negated ? "^" : "", members);
    at_ += 2;
  }

  void escape(bool in_class) {
    if (at_ + 1 >= pattern_.size()) {
      refuse(at_, at_ + 1, "which escapes nothing");
    }
    const char c = pattern_[at_ + 1];
    switch (c) {
      case 's':
        return put_class(white_space, false, in_class);
      case 'S':
        return put_class(in_class ? not_white_space : white_space, !in_class, in_class);
      case 'w':
      case 'W':
        return put_class(word, c == 'W', in_class);
      case 'd':
      case 'D':
        result_ += c == 'd' ? R"(\p{Nd})" : R"(\P{Nd})";
        at_ += 2;
        return;
      case 'h':
      case 'H':
        return put_class("0-9a-fA-F", c == 'H', in_class);
      case 'v':
        result_ += R"(\x0b)";
        at_ += 2;
        return;
      case 'p':
      case 'P':
        return property();
      case 'u': {
        const std::string_view digits = pattern_.substr(at_ + 2, 4);
        const auto is_hex = [](unsigned char digit) { return std::isxdigit(digit) != 0; };
        if (digits.size() < 4 || !std::ranges::all_of(digits, is_hex)) {
          refuse(at_, at_ + 2, "after which four hexadecimal digits must stand");
        }
        result_ += fmt::format("\\x{{{}}}", digits);
        at_ += 6;
        return;
      }
      case 'A':
      case 'z':
        if (!in_class) {
          return take(2);
        }
        break;
      case 'x':
      case 't':
      case 'n':
      case 'r':
      case 'f':
      case 'a':
      case 'e':
        return take(2);
      default:
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
          return take(2);
        }
    }
    refuse(at_, at_ + 2, "which is not supported");
  }

  void character_class() {
    const std::size_t begin = at_;
    take(1);
    if (follows("^")) {
      take(1);
    }
    bool first = true;
    while (at_ < pattern_.size() && (pattern_[at_] != ']' || first)) {
      if (pattern_[at_] == ']') {
        refuse(at_, at_ + 1, "which must be escaped to stand first in brackets");
      }
      first = false;
      if (pattern_[at_] == '[' || follows("&&")) {
        refuse(at_, at_ + 2, "brackets in brackets, which are not supported");
      }
      if (pattern_[at_] == '\\') {
        escape(true);
      } else {
        take(1);
      }
    }
    if (at_ >= pattern_.size()) {
      refuse(begin, begin + 1, "which is never closed");
    }
    take(1);
  }

  // (?:…), (?=…), (?!…), (?<=…), (?<!…), (?>…), (?i:…), (?i) and plain groups. Ruby's (?m) is PCRE2's (?s).
  void group() {
    take(1);
    if (!follows("?")) {
      return;
    }
    take(1);
    for (const std::string_view kind : {":", "=", "!", "<=", "<!", ">"}) {
      if (follows(kind)) {
        return take(kind.size());
      }
    }
    const std::size_t begin = at_;
    while (at_ < pattern_.size() && std::string_view("imx-").find(pattern_[at_]) != std::string_view::npos) {
      if (pattern_[at_] == 'x') {
        break;
      }
      result_ += pattern_[at_] == 'm' ? 's' : pattern_[at_];
      ++at_;
    }
    if (at_ == begin || !(follows(":") || follows(")"))) {
      refuse(begin - 2, std::min(at_ + 1, pattern_.size()), "a kind of group that is not supported");
    }
    take(1);
  }

  // {n}, {n,}, {n,m} and {,m}; another brace is itself in both.
  void interval() {
    std::size_t end = at_ + 1;
    while (end < pattern_.size() &&
           (std::isdigit(static_cast<unsigned char>(pattern_[end])) != 0 || pattern_[end] == ',')) {
      ++end;
    }
    const std::string_view inside = pattern_.substr(at_ + 1, end - at_ - 1);
    if (end >= pattern_.size() || pattern_[end] != '}' || inside.empty() || inside == ",") {
      result_ += "\\{";
      ++at_;
      return;
    }
    if (pattern_.substr(end + 1).starts_with('+')) {
      refuse(at_, end + 2, "which repeats a repetition in Ruby and is possessive elsewhere");
    }
    result_ += fmt::format("{{{}{}}}", inside.starts_with(',') ? "0" : "", inside);
    at_ = end + 1;
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  std::string result_;
};

}  // namespace

std::string to_pcre2(std::string_view pattern) { return Translation(pattern).run(); }

}  // namespace vitrail::text
