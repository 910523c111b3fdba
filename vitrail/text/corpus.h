/// \file
/// Texts from files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::text {

/// Throws Error, naming `source`, line and byte, unless the text is UTF-8.
void check_corpus(std::string_view text, std::string_view source);
/// A text whose lines end in "\n" alone, as Python reads them, and not in Windows' "\r\n".
std::string with_line_feeds(std::string text);
/// The text of a file, without a byte order mark, and with lines that end in "\n" where Windows has "\r\n". Throws
/// Error, naming line and byte, if it is empty or not UTF-8. With `skipped`, lines that are not UTF-8 are left out and
/// counted there instead.
std::string read_corpus(const std::string& file, std::int64_t* skipped = nullptr);
/// A text without its lines that are not UTF-8; `skipped` is increased by their number.
std::string without_broken_lines(const std::string& text, std::int64_t& skipped);
/// The lines of each document of a text, which blank lines part.
std::vector<std::vector<std::string>> documents_of(std::string_view text);

}  // namespace vitrail::text
