/// \file
/// Bytes as printable characters, as GPT-2 has them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vitrail::text {

/// The character that stands for a byte: itself where it is printable in Latin-1, else one of U+0100 to U+0143
/// (`bytes_to_unicode` of OpenAI's GPT-2).
char32_t character_of_byte(unsigned char byte);

/// The byte for which a character stands, if it stands for one.
std::optional<unsigned char> byte_of_character(char32_t c);

}  // namespace vitrail::text
