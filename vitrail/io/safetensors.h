// The safetensors format: an 8-byte little-endian header length, a JSON header, the tensors' bytes.
// https://github.com/huggingface/safetensors (README, "Format")
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

// Tensors in the order in which they are to be written or were found.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// A file opened for reading: mapped, its header checked in full. The header is not trusted: its length, every offset,
// overlaps and gaps, dtypes, shapes (overflow included), duplicate names and truncation each give an Error of their
// own.
class Safetensors {
 public:
  static Safetensors open(const std::filesystem::path& path);
  // The same from memory that `owner` keeps alive; `name` is used in errors.
  static Safetensors parse(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> owner, std::string name);

  const std::vector<std::string>& names() const { return names_; }  // in the order of their data
  bool contains(std::string_view name) const;
  // The tensor, sharing the mapped memory where dtype and alignment allow. F16 and F64 are converted to f32 on the way,
  // U16/U32/I16/U64 etc. (which Tensor does not have) are an Error. Error if there is no such name.
  Tensor get(std::string_view name) const;
  Shape shape(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // "__metadata__"
  const std::string& source() const { return source_; }                             // the file's name, for errors

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

// Writes the file atomically, the header padded so that data begin at a multiple of 64, the tensors in their order but
// those of wider elements first (as the reference does), so that each is aligned. Strided tensors are written dense.
void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

}  // namespace vitrail::io
