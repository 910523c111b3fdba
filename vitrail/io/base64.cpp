#include "vitrail/io/base64.h"

#include <cstddef>
#include <cstdint>

#include "vitrail/tensor/error.h"

namespace vitrail::io {
namespace {

constexpr std::string_view base64_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string decode_base64(std::string_view text) {
  check(text.size() % 4 == 0, "a text of {} characters is not base 64", text.size());
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint32_t bits = 0;
    for (std::size_t i = at; i < at + 4; ++i) {
      const std::size_t digit = i >= text.size() - padding ? 0 : base64_digits.find(text[i]);
      check(digit != std::string_view::npos, "character {} of a text in base 64 is '{}'", i, text[i]);
      bits = bits << 6 | static_cast<std::uint32_t>(digit);
    }
    for (const int shift : {16, 8, 0}) {
      bytes.push_back(static_cast<char>(bits >> shift & 0xFF));
    }
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = at; i < at + 3; ++i) {
      bits = bits << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U);
    }
    for (const int shift : {18, 12, 6, 0}) {
      text.push_back(base64_digits[bits >> shift & 0x3F]);
    }
  }
  const std::size_t padding = (3 - bytes.size() % 3) % 3;
  return text.replace(text.size() - padding, padding, padding, '=');
}

}  // namespace vitrail::io
