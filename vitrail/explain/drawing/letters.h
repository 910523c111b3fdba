/// \file
/// The letters of text on images, five by eight pixels each.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace vitrail::explain {

constexpr std::int64_t letter_pixels = 5;  ///< of the width of a letter, without the space behind it
constexpr std::int64_t letter_width = 6;   ///< pixels from one letter to the next, at scale 1
constexpr std::int64_t letter_height = 8;  ///< pixels of a line, descenders included, at scale 1

/// A letter, and the marks above and below it (combining characters of Unicode; 0: none).
struct Letter {
  char32_t base = U'?';
  char32_t above = 0;
  char32_t below = 0;
};

/// The letters of a text: those of ASCII and of the languages of Europe that are written in Latin ones, with their
/// marks. Dashes and quotation marks are drawn as ASCII's, and other characters as question marks.
std::vector<Letter> letters_of(std::string_view text);

/// Whether the pixel (x, y) of a letter is dark.
bool is_dark(const Letter& letter, std::int64_t x, std::int64_t y);

}  // namespace vitrail::explain
