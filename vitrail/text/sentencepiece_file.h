/// \file
/// What the sentencepiece library itself does not check in a file.
#pragma once

#include <string>
#include <string_view>

namespace vitrail::text {

/// Throws Error, naming `source`, if the bytes of a `.model` or `.spm` file are not a message of protocol buffers with
/// pieces, or have a map of characters that leads out of its bounds, where the library would follow it.
void check_sentencepiece(std::string_view bytes, const std::string& source);

}  // namespace vitrail::text
