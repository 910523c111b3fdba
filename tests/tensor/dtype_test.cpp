#include "vitrail/tensor/dtype.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"

namespace vitrail::test {
namespace {

TEST(DType, HasANameAndASize) {
  for (const auto& [dtype, name, size] :
       {std::tuple(DType::f32, "f32", 4), std::tuple(DType::bf16, "bf16", 2), std::tuple(DType::i8, "i8", 1),
        std::tuple(DType::u8, "u8", 1), std::tuple(DType::i32, "i32", 4), std::tuple(DType::i64, "i64", 8),
        std::tuple(DType::boolean, "bool", 1)}) {
    EXPECT_EQ(name_of(dtype), name);
    EXPECT_EQ(dtype_named(name), dtype);
    EXPECT_EQ(size_of(dtype), static_cast<std::size_t>(size));
    EXPECT_EQ(is_floating(dtype), dtype == DType::f32 || dtype == DType::bf16);
    EXPECT_EQ(visit(dtype, []<class T>(T) { return dtype_of<T>::value; }), dtype);
    EXPECT_EQ(visit(dtype, []<class T>(T) { return sizeof(T); }), size_of(dtype));
  }
  EXPECT_EQ(dtype_named("bfloat16"), DType::bf16);
  EXPECT_EQ(dtype_named("float32"), DType::f32);
  EXPECT_EQ(error_of([] { dtype_named("f64"); }), "unknown dtype 'f64': expected f32, bf16, i8, u8, i32, i64 or bool");
}

TEST(Bf16, RoundsAsPyTorch) {
  const io::Safetensors file = golden("tensor/bf16.safetensors");
  const Tensor bits = file.get("bits");
  const Tensor rounded = file.get("rounded");
  for (std::int64_t i = 0; i < bits.numel(); ++i) {
    const auto pattern = static_cast<std::uint32_t>(bits.data<std::int32_t>()[i]);
    const auto value = std::bit_cast<float>(pattern);
    const bf16 result(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(result))) << std::hex << pattern;
    } else {
      EXPECT_EQ(result.bits, static_cast<std::uint16_t>(rounded.data<std::int32_t>()[i])) << std::hex << pattern;
    }
  }
}

TEST(Bf16, KeepsEveryValueOfItsOwn) {
  for (std::uint32_t bits = 0; bits < 1U << 16; ++bits) {
    bf16 value;
    value.bits = static_cast<std::uint16_t>(bits);
    const auto wide = static_cast<float>(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(bf16(wide))));
    } else {
      EXPECT_EQ(bf16(wide).bits, bits);
    }
  }
}

}  // namespace
}  // namespace vitrail::test
