#include "vitrail/text/strings/unicode.h"

#include <unicode/uchar.h>
#include <unicode/utypes.h>

#include "vitrail/tensor/error.h"

namespace vitrail::text {
namespace {

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

// The length of the valid sequence at `at`, or 0; `valid` is then the number of bytes that could have begun one.
std::size_t sequence_length(std::string_view text, std::size_t at, std::size_t& valid) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  valid = 1;
  if (lead < 0x80) {
    return 1;
  }
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                             : (lead & 0xF0) == 0xE0        ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 0;
  if (length == 0) {
    return 0;
  }
  // The second byte's range leaves out overlong forms, surrogates and what lies above U+10FFFF.
  unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (; valid < length; ++valid) {
    if (at + valid >= text.size() || byte(at + valid) < low || byte(at + valid) > high) {
      return 0;
    }
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    std::size_t valid = 0;
    const std::size_t length = sequence_length(text, at, valid);
    if (length == 0) {
      return at;
    }
    at += length;
  }
  return std::string_view::npos;
}

void check_utf8(std::string_view text, std::string_view what) {
  const std::size_t invalid = find_invalid_utf8(text);
  check(invalid == std::string_view::npos, "{} is not UTF-8: byte {} is {:#04x}", what, invalid + 1,
        invalid < text.size() ? static_cast<unsigned char>(text[invalid]) : 0);
}

void check_line(std::string_view line, std::string_view source, std::size_t number) {
  const std::size_t at = find_invalid_utf8(line);
  if (at != std::string_view::npos) {
    fail("{}: line {} is not UTF-8: byte {} of it is {:#04x}", source, number, at + 1,
         static_cast<unsigned char>(line[at]));
  }
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t valid = 0;
    const std::size_t length = sequence_length(bytes, at, valid);
    result += length > 0 ? bytes.substr(at, length) : replacement_character;
    at += length > 0 ? length : valid;
  }
  return result;
}

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

std::string to_utf8(char32_t code_point) {
  std::string text;
  append_utf8(text, code_point);
  return text;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (const char byte : text) {
    count += (static_cast<unsigned char>(byte) & 0xC0) != 0x80 ? 1 : 0;
  }
  return count;
}

std::string code_points(std::string_view text, std::int64_t begin, std::int64_t end) {
  std::size_t first = text.size();
  std::size_t last = text.size();
  std::int64_t place = 0;
  for_each_code_point(text, [&](char32_t, std::size_t at) {
    first = place == begin ? at : first;
    last = place == end ? at : last;
    ++place;
  });
  return std::string(text.substr(first, last - first));
}

bool assigned_in_unicode(char32_t c, int major) {
  UVersionInfo version;
  u_charAge(static_cast<UChar32>(c), version);
  return version[0] > 0 && version[0] <= major;
}

bool is_whitespace(char32_t c) {
  return c < 0x80 ? c == ' ' || (c >= 9 && c <= 13) : u_isUWhiteSpace(static_cast<UChar32>(c)) != 0;
}

bool is_numeric(char32_t c) {
  return c < 0x80 ? c >= '0' && c <= '9' : (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_N_MASK) != 0;
}

bool is_word(char32_t c) {
  const auto point = static_cast<UChar32>(c);
  return (U_GET_GC_MASK(point) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
         u_hasBinaryProperty(point, UCHAR_ALPHABETIC) != 0 || u_hasBinaryProperty(point, UCHAR_JOIN_CONTROL) != 0;
}

char32_t lowercase(char32_t c) {
  return c < 0x80 ? (c >= 'A' && c <= 'Z' ? c + 32 : c) : static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)));
}

bool is_bert_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  }
  const bool has_been = c == 0x166D || c == 0x111C9;  // have another category in later versions
  return has_been || ((U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_P_MASK) != 0 && assigned_in_unicode(c, 8));
}

bool is_bert_control(char32_t c) {
  if (c < 0x80) {
    return (c < 32 && c != '\t' && c != '\n' && c != '\r') || c == 127;
  }
  const std::uint32_t category = U_GET_GC_MASK(static_cast<UChar32>(c));
  return (category & (U_GC_CC_MASK | U_GC_CO_MASK)) != 0 ||
         ((category & U_GC_CF_MASK) != 0 && assigned_in_unicode(c, 8));
}

bool is_nonspacing_mark(char32_t c) {
  if (c == 0x1734 || c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9) {
    return c == 0x1734;  // it alone was one, and in later versions the others are
  }
  return c >= 0x300 && u_charType(static_cast<UChar32>(c)) == U_NON_SPACING_MARK && assigned_in_unicode(c, 8);
}

bool is_combining_mark(char32_t c) {
  if (c == 0x1CF2 || c == 0x1CF3 || c == 0x111C9) {
    return c != 0x111C9;  // the first two were marks, and in later versions the last is
  }
  return c >= 0x300 && (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_M_MASK) != 0 && assigned_in_unicode(c, 9);
}

}  // namespace vitrail::text
