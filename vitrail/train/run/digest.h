/// \file
/// Numbers that tell contents from others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace vitrail::train {

/// A 64-bit digest of bytes that begins with `state`. It takes eight bytes at a time, so that it costs little compared
/// with writing them.
std::uint64_t digest(std::uint64_t state, std::span<const std::byte> bytes);

/// The digest of a file, of what of it can be read.
std::uint64_t digest_of_file(const std::filesystem::path& path);

}  // namespace vitrail::train
