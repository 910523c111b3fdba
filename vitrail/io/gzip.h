/// \file
/// Files compressed with gzip.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>

#include "vitrail/io/file.h"

namespace vitrail::io {

/// Whether a file begins as gzip's do.
bool is_gzip(const MappedFile& file);

/// Unpacks the gzip file `path` into a file without a name in the folder for temporary files (TMPDIR), which takes disk
/// space as long as anyone holds the pointer. Whoever asks for the same file meanwhile gets the same memory. Throws
/// Error, naming the path, if the file is damaged or cut short, if there is no room for it, or if it unpacks to more
/// than 256 MiB and a hundred times its size, which no archive of images does.
std::shared_ptr<const MappedFile> unpack_gzip(const std::filesystem::path& path);
/// Sets what unpack_gzip() calls before it unpacks a file of so many bytes, which may take long: a program can tell its
/// user. Nothing is called by default.
void on_unpacking(std::function<void(const std::filesystem::path& path, std::size_t bytes)> notice);

}  // namespace vitrail::io
