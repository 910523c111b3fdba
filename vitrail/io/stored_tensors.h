/// \file
/// The named tensors of a checkpoint as they lie in its files, whatever the format of these is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::io {

/// Tensors and their names, in the order in which they were found or are to be written.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// A tensor as it lies in a file. Whoever makes one has checked that all of its elements lie in the memory of `owner`.
struct StoredTensor {
  std::string dtype;  ///< by safetensors' name ("F32", "F8_E4M3"): it may be one that Tensor does not have
  Shape shape;
  Shape strides;                       ///< in elements, none negative
  const std::uint8_t* data = nullptr;  ///< the first element, perhaps unaligned
  std::shared_ptr<const void> owner;   ///< keeps the memory; without one, tensors are copies
  bool in_file = false;                ///< whether that is a MappedFile
};

/// Tensors by name that have not been read yet. A cheap value: copies share the memory of the files.
class StoredTensors {
 public:
  explicit StoredTensors(std::string source) : source_(std::move(source)) {}
  /// Appends a tensor; Error if the name is there already.
  void add(std::string name, StoredTensor tensor);

  const std::vector<std::string>& names() const { return names_; }  ///< in their order in the file
  bool contains(std::string_view name) const;
  /// The tensor `name`. It shares the file's memory if dtype, strides and alignment allow, otherwise it is a copy; F16
  /// and F64 are converted to f32. Throws Error for a dtype that Tensor does not have (U16, U32, I16, U64 …) and for an
  /// unknown name.
  Tensor get(std::string_view name) const;
  Shape shape(std::string_view name) const { return find(name).shape; }
  const StoredTensor& find(std::string_view name) const;  ///< Error for an unknown name
  const std::string& source() const { return source_; }   ///< the file's name, for errors

  /// Says that the memory of `file` is that of a MappedFile: what is owned by it is in_file from here on.
  void owned_by_file(const std::shared_ptr<const void>& file);
  /// Gives the memory back that a tensor in a mapped file takes by having been read. It can be read again.
  void forget(std::string_view name) const;

 private:
  std::string source_;
  std::map<std::string, StoredTensor, std::less<>> entries_;
  std::vector<std::string> names_;
};

/// The name that a file of safetensors has for `dtype`: "F32" for f32.
std::string_view stored_name(DType dtype);
/// The bits of an element of a dtype by safetensors' name, those that Tensor does not have included; none if the format
/// has no such dtype.
std::optional<unsigned> stored_bits(std::string_view dtype);

/// The shape of these sizes, of elements with so many bits. Throws Error, naming the tensor `name` of `source`, if
/// there are too many dimensions, or if a size or a count of bits does not fit into 63 bits.
Shape checked_shape(std::span<const std::uint64_t> sizes, unsigned bits, std::string_view name,
                    const std::string& source);

}  // namespace vitrail::io
