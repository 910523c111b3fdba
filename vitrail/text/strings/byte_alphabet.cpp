#include "vitrail/text/strings/byte_alphabet.h"

#include <array>

namespace vitrail::text {
namespace {

constexpr char32_t first_substitute = 0x100;

constexpr bool is_printable(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<char32_t, 256> characters = [] {
  std::array<char32_t, 256> result{};
  char32_t substitute = first_substitute;
  for (unsigned byte = 0; byte < 256; ++byte) {
    result[byte] = is_printable(byte) ? byte : substitute++;
  }
  return result;
}();

constexpr std::array<int, 0x144> bytes = [] {
  std::array<int, 0x144> result{};
  result.fill(-1);
  for (int byte = 0; byte < 256; ++byte) {
    result[characters[static_cast<std::size_t>(byte)]] = byte;
  }
  return result;
}();

}  // namespace

char32_t character_of_byte(unsigned char byte) { return characters[byte]; }

std::optional<unsigned char> byte_of_character(char32_t c) {
  if (c >= bytes.size() || bytes[c] < 0) {
    return std::nullopt;
  }
  return static_cast<unsigned char>(bytes[c]);
}

}  // namespace vitrail::text
