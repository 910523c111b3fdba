/// \file
/// Bytes as text, in base 64 (RFC 4648).
#pragma once

#include <string>
#include <string_view>

namespace vitrail::io {

/// The bytes of a text in base 64. Throws Error if it is not that.
std::string decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace vitrail::io
