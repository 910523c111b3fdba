// Any text as the value of an argument in Python's notation: an Error, or JSON.
#include "vitrail/models/base/kwargs.h"

#include <cstdint>

#include <nlohmann/json.hpp>

#include "folder.h"
#include "memory_limit.h"
#include "require.h"
#include "target.h"
#include "vitrail/tensor/error.h"

FUZZ_TARGET(kwargs)(const std::uint8_t* data, std::size_t size) {
  const MemoryLimit limit;
  try {
    const std::string json = vitrail::models::kwargs_to_json({"name=" + std::string(text_of(data, size))});
    require(nlohmann::json::parse(json).size() == 1);
  } catch (const vitrail::Error&) {
  }
  return 0;
}
