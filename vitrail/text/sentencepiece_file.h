/// \file
/// What the sentencepiece library itself does not check in a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vitrail::text {

/// Throws Error, naming `source`, if the bytes of a `.model` or `.spm` file are not a message of protocol buffers with
/// pieces, or have a map of characters that leads out of its bounds, where the library would follow it.
void check_sentencepiece(std::string_view bytes, const std::string& source);

/// What a piece is for, with the numbers of sentencepiece_model.proto.
enum class PieceKind : std::uint64_t { normal = 1, unknown, control, user_defined, unused, byte };
/// The pieces of such a file by their ids. Throws Error as check_sentencepiece() if it cannot be read.
std::vector<std::pair<std::string, PieceKind>> sentencepieces_in(std::string_view bytes, const std::string& source);

/// Whether such a file's pieces are joined by BPE. Throws Error as check_sentencepiece() if it cannot be read.
bool is_sentencepiece_bpe(std::string_view bytes, const std::string& source);

}  // namespace vitrail::text
