/// \file
/// Texts in other encodings than UTF-8.
#pragma once

#include <string>

namespace vitrail::text {

/// The bytes of a text in `encoding`, by any of the names that ICU knows ("latin-1", "windows-1252", "utf-16",
/// "shift_jis" …), as UTF-8. Bytes that are to be UTF-8 are handed on as they are. Throws Error for a name that is not
/// known, and, naming `source`, for bytes that are no text in this encoding.
std::string to_utf8(std::string bytes, const std::string& encoding, const std::string& source);

}  // namespace vitrail::text
