// Any bytes as a safetensors file: an Error, or tensors that lie inside it.
#include "vitrail/io/safetensors.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "memory_limit.h"
#include "target.h"
#include "vitrail/tensor/error.h"

FUZZ_TARGET(safetensors)(const std::uint8_t* data, std::size_t size) {
  const MemoryLimit limit;
  using namespace vitrail;
  const auto owner = std::make_shared<const std::vector<std::uint8_t>>(data, data + size);
  try {
    const io::Safetensors file = io::Safetensors::parse(*owner, owner, "input");
    std::size_t bytes = 0;
    for (const std::string& name : file.names()) {
      try {
        const Tensor tensor = file.get(name);
        bytes += tensor.values().size();
        if (!(tensor.shape() == file.shape(name))) {
          std::abort();
        }
      } catch (const Error&) {  // a dtype that Tensor does not have
      }
    }
    if (bytes > 2 * size) {
      std::abort();  // each element takes at least half a byte of the file
    }
  } catch (const Error&) {
  }
  return 0;
}
