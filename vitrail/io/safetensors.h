/// \file
/// The safetensors format: an 8-byte little-endian header length, a JSON header, the bytes of the tensors. Source:
/// https://github.com/huggingface/safetensors (README, "Format").
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "vitrail/io/stored_tensors.h"

namespace vitrail::io {

/// A safetensors file that is open for reading: it is mapped into memory, and its header has been checked in full. The
/// header is not trusted: a wrong length, offsets out of bounds, overlaps, gaps, unknown dtypes, bad shapes (overflow
/// included), duplicate names and truncation each throw an Error of their own. Its names are in the order of their
/// data.
class Safetensors : public StoredTensors {
 public:
  static Safetensors open(const std::filesystem::path& path);
  /// Parses a file that is already in memory, which `owner` keeps alive; `name` stands for the file in errors.
  static Safetensors parse(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> owner, std::string name);

  const std::map<std::string, std::string>& metadata() const { return metadata_; }  ///< "__metadata__"

 private:
  using StoredTensors::StoredTensors;
  std::map<std::string, std::string> metadata_;
};

/// Writes the tensors to a file atomically. The header is padded so that the data begin at a multiple of 64 bytes. The
/// tensors are written in their order, but wider elements come first, as in the reference implementation, so that each
/// tensor is aligned. Strided tensors are written densely. Throws Error for undefined tensors and repeated names.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

}  // namespace vitrail::io
