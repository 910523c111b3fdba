#include "vitrail/tensor/dtype.h"

#include "vitrail/tensor/error.h"

namespace vitrail {

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::i64:
      return 8;
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return 1;
  }
  fail("no such dtype: {}", static_cast<int>(dtype));
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::i8:
      return "i8";
    case DType::u8:
      return "u8";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::boolean:
      return "bool";
  }
  fail("no such dtype: {}", static_cast<int>(dtype));
}

DType dtype_named(std::string_view name) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i8, DType::u8, DType::i32, DType::i64, DType::boolean}) {
    if (name == name_of(dtype)) {
      return dtype;
    }
  }
  if (name == "float32") {
    return DType::f32;
  }
  if (name == "bfloat16") {
    return DType::bf16;
  }
  fail("unknown dtype '{}': expected f32, bf16, i8, u8, i32, i64 or bool", name);
}

}  // namespace vitrail
