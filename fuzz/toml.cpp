// Any bytes as a config.toml: an Error, or values. Any text as a value: it reads back as it was.
#include "vitrail/io/toml.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "memory_limit.h"
#include "target.h"
#include "vitrail/tensor/error.h"

FUZZ_TARGET(toml)(const std::uint8_t* data, std::size_t size) {
  const MemoryLimit limit;
  using namespace vitrail;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    io::parse_toml(text, "input");
  } catch (const Error&) {
  }
  std::string line;
  try {
    line = io::toml_key(text) + " = " + io::toml_value(text);
  } catch (const Error&) {  // not UTF-8
    return 0;
  }
  if (io::parse_toml(line, "copy").at(text) != text) {
    std::abort();
  }
  return 0;
}
