#include "vitrail/io/stored_tensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vitrail/io/wording.h"
#include "vitrail/tensor/error.h"
#include "vitrail/tensor/strided.h"

namespace vitrail::io {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian, and so must the machine be");

namespace {

struct StoredType {
  std::string_view name;
  unsigned bits;
};

// All dtypes of safetensors 0.8 (enum Dtype), including those that Tensor does not have.
constexpr std::array stored_types = {
    StoredType{"BOOL", 8},    StoredType{"F4", 4},          StoredType{"F6_E2M3", 6},     StoredType{"F6_E3M2", 6},
    StoredType{"U8", 8},      StoredType{"I8", 8},          StoredType{"F8_E5M2", 8},     StoredType{"F8_E4M3", 8},
    StoredType{"F8_E8M0", 8}, StoredType{"F8_E4M3FNUZ", 8}, StoredType{"F8_E5M2FNUZ", 8}, StoredType{"I16", 16},
    StoredType{"U16", 16},    StoredType{"F16", 16},        StoredType{"BF16", 16},       StoredType{"I32", 32},
    StoredType{"U32", 32},    StoredType{"F32", 32},        StoredType{"C64", 64},        StoredType{"F64", 64},
    StoredType{"I64", 64},    StoredType{"U64", 64},
};

constexpr std::array<std::pair<std::string_view, DType>, 7> tensor_types = {{{"F32", DType::f32},
                                                                             {"BF16", DType::bf16},
                                                                             {"I8", DType::i8},
                                                                             {"U8", DType::u8},
                                                                             {"I32", DType::i32},
                                                                             {"I64", DType::i64},
                                                                             {"BOOL", DType::boolean}}};

// Converts a number of IEEE half precision: 1 sign, 5 exponent and 10 fraction bits.
float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fU;
  const std::uint32_t fraction = half & 0x3ffU;
  if (exponent == 0) {  // zero or subnormal: fraction · 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

template <class Stored, class Convert>
Tensor converted(const std::uint8_t* data, const Shape& shape, Convert convert) {
  Tensor result = Tensor::empty(shape);
  for (float& value : result.span<float>()) {
    Stored stored;
    std::memcpy(&stored, data, sizeof(Stored));  // the data may be unaligned
    data += sizeof(Stored);
    value = convert(stored);
  }
  return result;
}

// Whether the elements lie in memory as they are counted. The stride of a dimension of size 1 has no meaning.
bool is_dense(const StoredTensor& tensor) {
  std::int64_t step = 1;
  for (int d = tensor.shape.rank() - 1; d >= 0; --d) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != step) {
      return tensor.shape.numel() == 0;
    }
    step *= tensor.shape[d];
  }
  return true;
}

// The elements side by side, each of `width` bytes.
std::vector<std::uint8_t> gathered(const StoredTensor& tensor, std::size_t width) {
  const std::int64_t numel = tensor.shape.numel();
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(numel) * width);
  for (std::int64_t i = 0; i < numel; ++i) {
    const std::int64_t from = strided_offset(tensor.shape, tensor.strides, i);
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * width,
                tensor.data + static_cast<std::size_t>(from) * width, width);
  }
  return bytes;
}

}  // namespace

std::string_view stored_name(DType dtype) {
  return std::find_if(tensor_types.begin(), tensor_types.end(), [&](const auto& type) { return type.second == dtype; })
      ->first;
}

std::optional<unsigned> stored_bits(std::string_view dtype) {
  const auto* type = std::find_if(stored_types.begin(), stored_types.end(),
                                  [&](const StoredType& known) { return known.name == dtype; });
  return type == stored_types.end() ? std::nullopt : std::optional(type->bits);
}

