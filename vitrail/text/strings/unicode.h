/// \file
/// UTF-8, and the properties of code points by which texts are split and normalized. The data are ICU's; each function
/// has the definition, and where that matters the version of Unicode, of the library whose ids are to be met.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vitrail::text {

/// The offset of the first byte of `text` that does not belong to valid UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

/// Throws Error with the offset of the first invalid byte, unless `text` is UTF-8. `what` is what the text is.
void check_utf8(std::string_view text, std::string_view what);
/// Throws Error, naming `source`, the line's number and its byte, both from 1, unless the line is UTF-8.
void check_line(std::string_view line, std::string_view source, std::size_t number);

/// `bytes` with U+FFFD for each maximal part of a sequence that is not UTF-8, as Rust's `from_utf8_lossy`.
std::string to_valid_utf8(std::string_view bytes);

/// A code point and the number of bytes that it takes.
struct CodePoint {
  char32_t value;
  std::uint32_t bytes;
};

/// The number of bytes of the code point that begins with `lead`, in valid UTF-8.
constexpr std::uint32_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// The code point at byte `at` of valid UTF-8.
constexpr CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  switch (utf8_length(text[at])) {
    case 1:
      return {byte(0), 1};
    case 2:
      return {(byte(0) & 0x1FU) << 6 | (byte(1) & 0x3FU), 2};
    case 3:
      return {(byte(0) & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU), 3};
    default:
      return {(byte(0) & 0x07U) << 18 | (byte(1) & 0x3FU) << 12 | (byte(2) & 0x3FU) << 6 | (byte(3) & 0x3FU), 4};
  }
}

/// The number of bytes of `code_point` in UTF-8.
constexpr std::uint32_t utf8_length(char32_t code_point) {
  return code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
}

/// Appends `code_point` in UTF-8.
void append_utf8(std::string& text, char32_t code_point);
std::string to_utf8(char32_t code_point);

/// Calls `use(code point, first byte)` for each code point of valid UTF-8.
template <class Use>
void for_each_code_point(std::string_view text, const Use& use) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    use(point.value, at);
    at += point.bytes;
  }
}

/// The number of code points of valid UTF-8.
std::size_t count_code_points(std::string_view text);
/// The code points `begin` to `end` - 1 of valid UTF-8, as offsets of tokens count them.
std::string code_points(std::string_view text, std::int64_t begin, std::int64_t end);

bool is_whitespace(char32_t c);  ///< the property White_Space
bool is_numeric(char32_t c);     ///< the categories Nd, Nl and No
bool is_word(char32_t c);        ///< `\w` of Rust's regex: Alphabetic, M, Nd, Pc and Join_Control
char32_t lowercase(char32_t c);  ///< the simple mapping

// These have the data of old versions of Unicode, for the packages of the reference (`unicode_categories`,
// `unicode-normalization-alignments`) do. That was found out by asking the reference about each code point.

bool is_bert_punctuation(char32_t c);  ///< ASCII's punctuation and symbols, and the categories P of Unicode 8
bool is_bert_control(char32_t c);      ///< Cc, Cf and Co of Unicode 8 without tab, newline and carriage return
bool is_nonspacing_mark(char32_t c);   ///< the category Mn of Unicode 8
bool is_combining_mark(char32_t c);    ///< the categories M of Unicode 9

/// Whether `c` was assigned in version `major` of Unicode.
bool assigned_in_unicode(char32_t c, int major);

}  // namespace vitrail::text
