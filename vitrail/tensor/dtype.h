/// \file
/// The element types of a Tensor.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vitrail {

enum class DType : std::uint8_t { f32, bf16, i8, u8, i32, i64, boolean };

/// A bfloat16 number: the upper half of a float32, with 8 exponent bits and 7 fraction bits. The conversion from float
/// rounds to nearest even.
struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  explicit bf16(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (u & 0x7fffffffU) > 0x7f800000U;
    bits = is_nan ? static_cast<std::uint16_t>((u >> 16) | 0x40U)
                  : static_cast<std::uint16_t>((u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};
static_assert(sizeof(bf16) == 2);

std::size_t size_of(DType dtype);       ///< bytes per element
std::string_view name_of(DType dtype);  ///< "f32", "bf16", "i8", "u8", "i32", "i64", "bool"

/// The dtype of that name, as name_of() gives it, or "float32" or "bfloat16"; Error if it is unknown.
DType dtype_named(std::string_view name);
inline bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; }

/// `dtype_of<T>::value` is the DType of the C++ element type T.
template <class T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct dtype_of<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct dtype_of<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct dtype_of<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct dtype_of<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct dtype_of<bool> {
  static constexpr DType value = DType::boolean;
};

}  // namespace vitrail