Shape checked_shape(std::span<const std::uint64_t> sizes, unsigned bits, std::string_view name,
                    const std::string& source) {
  check(sizes.size() <= Shape::max_rank, "{}: the tensor '{}' has {} dimensions, more than {}", source, shown(name),
        sizes.size(), Shape::max_rank);
  std::uint64_t strides = 1;  // the product without empty dimensions: strides must not overflow either
  bool overflow = false;
  std::vector<std::int64_t> result;
  for (const std::uint64_t size : sizes) {
    overflow = overflow || __builtin_mul_overflow(strides, std::max<std::uint64_t>(size, 1), &strides);
    result.push_back(static_cast<std::int64_t>(size));
  }
  overflow = overflow || __builtin_mul_overflow(strides, bits, &strides) ||
             strides > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  check(!overflow, "{}: the shape [{}] of the tensor '{}' is too large", source, fmt::join(sizes, ", "), shown(name));
  return Shape(result);
}

void StoredTensors::add(std::string name, StoredTensor tensor) {
  const bool is_new = entries_.try_emplace(name, std::move(tensor)).second;
  check(is_new, "{}: the tensor '{}' is there twice", source_, shown(name));
  names_.push_back(std::move(name));
}

bool StoredTensors::contains(std::string_view name) const { return entries_.contains(name); }

const StoredTensor& StoredTensors::find(std::string_view name) const {
  const auto found = entries_.find(name);
  check(found != entries_.end(), "{}: there is no tensor '{}'", source_, name);
  return found->second;
}

void StoredTensors::owned_by_file(const std::shared_ptr<const void>& file) {
  for (auto& [name, tensor] : entries_) {
    tensor.in_file = tensor.in_file || tensor.owner == file;
  }
}

void StoredTensors::forget(std::string_view name) const {
  const StoredTensor& stored = find(name);
  if (!stored.in_file || !is_dense(stored)) {
    return;
  }
  // Whole pages alone: those at the ends may hold another tensor too.
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(stored.data);
  const std::uintptr_t begin = (address + page - 1) / page * page;
  const std::uintptr_t bytes = static_cast<std::uintptr_t>(stored.shape.numel()) * *stored_bits(stored.dtype) / 8;
  const std::uintptr_t end = (address + bytes) / page * page;
  if (begin < end) {
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

Tensor StoredTensors::get(std::string_view name) const {
  const StoredTensor& stored = find(name);
  const auto* type = std::find_if(tensor_types.begin(), tensor_types.end(),
                                  [&](const auto& known) { return known.first == stored.dtype; });
  const bool half = stored.dtype == "F16";
  check(type != tensor_types.end() || half || stored.dtype == "F64",
        "{}: the tensor '{}' has the dtype {}, which is not supported", source_, name, stored.dtype);
  const bool dense = is_dense(stored);
  const std::size_t width = *stored_bits(stored.dtype) / 8;
  const std::vector<std::uint8_t> copy = dense ? std::vector<std::uint8_t>() : gathered(stored, width);
  const std::uint8_t* data = dense ? stored.data : copy.data();
  if (half) {
    return converted<std::uint16_t>(data, stored.shape, half_to_float);
  }
  if (type == tensor_types.end()) {
    return converted<double>(data, stored.shape, [](double value) { return static_cast<float>(value); });
  }
  const DType dtype = type->second;
  const std::size_t bytes = static_cast<std::size_t>(stored.shape.numel()) * width;
  check(dtype != DType::boolean || std::all_of(data, data + bytes, [](std::uint8_t byte) { return byte <= 1; }),
        "{}: the tensor '{}' is BOOL, but holds bytes other than 0 and 1", source_, name);
  if (dense && bytes > 0 && stored.owner != nullptr && reinterpret_cast<std::uintptr_t>(data) % width == 0) {
    return Tensor::borrow(data, stored.shape, dtype, stored.owner);
  }
  Tensor result = Tensor::empty(stored.shape, dtype);
  if (bytes > 0) {
    std::memcpy(result.raw(), data, bytes);
  }
  return result;
}

}  // namespace vitrail::io
