/// \file
/// Words as they stand in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vitrail::io {

/// A number of things, given their plural: "2 epochs", "1 epoch", "1 batch" of "batches", "1 class" of "classes".
std::string counted(std::int64_t count, std::string_view plural);

/// The words with a capital letter in front, if they begin with a letter of ASCII.
std::string capitalized(std::string_view words);

}  // namespace vitrail::io
