/// \file
/// Words as they stand in messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace vitrail::io {

/// A number of things, given their plural: "2 epochs", "1 epoch", "1 batch" of "batches", "1 class" of "classes".
std::string counted(std::int64_t count, std::string_view plural);

/// The words with a capital letter in front, if they begin with a letter of ASCII.
std::string capitalized(std::string_view words);

/// A text from a file, shortened to 80 bytes for an error message.
std::string shown(std::string_view text);

/// A text as it stands in a line of output: control characters, such as line breaks in the name of a file, as `\n`,
/// `\t` or `\x1b`.
std::string on_one_line(std::string_view text);

/// A path or another word as a shell takes it in a command: in quotes where it has other characters than letters,
/// digits and those of plain paths.
std::string shell_word(std::string_view word);

/// The text with line breaks in place of spaces, so that no line has more than `width` letters unless a word has.
std::string wrapped(std::string_view text, std::size_t width);

/// The text with the letters A to Z in lower case; others stay as they are.
std::string lower_case(std::string_view text);

/// A text without white space at its ends.
std::string_view trimmed(std::string_view text);

}  // namespace vitrail::io
