// Any bytes as an image: an Error, or all of its pixels.
#include "vitrail/io/image.h"

#include <cstdint>
#include <cstdlib>

#include "memory_limit.h"
#include "target.h"
#include "vitrail/tensor/error.h"

FUZZ_TARGET(image)(const std::uint8_t* data, std::size_t size) {
  const MemoryLimit limit;
  using namespace vitrail;
  try {
    const io::Image image = io::decode_image({data, size}, "input");
    if (image.width < 1 || image.height < 1 ||
        image.pixels.size() != static_cast<std::size_t>(image.width * image.height * 3)) {
      std::abort();
    }
  } catch (const Error&) {
  }
  return 0;
}
