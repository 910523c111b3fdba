/// \file
/// The safetensors format: an 8-byte little-endian header length, a JSON header, the bytes of the tensors. Source:
/// https://github.com/huggingface/safetensors (README, "Format").
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/io/file.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::io {

/// Tensors and their names, in the order in which they were found or are to be written.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// A safetensors file that is open for reading: it is mapped into memory, and its header has been checked in full. The
/// header is not trusted: a wrong length, offsets out of bounds, overlaps, gaps, unknown dtypes, bad shapes (overflow
/// included), duplicate names and truncation each throw an Error of their own.
class Safetensors {
 public:
  static Safetensors open(const std::filesystem::path& path);
  /// Parses a file that is already in memory, which `owner` keeps alive; `name` stands for the file in errors.
  static Safetensors parse(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> owner, std::string name);

  const std::vector<std::string>& names() const { return names_; }  ///< in the order of their data
  bool contains(std::string_view name) const;
  /// The tensor `name`. It shares the mapped memory if dtype and alignment allow, otherwise it is a copy; F16 and F64
  /// are converted to f32. Throws Error for a dtype that Tensor does not have (U16, U32, I16, U64 …) and for an unknown
  /// name.
  Tensor get(std::string_view name) const;
  Shape shape(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  ///< "__metadata__"
  const std::string& source() const { return source_; }                             ///< the file's name, for errors

 private:
  struct Entry {
    std::string dtype;
    Shape shape;
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  const Entry& find(std::string_view name) const;

  std::shared_ptr<const void> owner_;
  std::span<const std::uint8_t> data_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> metadata_;
  std::string source_;
};

/// Writes the tensors to a file atomically. The header is padded so that the data begin at a multiple of 64 bytes. The
/// tensors are written in their order, but wider elements come first, as in the reference implementation, so that each
/// tensor is aligned. Strided tensors are written densely. Throws Error for undefined tensors and repeated names.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

}  // namespace vitrail::io
